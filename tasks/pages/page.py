"""The parts of a page, before it becomes HTML or Markdown: sections of paragraphs, tables and charts.

Both outputs are made from the same page, so their contents agree. Text is plain; a name that comes from outside (a
model, an operator, a file) is a `Code`, and both outputs escape every text.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from tasks.pages.charts import BarChart, Drawing, StackChart
from tasks.results.cells import CellNames, NamedRowT, by_cell_or_pair
from tasks.results.table import Table
from tasks.results.text import Code, Text, Tone, counted, joined

if TYPE_CHECKING:  # of all that prints a table, few import what reads the warehouse
    from tasks.results.glances.incident_cards import IncidentCard

MAX_LISTED = 400
"""Rows of a table on a page of the site that lists."""
_MAX_UNFOLDED_BARS = 40


@dataclass(frozen=True)
class Paragraph:
    kind: ClassVar[str] = "paragraph"
    text: Text
    tone: Tone = ""
    only_with_link: bool = False
    """Whether it is left out where none of its links leads to a published page."""


@dataclass(frozen=True)
class Explanation:
    """How to read what follows, behind a title that opens it."""

    kind: ClassVar[str] = "explanation"
    text: Text


@dataclass(frozen=True)
class Points:
    """A list of sentences; `ordered` if their order matters."""

    kind: ClassVar[str] = "points"
    items: Sequence[Text]
    ordered: bool = False


@dataclass(frozen=True)
class ChoiceOfPair:
    """Things of one kind, two of which can be chosen as A and B.

    `options` has the label of each, its name in a command, and its part of an address; `address` contains the
    placeholders `{a}` and `{b}`.
    """

    title: str
    name: str
    """What one of them is called in a sentence."""
    options: Sequence[tuple[str, str, str]]
    address: str
    field: str
    """The column of the page that names both sides, which no filter can limit; empty for none."""


@dataclass(frozen=True)
class Choice:
    """A form that opens the page that compares A and B of a kind (pages of the site only).

    `filters` has for each column by which the page can be limited the option of the command, and label and value of
    each choice.
    """

    kind: ClassVar[str] = "choice"
    kinds: Sequence[ChoiceOfPair]
    filters: Mapping[str, tuple[str, Sequence[tuple[str, str]]]]
    same: str
    """What the form shows if A is B, with the placeholders `{kind}` and `{value}`."""

    @property
    def data(self) -> dict[str, Any]:
        """What the script of the form reads."""
        return {"kinds": [vars(each) for each in self.kinds], "same": self.same}


@dataclass(frozen=True)
class Histories:
    """The histories of the series of a device (HTML only); a script shows the one that the address names."""

    kind: ClassVar[str] = "histories"
    device: str
    files: Sequence[str]
    """The addresses of the files with the data, the oldest first."""
    series: Mapping[str, Mapping[str, Any]]
    """What the script shows of each series besides its nights, by its id."""
    notes: Sequence[Mapping[str, Any]]
    """Decisions and notes of users, which series name by their places."""
    incidents: Mapping[str, str]
    """Each open incident in words, by its id."""
    metrics: Mapping[str, str]
    """The unit of each judged figure, by its name."""


@dataclass(frozen=True)
class IncidentCards:
    """A card for each incident (HTML only); `hidden` is where others are, empty if all are here."""

    kind: ClassVar[str] = "incident_cards"
    cards: "Sequence[IncidentCard]"
    hidden: Text = ""


@dataclass(frozen=True)
class Log:
    """Lines as a program printed them; `marked` is the index of the line to look at."""

    kind: ClassVar[str] = "log"
    text: str
    marked: int | None = None


@dataclass(frozen=True)
class Command:
    """A command to type, with a button that copies it; `label` is what it does."""

    kind: ClassVar[str] = "command"
    text: str
    label: Text = ""


@dataclass(frozen=True)
class ViewLink:
    """A button that copies the address of the page as it is shown (pages of the site only)."""

    kind: ClassVar[str] = "view_link"


@dataclass(frozen=True)
class Fold:
    """Blocks behind a title that opens them; Markdown shows only the title unless `in_markdown`."""

    kind: ClassVar[str] = "fold"
    title: Text
    blocks: Sequence["Block"]
    is_open: bool = False
    in_markdown: bool = True

    def filled(self, result: str, blocks: Sequence["Block"]) -> "Fold":
        """Return this fold with a result at the end of its title, and with blocks."""
        return replace(self, title=joined(self.title, f" \u2014 {result}"), blocks=blocks)


@dataclass(frozen=True)
class Heading:
    kind: ClassVar[str] = "heading"
    text: Text


Block = (
    Paragraph
    | Explanation
    | Points
    | Table
    | Drawing
    | Choice
    | Histories
    | IncidentCards
    | Log
    | Command
    | ViewLink
    | Fold
    | Heading
)


@dataclass(frozen=True)
class Section:
    """A numbered part of a page: the target of links to `anchor`, with its sentences for the summary of the page."""

    anchor: str
    title: str
    blocks: Sequence[Block]
    summary: Sequence[Text] = ()
    is_folded: bool = False
    """Whether only its title is shown until a reader opens it, and on paper (HTML only)."""


@dataclass(frozen=True)
class Figure:
    """A number at the head of a page."""

    value: str
    label: str
    tone: Tone = ""


@dataclass(frozen=True)
class Page:
    title: str
    sections: Sequence[Section] = ()
    subtitle: Text = ""
    answer: Text = ()
    """The result in one sentence, at the head of the page."""
    tone: Tone = ""
    """The tone of the answer."""
    figures: Sequence[Figure] = ()
    summary: Sequence[Text] = ()
    footer: str = ""
    address: str | None = None
    """The address in a site, such as `nights/2026-11-22.html`; None for a file that stands alone."""

    def has(self, *kinds: str) -> bool:
        """Return whether any block outside of folds is of one of these kinds, such as `chart`."""
        return any(block.kind in kinds for section in self.sections for block in section.blocks)


def folded(sections: Sequence[Section], *, is_open: Container[str]) -> list[Section]:
    """Return sections, those folded whose anchor is not in `is_open`."""
    return [section if section.anchor in is_open else replace(section, is_folded=True) for section in sections]


def cell_folds(rows: Sequence[NamedRowT]) -> Iterator[tuple[list[NamedRowT], Fold]]:
    """Yield the rows of each cell with an empty fold of its name, the first one of a model open."""
    names = CellNames(rows)
    models = set()
    for cell in by_cell_or_pair(rows).values():
        first = cell[0]
        yield cell, Fold((Code(first.model), f" \u00b7 {names.label(first)}"), [], is_open=first.model not in models)
        models.add(first.model)


def fold_if_long(chart: BarChart | StackChart, model: str) -> Block:
    """Return the chart of a model's cells, in a fold if it has over 40 bars."""
    if len(chart.bars) <= _MAX_UNFOLDED_BARS:
        return chart
    return Fold((Code(model), f": chart of {counted(len(chart.bars), 'cell')}"), [chart])
