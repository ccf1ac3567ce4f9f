"""A report as one self-contained HTML file."""

from jinja2 import Environment, PackageLoader, StrictUndefined

from tasks.analyse.report.page import Code, Page, Tag, parts_of
from tasks.analyse.report.text import printable


def as_html(page: Page) -> str:
    """Return the page as HTML: every text is escaped; styles, charts and the script for sorting are included."""
    environment = Environment(
        loader=PackageLoader("tasks.analyse.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"printable": printable, "parts": parts_of}
    environment.tests["code"] = lambda part: isinstance(part, Code)
    environment.tests["tag"] = lambda part: isinstance(part, Tag)
    return environment.get_template("report.html.j2").render(page=page)
