"""The explanation of a series on a terminal, in Markdown and as a section of a page."""

from collections.abc import Sequence

from tasks.pages.markdown import inline
from tasks.pages.page import Paragraph, Section
from tasks.results.explanation import Explanation
from tasks.results.table import Cell, Column, Table
from tasks.results.text import Fact, joined, plain_text, separated


def terminal_lines(explanation: Explanation) -> list[str]:
    lines = [plain_text(explanation.title), plain_text(explanation.answer), ""]
    for fact in explanation.facts:
        lines += [f"{fact.title}: {plain_text(fact.sentences[0])}"]
        lines += [f"  {plain_text(sentence)}" for sentence in fact.sentences[1:]]
    if explanation.others:
        lines += ["", "Other series of the model:", *(f"  {plain_text(line)}" for line in explanation.others)]
    return lines


def markdown_lines(explanation: Explanation) -> list[str]:
    """Return Markdown lines for a pull request or a chat: title, answer, and a list item for each fact."""
    others = [Fact("Others", explanation.others)] if explanation.others else []
    points = markdown_points([*explanation.facts, *others])
    return [f"**{inline(explanation.title)}**", "", inline(explanation.answer), "", *points]


def markdown_points(facts: Sequence[Fact]) -> list[str]:
    return [f"- {inline(joined(f'{fact.title}: ', separated(fact.sentences, ' ')))}" for fact in facts]


def section(explanation: Explanation) -> Section:
    """Return the series, its verdict and a table of the facts, without the other series of the model."""
    rows = [[Cell(fact.title), Cell(separated(fact.sentences, " "))] for fact in explanation.facts]
    table = Table([Column("What"), Column("Answer", wraps=True)], rows)
    head = Paragraph(joined(explanation.title, ": ", explanation.answer))
    return Section("explained", "What is known", [head, table])
