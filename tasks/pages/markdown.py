"""A report as Markdown, for Prefect's artifacts, pull requests and chat."""

import re
from collections.abc import Iterator

from devices.untrusted import sanitize, sanitize_line
from tasks.pages.page import Block, Command, Explanation, Fold, Heading, Log, Page, Paragraph, Points
from tasks.results.table import Table
from tasks.results.text import Code, Tag, Text, joined, split_text

_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~&$])")


def as_markdown(page: Page) -> str:
    """Return the page as GitHub-flavoured Markdown; charts are left out, their numbers are in the tables."""
    figures = " · ".join(f"{escaped(figure.value)} {escaped(figure.label)}" for figure in page.figures)
    blocks = [f"# {escaped(page.title)}", inline(page.subtitle), f"**{figures}**"]
    blocks.append(" ".join(inline(sentence) for sentence in page.summary))
    for position, section in enumerate(page.sections, 1):
        blocks.append(f"## {position}. {escaped(section.title)}")
        for block in section.blocks:
            blocks += _block_markdown(block)
    return "\n\n".join([*(block for block in blocks if block), f"*{escaped(page.footer)}*"]) + "\n"


def escaped(text: str) -> str:
    """Return text on one line with every character escaped that Markdown or HTML would interpret."""
    return _SPECIAL.sub(r"\\\1", sanitize_line(text))


def inline(text: Text, *, in_table: bool = False) -> str:
    """Return one line of text, names as code spans; in a table, a span escapes the bars of its name."""
    written = []
    for part in split_text(text):
        if isinstance(part, Code):
            name = sanitize_line(part).replace("|", "\\|") if in_table else sanitize_line(part)
            fence = _fence(name, shortest=1)
            pad = " " if name.startswith("`") or name.endswith("`") or not name.strip() else ""
            written.append(f"{fence}{pad}{name}{pad}{fence}")
        else:
            written.append(f" ({escaped(part)})" if isinstance(part, Tag) else escaped(part))
    return "".join(written)


def _fence(text: str, *, shortest: int) -> str:
    """Return more backticks than any run of them in the text has."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    return "`" * max(shortest, longest + 1)


def _block_markdown(block: Block) -> Iterator[str]:
    """Yield the paragraphs of a block; none of a chart."""
    match block:
        case Paragraph(text=text) | Explanation(text=text):
            yield inline(text)
        case Heading(text=text):
            yield f"### {inline(text)}"
        case Points(items=items, ordered=ordered):
            marks = [f"{position}." if ordered else "-" for position in range(1, len(items) + 1)]
            yield "\n".join(f"{mark} {inline(item)}" for mark, item in zip(marks, items, strict=True))
        case Table():
            yield table_markdown(block)
        case Log(text=text):
            code = sanitize(text.rstrip())
            fence = _fence(code, shortest=3)
            yield f"{fence}text\n{code}\n{fence}"
        case Command(text=text, label=label):
            yield inline(joined(label, " " if label else "", (Code(text),)))
        case Fold(title=title, blocks=blocks, in_markdown=in_markdown):
            yield f"**{inline(title)}**" + ("" if in_markdown else " (listed in the HTML report)")
            for inner in blocks if in_markdown else ():
                yield from _block_markdown(inner)


def table_markdown(table: Table) -> str:
    """Return a table with its caption and the meanings of its columns; empty without rows."""
    if not table.rows:
        return ""
    table, common = table.condensed()
    heads = [escaped(f"{column.title} ({column.unit})" if column.unit else column.title) for column in table.columns]
    rules = ["---:" if column.numeric else "---" for column in table.columns]
    lines = [heads, rules]
    for row in table.rows:
        texts = [(inline(cell.text, in_table=True), cell.tone in ("flag", "bad")) for cell in row]
        lines.append([f"**{text}**" if is_bold else text for text, is_bold in texts])
    meanings = [f"{escaped(column.title)}: {escaped(column.meaning)}" for column in table.columns if column.meaning]
    equal = [f"{escaped(each.column.title)} {inline(each.cell.text)} {escaped(each.column.unit)}" for each in common]
    parts = [
        escaped(table.caption),
        f"All {len(table.rows):,} rows: {'; '.join(map(str.strip, equal))}." if common else "",
        "\n".join(f"| {' | '.join(line)} |" for line in lines),
        f"{'; '.join(meanings)}." if meanings else "",
        f"{inline(table.hidden)}." if table.hidden else "",
    ]
    return "\n\n".join(part for part in parts if part)
