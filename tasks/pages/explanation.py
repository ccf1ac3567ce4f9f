"""What is known about a series, as a record: shown on a terminal, in Markdown, on a page, and as data."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tasks.pages.markdown import inline
from tasks.pages.page import Paragraph, Section
from tasks.results.table import Cell, Column, Table
from tasks.results.text import Text, joined, plain_text, separated


@dataclass(frozen=True)
class Fact:
    """Sentences under one title."""

    title: str
    sentences: Sequence[Text]


@dataclass(frozen=True)
class Explanation:
    """A series on a device in its newest night: the verdict, and what a person would ask next."""

    title: Text
    answer: Text
    """The verdict in a sentence."""
    facts: Sequence[Fact]
    others: Sequence[Text] = ()
    """The other series of the model, a line each."""
    figures: dict[str, Any] = field(default_factory=dict)
    """Names, figures and ids by the names of the view `verdict`; `session_ids` are those of the cell."""

    def lines(self) -> list[str]:
        """Return the lines that a terminal shows."""
        shown = [plain_text(self.title), plain_text(self.answer), ""]
        for fact in self.facts:
            shown += [f"{fact.title}: {plain_text(fact.sentences[0])}"]
            shown += [f"  {plain_text(sentence)}" for sentence in fact.sentences[1:]]
        if self.others:
            shown += ["", "Other series of the model:", *(f"  {plain_text(line)}" for line in self.others)]
        return shown

    def markdown(self) -> list[str]:
        """Return the lines for a pull request or a chat."""
        others = [Fact("Others", self.others)] if self.others else []
        points = markdown_points([*self.facts, *others])
        return [f"**{inline(self.title)}**", "", inline(self.answer), "", *points]

    def section(self, *, is_named: bool = False) -> Section:
        """Return the facts as a section of a page; `is_named` puts the series and the verdict before them."""
        rows = [[Cell(fact.title), Cell(separated(fact.sentences, " "))] for fact in self.facts]
        table = Table([Column("What"), Column("Answer", wraps=True)], rows)
        head = [Paragraph(joined(self.title, ": ", self.answer))] if is_named else []
        return Section("explained", "What is known", [*head, table])

    def data(self) -> dict[str, Any]:
        """Return everything for programs."""
        facts = {fact.title: [plain_text(sentence) for sentence in fact.sentences] for fact in self.facts}
        others = [plain_text(line) for line in self.others]
        return {
            "series": plain_text(self.title),
            "answer": plain_text(self.answer),
            **self.figures,
            "facts": facts,
            "others": others,
        }


def markdown_points(facts: Sequence[Fact]) -> list[str]:
    """Return facts as points of Markdown, a line each."""
    return [f"- {inline(joined(f'{fact.title}: ', separated(fact.sentences, ' ')))}" for fact in facts]
