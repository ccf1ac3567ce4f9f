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
from tasks.pages.page import Block, Page
from tasks.pages.sparkline import sparkline
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
"""What a browser may load for a page of the site."""
_NOT_PLAIN = ("\\u", "\\b", "\\f", "\\r", "\x7f")
"""What JSON contains if a text in it has other characters than printable ASCII, tabs and newlines."""
_TIME_UNITS = ("ms", "\u00b5s", "s")
_CHANGES = ("Change", "Largest change")
_MAX_UNBROKEN = 24
"""Characters of a cell that stays on one line."""
_MAX_SHORT = 120
"""Of a cell in a column that is not wide."""


def as_html(page: Page, published: Container[str] | None = None) -> str:
    """Return the page as HTML. Links lead only to addresses in `published`; None: to any."""
    return template("page.html").render(page=page, pages=NAVIGATION, published=published)


def as_fragment(blocks: Sequence[Block], address: str, published: Container[str] | None) -> Markup:
    """Return blocks as HTML that a script adds to the page at an address; links are as in `as_html`."""
    page = Page("", address=address)
    return Markup(template("fragment.html").render(page=page, blocks=blocks, published=published))


def template(name: str) -> Template:
    """Return the template of pages (`page.html`), of a style or script (`page.css`), or of the feed."""
    return _environment().get_template(f"{name}.j2")


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
        "sparkline": lambda values, *how: Markup(sparkline(values, *how)),
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
    kinds = _column_kinds(table)
    for cells in table.rows:
        line = ""
        for cell, kind in zip(cells, kinds, strict=True):
            text = cell.text
            words = _escaped(text) if type(text) is str else str(inline(context, text))
            if cell.share is not None:
                bar = f'<svg class="share" width="{100 * cell.share:.1f}%" aria-hidden="true"></svg>'
                words = f"{bar}<span>{words}</span>"
            names = " ".join(filter(None, (kind, cell.tone)))
            style = f' class="{names}"' if names else ""
            sort = "" if cell.sort is None else f' data-sort="{cell.sort:.12g}"'
            line += f"<td{style}{sort}>{words}{sparkline(cell.line) if cell.line else ''}</td>"
        lines.append(f"    <tr>{line}</tr>\n")
    return Markup("".join(lines))


def _column_kinds(table: Table) -> list[str]:
    """Return the style of each column: `num`, `long` or `essay` (its cells wrap), and `main`: a card shows it first."""
    kinds = []
    main = next((at for at, column in enumerate(table.columns) if column.unit in _TIME_UNITS), None)
    if main is None:
        main = next((at for at, column in enumerate(table.columns) if at and column.numeric), None)
    for at, column in enumerate(table.columns):
        longest = max(_length(row[at].text) for row in table.rows)
        is_long = column.wraps or longest > _MAX_UNBROKEN
        is_main = at == main or column.title in _CHANGES
        length = "essay" if is_long and longest > _MAX_SHORT else "long" if is_long else ""
        words = ("num" if column.numeric else "", length, "main" if is_main and at else "")
        kinds.append(" ".join(filter(None, words)))
    return kinds


def _length(text: Text) -> int:
    return len(text) if isinstance(text, str) else sum(map(len, text))


@functools.lru_cache(maxsize=50_000)
def _escaped(text: str) -> str:
    return str(escape(sanitize_line(text)))


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
        case "page.js":
            return File("text/javascript", template(name).render())
        case "series.js":
            return File("text/javascript", template("scripts/series.js").render())
        case "published.js":
            # Of pages that scripts link to, those that may be missing.
            folders = ("nights/", "cells/", "sessions/", "comparisons/", "changes/")
            linked = None if published is None else sorted(name for name in published if name.startswith(folders))
            return File("text/javascript", f"window.farmPublished = {as_json(linked)};\n")
        case "names.js":
            return File("text/javascript", f"window.farmNames = {as_json(list(names))};\n")
    return None
