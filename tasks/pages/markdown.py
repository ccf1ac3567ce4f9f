"""A report as Markdown, for Prefect's artifacts, pull requests and chat."""

import re
from collections.abc import Iterator, Sequence

from devices.untrusted import sanitize, sanitize_line
from tasks.pages.page import Block, Fold, Heading, Log, Page, Paragraph, Points
from tasks.results.table import Cell, Table
from tasks.results.text import Code, Tag, Text, parts_of

_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~&$])")


def as_markdown(page: Page) -> str:
    """Return the page as GitHub-flavoured Markdown; charts are left out, their numbers are in the tables."""
    figures = " · ".join(f"{escaped(figure.value)} {escaped(figure.label)}" for figure in page.figures)
    blocks = [f"# {escaped(page.title)}", inline(page.subtitle), f"**{figures}**"]
    blocks.append(" ".join(inline(sentence) for sentence in page.summary))
    for position, section in enumerate(page.sections, 1):
        blocks.append(f"## {position}. {escaped(section.title)}")
        for block in section.blocks:
            blocks += _block(block)
    return "\n\n".join([*(block for block in blocks if block), f"*{escaped(page.footer)}*"]) + "\n"


def escaped(text: str) -> str:
    """Return text on one line with every character escaped that Markdown or HTML would interpret."""
    return _SPECIAL.sub(r"\\\1", sanitize_line(text))


def inline(text: Text, *, in_table: bool = False) -> str:
    """Return one line of text, names as code spans."""
    return "".join(_part(part, in_table=in_table) for part in parts_of(text))


def _part(part: str, *, in_table: bool) -> str:
    if isinstance(part, Code):
        return _code_span(part, in_table=in_table)
    return f" ({escaped(part)})" if isinstance(part, Tag) else escaped(part)


def _code_span(text: str, *, in_table: bool) -> str:
    """Return a code span; it escapes only a table's bar, and its fence is longer than any run of backticks inside."""
    shown = sanitize_line(text).replace("|", "\\|") if in_table else sanitize_line(text)
    fence = _fence(shown, shortest=1)
    pad = " " if shown.startswith("`") or shown.endswith("`") or not shown.strip() else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def _fence(text: str, *, shortest: int) -> str:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    return "`" * max(shortest, longest + 1)


def _block(block: Block) -> Iterator[str]:
    match block:
        case Paragraph(text=text):
            yield inline(text)
        case Heading(text=text):
            yield f"### {inline(text)}"
        case Points(items=items, ordered=ordered):
            marks = [f"{position}." if ordered else "-" for position in range(1, len(items) + 1)]
            yield "\n".join(f"{mark} {inline(item)}" for mark, item in zip(marks, items, strict=True))
        case Table():
            yield table_markdown(block)
        case Log(text=text):
            shown = sanitize(text.rstrip())
            fence = _fence(shown, shortest=3)
            yield f"{fence}text\n{shown}\n{fence}"
        case Fold(title=title, blocks=blocks, in_markdown=in_markdown):
            yield f"**{inline(title)}**" + ("" if in_markdown else " (listed in the HTML report)")
            for inner in blocks if in_markdown else ():
                yield from _block(inner)


def table_markdown(table: Table) -> str:
    """Return a table with its caption and the meanings of its columns; empty without rows."""
    if not table.rows:
        return ""
    heads = [escaped(f"{column.title} ({column.unit})" if column.unit else column.title) for column in table.columns]
    rules = ["---:" if column.numeric else "---" for column in table.columns]
    lines = [_line(heads), _line(rules), *(_line([_cell(cell) for cell in row]) for row in table.rows)]
    meanings = [f"{escaped(column.title)}: {escaped(column.meaning)}" for column in table.columns if column.meaning]
    parts = [
        escaped(table.caption),
        "\n".join(lines),
        f"{'; '.join(meanings)}." if meanings else "",
        f"{escaped(table.hidden)}." if table.hidden else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _cell(cell: Cell) -> str:
    text = inline(cell.text, in_table=True)
    return f"**{text}**" if cell.tone in ("flag", "bad") else text


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
