"""Pages as HTML: files that stand alone, or pages of the site with their style and scripts as files beside them.

Every text is escaped. Rows of tables are written here and not in a template: pages have tens of thousands of cells.
"""

import base64
import functools
import hashlib
import json
from collections.abc import Collection, Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template, pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape

from devices.untrusted import sanitize, sanitize_data, sanitize_line
from tasks.pages.page import Page
from tasks.results.addresses import INCIDENTS_PAGE
from tasks.results.table import Table
from tasks.results.text import Code, Link, Tag, Text, split_text

NAVIGATION = (
    ("This morning", "index.html"),
    ("Incidents", INCIDENTS_PAGE),
    ("Nights", "nights.html"),
    ("Models", "models.html"),
    ("Devices", "devices.html"),
    ("SME2", "sme2.html"),
    ("Compare", "compare.html"),
    ("Runners", "runners.html"),
)
"""Title and address of the pages that every page links to."""
_POLICY = "default-src 'none'; script-src {}; style-src {}; img-src data:; base-uri 'none'; form-action 'none'"
SITE_POLICY = _POLICY.format("'self'", "'self'")
"""What a browser may load for a page of the site; charts need neither `eval` nor styles inside a page."""
_NOT_PLAIN = ("\\u", "\\b", "\\f", "\\r", "\x7f")
"""What JSON contains if a text in it has other characters than printable ASCII, tabs and newlines."""
_WIDTH, _HEIGHT, _MARGIN = 90, 20, 2
"""Of a sparkline, in pixels."""


def as_html(page: Page, published: Container[str] | None = None) -> str:
    """Return the page as HTML. Links lead only to addresses in `published`; None: to any."""
    return template("page.html").render(page=page, pages=NAVIGATION, published=published)


def template(name: str) -> Template:
    """Return the template of pages (`page.html`), of a style or script (`page.css`), or of the feed."""
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
        loader=PackageLoader("tasks.pages"),
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
        "inlined": _inlined,
        "policy": _policy,
        "as_json": as_json,
    }
    return environment


@functools.cache
def _inlined(name: str) -> Markup:
    """Return the style or script that is inside of a page that stands alone."""
    return Markup(template(name).render())


def _policy(page: Page) -> str:
    """Return the content security policy of a page: files of the site, or the style and script inside the page."""
    if page.address:  # opened from a folder, each file is a separate origin in some browsers, so `self` is not enough
        return _POLICY.format("'self' file:", "'self' file:")
    hashes = (hashlib.sha256(_inlined(name).encode()).digest() for name in ("page.js", "page.css"))
    return _POLICY.format(*(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in hashes))


def as_json(value: Any) -> Markup:
    """Return JSON for a script, sanitized, in which no text can end the script's element. Raises ValueError for NaN."""
    text = _as_json_text(value)
    if any(sign in text for sign in _NOT_PLAIN):  # few texts are not plain, and to sanitize each takes long
        text = _as_json_text(sanitize_data(value))
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def _as_json_text(value: Any) -> str:
    return json.dumps(value, default=str, separators=(",", ":"), allow_nan=False)


@pass_context
def from_page(context: Context, address: str) -> str:
    """Return an address of the site relative to the page; empty if the page stands alone, or if it is not published.

    Addresses outside of the site stay as they are, and so do sections of the page, such as `#matrix`.
    """
    if "://" in address or address.startswith("#"):
        return address
    page: Page = context["page"]
    published: Container[str] | None = context["published"]
    if page.address is None or not (published is None or not address or address.partition("?")[0] in published):
        return ""
    return "../" * page.address.count("/") + address


@pass_context
def inline(context: Context, text: Text) -> Markup:
    """Return one line of text with names as code, and links to published pages."""
    written = []
    for part in split_text(text):
        words = _escaped(str(part))
        if isinstance(part, Link) and (address := from_page(context, part.to)):
            words = f'<a href="{escape(sanitize(address))}">{words}</a>'
        elif isinstance(part, Code):
            words = f"<code>{words}</code>"
        elif isinstance(part, Tag):
            words = f' <span class="tag">{words}</span>'
        written.append(words)
    return Markup("".join(written))


@pass_context
def rows(context: Context, table: Table) -> Markup:
    """Return the rows of a table, a line each."""
    lines = []
    for cells in table.rows:
        line = ""
        for cell, column in zip(cells, table.columns, strict=True):
            text = cell.text
            words = _escaped(text) if type(text) is str else str(inline(context, text))
            if cell.share is not None:
                bar = f'<svg class="share" width="{100 * cell.share:.1f}%" aria-hidden="true"></svg>'
                words = f"{bar}<span>{words}</span>"
            names = " ".join(filter(None, ("num" if column.numeric else "", "long" if column.wraps else "", cell.tone)))
            style = f' class="{names}"' if names else ""
            sort = "" if cell.sort is None else f' data-sort="{cell.sort:.12g}"'
            line += f"<td{style}{sort}>{words}{_sparkline(cell.line) if cell.line else ''}</td>"
        lines.append(f"    <tr>{line}</tr>\n")
    return Markup("".join(lines))


@functools.lru_cache(maxsize=50_000)
def _escaped(text: str) -> str:
    return str(escape(sanitize_line(text)))


def _sparkline(values: Sequence[float | None]) -> str:
    """Return values, one for each night, as an SVG line with a gap for None; empty for fewer than two."""
    numbers = [value for value in values if value is not None]
    if len(numbers) < 2:
        return ""
    low, high = min(numbers), max(numbers)
    step = (_WIDTH - 2 * _MARGIN) / (len(values) - 1)
    height = _HEIGHT - 2 * _MARGIN
    path, command = "", "M"
    for night, value in enumerate(values):
        if value is None:
            command = "M"
            continue
        share = (value - low) / (high - low) if high > low else 0.5
        path += f"{command}{_MARGIN + step * night:.1f} {_HEIGHT - _MARGIN - height * share:.1f}"
        command = "L"
    # Hidden from screen readers: a cell beside it states the newest value.
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
    return f'<svg class="spark" {size} aria-hidden="true"><path d="{path}"/></svg>'


@dataclass(frozen=True)
class File:
    """The content of an address; `kind` is its media type."""

    kind: str
    content: str


def asset(name: str, names: Iterable[tuple[str, str]], published: Collection[str] | None) -> File | None:
    """Return a style or script, with the `names` of the search and links to `published` (None: all); None: no such."""
    match name:
        case "page.css":
            return File("text/css", template(name).render())
        case "page.js" | "series.js":
            return File("text/javascript", template(name).render())
        case "published.js":
            # Of pages that scripts link to, those that may be missing.
            folders = ("nights/", "cells/", "sessions/", "comparisons/")
            linked = None if published is None else sorted(name for name in published if name.startswith(folders))
            return File("text/javascript", f"window.farmPublished = {as_json(linked)};\n")
        case "vega.js":
            return File("text/javascript", vega_script())
        case "names.js":
            return File("text/javascript", f"window.farmNames = {as_json(list(names))};\n")
    return None
