"""A page as HTML: a file that stands alone, or a page of the site, with its style and script as files beside it."""

import base64
import functools
import hashlib
import json
from collections.abc import Container, Mapping, Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from devices.untrusted import sanitize, sanitize_data, sanitize_line
from tasks.pages.report.markup import from_page, inline, rows
from tasks.pages.report.page import Page

NAVIGATION = (
    ("This morning", "index.html"),
    ("Nights", "nights.html"),
    ("Models", "models.html"),
    ("Devices", "devices.html"),
    ("SME2", "sme2.html"),
    ("Compare", "compare.html"),
    ("Runners", "runners.html"),
)
"""Title and address of the pages that every page leads to."""


_POLICY = "default-src 'none'; script-src {}; style-src {}; img-src data:; base-uri 'none'; form-action 'none'"
SITE_POLICY = _POLICY.format("'self'", "'self'")
"""What a browser may load for a page of the site; charts need neither `eval` nor styles inside a page."""


def as_html(page: Page, published: Container[str] | None = None) -> str:
    """Return the page as HTML: every text is escaped. Links lead to `published` addresses only; None: to any."""
    return template("page.html").render(page=page, pages=NAVIGATION, published=published)


def template(name: str) -> Template:
    """Return the template of pages (`page.html`), of their style or script, or of the feed."""
    return _environment().get_template(f"{name}.j2")


@functools.cache
def vega_script() -> str:
    """Return the script that draws charts: vega-embed with all that it needs, 0.9 MB."""
    from vl_convert import javascript_bundle

    bundle: str = javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("tasks.pages.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=lambda value: sanitize(value) if isinstance(value, str) and not isinstance(value, Markup) else value,
    )
    environment.filters |= {
        "plain_line": sanitize_line,
        "from_page": from_page,
        "inline": inline,
        "rows": rows,
        "linked": _linked,
        "inlined": _inlined,
        "policy": _policy,
        "as_json": as_json,
    }
    return environment


@functools.cache
def _inlined(name: str) -> Markup:
    """Return the style or script as it stands in a page that stands alone."""
    return Markup(template(name).render())


def _policy(page: Page) -> str:
    """Return what a browser may load for a page: files of the site, or what stands in a page that stands alone."""
    if page.address:  # in a folder, some browsers regard each file as a stranger to the others, which are no `self`
        return _POLICY.format("'self' file:", "'self' file:")
    hashes = (hashlib.sha256(_inlined(name).encode()).digest() for name in ("page.js", "page.css"))
    return _POLICY.format(*(f"'sha256-{base64.b64encode(each).decode()}'" for each in hashes))


@pass_context
def _linked(context: Context, values: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of a chart with the addresses in `to` as seen from the present page."""
    return [
        {name: value for name, value in row.items() if name != "to"}
        | ({"href": href} if (href := from_page(context, row["to"])) else {})
        if "to" in row
        else dict(row)
        for row in values
    ]


def as_json(value: Any) -> Markup:
    """Return JSON for a script, in which no text can act or end the script's element."""
    text = json.dumps(sanitize_data(value), default=str, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))
