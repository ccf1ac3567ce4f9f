"""Text and rows of tables as HTML, escaped. Templates call these: pages have tens of thousands of cells."""

import functools
from collections.abc import Container, Sequence

from jinja2 import pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape

from devices.foreign_text import plain, plain_line
from tasks.pages.report.page import Page
from tasks.results.table import Cell, Column, Table
from tasks.results.text import Code, Link, Tag, Text, Tone, parts_of

_WIDTH, _HEIGHT, _MARGIN = 90, 20, 2
"""Of a sparkline, in pixels."""


@pass_context
def from_page(context: Context, address: str) -> str:
    """Return an address of the site as seen from the present page; nothing where the page stands alone.

    Addresses outside of the site stay as they are.
    """
    if "://" in address:
        return address
    page: Page = context["page"]
    published: Container[str] | None = context["published"]
    if page.address is None or not (published is None or not address or address.partition("?")[0] in published):
        return ""
    return "../" * page.address.count("/") + address


@pass_context
def inline(context: Context, text: Text) -> Markup:
    """Return one line of text; names are set as code, and parts that lead to a published page are links."""
    return Markup("".join([_part(context, part) for part in parts_of(text)]))


@pass_context
def rows(context: Context, table: Table) -> Markup:
    """Return the rows of a table, a line each."""
    lines = []
    for cells in table.rows:
        made = [_cell(context, cell, column) for cell, column in zip(cells, table.columns, strict=True)]
        lines.append(f"    <tr>{''.join(made)}</tr>\n")
    return Markup("".join(lines))


def _part(context: Context, part: str) -> str:
    words = _escaped(str(part))
    if isinstance(part, Link) and (address := from_page(context, part.to)):
        return f'<a href="{escape(plain(address))}">{words}</a>'
    if isinstance(part, Code):
        return f"<code>{words}</code>"
    return f' <span class="tag">{words}</span>' if isinstance(part, Tag) else words


@functools.lru_cache(maxsize=50_000)
def _escaped(text: str) -> str:
    return str(escape(plain_line(text)))


def _cell(context: Context, cell: Cell, column: Column) -> str:
    text = cell.text
    words = _escaped(text) if type(text) is str else "".join([_part(context, part) for part in parts_of(text)])
    if cell.share is not None:
        bar = f'<svg class="share" width="{100 * cell.share:.1f}%" aria-hidden="true"></svg>'
        words = f"{bar}<span>{words}</span>"
    sort = "" if cell.sort is None else f' data-sort="{cell.sort:.12g}"'
    line = _sparkline(cell.line) if cell.line else ""
    return f"<td{_class(column.numeric, column.wraps, cell.tone)}{sort}>{words}{line}</td>"


@functools.cache
def _class(is_numeric: bool, wraps: bool, tone: Tone) -> str:
    names = " ".join(filter(None, ("num" if is_numeric else "", "long" if wraps else "", tone)))
    return f' class="{names}"' if names else ""


def _sparkline(values: Sequence[float | None]) -> str:
    """A value for each night as a line; a night without one is a gap. The cell beside it states the newest value."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return ""
    least, most = min(known), max(known)
    step = (_WIDTH - 2 * _MARGIN) / (len(values) - 1)
    height = _HEIGHT - 2 * _MARGIN
    path, command = "", "M"
    for night, value in enumerate(values):
        if value is None:
            command = "M"
            continue
        share = (value - least) / (most - least) if most > least else 0.5
        path += f"{command}{_MARGIN + step * night:.1f} {_HEIGHT - _MARGIN - height * share:.1f}"
        command = "L"
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
    return f'<svg class="spark" {size} aria-hidden="true"><path d="{path}"/></svg>'
