"""What a report is made of, before it becomes HTML or Markdown: sections of paragraphs, tables and charts.

Both outputs are made from the same page, so their contents agree. Text is plain; a name that comes from outside (a
model, an operator, a file) is a `Code`, and both outputs escape every text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

Tone = Literal["", "flag", "quiet", "bad", "good"]
"""flag: needs attention; quiet: minor, or not measured; bad: something went wrong; good: it got better."""


class Code(str):
    """Text shown as code: names, ids and paths."""


class Link(str):
    """Text that leads to a page of the site; where there is no site, it is text and nothing more."""

    to: str
    """The address of the page, relative to the home page, or a URL."""

    def __new__(cls, text: str, to: str) -> "Link":
        """Return `text` that leads to the page `to`."""
        link = super().__new__(cls, text)
        link.to = to
        return link


class CodeLink(Link, Code):
    """A name that leads to a page of the site."""


class Tag(str):
    """A word that marks the text before it, such as `emulated`."""


Text = str | tuple[str, ...]
"""One line of text; in a tuple, parts that are `Code` or `Tag` are set apart from plain ones."""


def parts_of(text: Text) -> tuple[str, ...]:
    """The parts of a text; plain text is one."""
    return (text,) if isinstance(text, str) else text


def more_rows(count: int, where: Text) -> str:
    """Return the line below a table of which `count` rows are hidden, and where they are; empty if none is."""
    return f"{count:,} more rows: {where}" if count > 0 else ""


@dataclass(slots=True)
class Cell:
    """A cell of a table: its text, the number that it sorts by, and what HTML alone draws in it.

    `share`, 0 to 1, is drawn behind the text; `line`, a value for each night, beside it. Pages have hundreds of
    thousands, so it is not frozen, which takes three times to make; nobody changes one.
    """

    text: Text
    sort: float | None = None
    tone: Tone = ""
    share: float | None = None
    line: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class Column:
    """A column's head; it holds the unit of a numeric column, so that the cells are numbers only."""

    title: str
    unit: str = ""
    meaning: str = ""
    """What the column is, in half a sentence; listed below the table."""
    numeric: bool = field(default=False, kw_only=True)
    wraps: bool = field(default=False, kw_only=True)
    """Whether its cells may break into several lines."""
    to: str = field(default="", kw_only=True)
    """The page of the site that its head leads to."""


@dataclass(frozen=True)
class Paragraph:
    """Sentences."""

    kind: ClassVar[str] = "paragraph"
    text: Text
    tone: Tone = ""


@dataclass(frozen=True)
class Points:
    """A list of sentences; `ordered` if their order matters."""

    kind: ClassVar[str] = "points"
    items: Sequence[Text]
    ordered: bool = False


@dataclass(frozen=True)
class Table:
    """Rows under heads; a table without rows is left out."""

    kind: ClassVar[str] = "table"
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""
    hidden: str = ""
    """How many rows are not shown, and where they are."""
    filters: Sequence[str] = ()
    """Titles of columns by whose values readers choose rows (HTML only)."""

    def with_columns(self, columns: Sequence[Column], cells: Sequence[Sequence[Cell]]) -> "Table":
        """This table with more columns on its right, and the cells of each row under them."""
        rows = [[*left, *right] for left, right in zip(self.rows, cells, strict=True)]
        return replace(self, columns=[*self.columns, *columns], rows=rows)

    def shortened(self, most: int, where: Text) -> "Table":
        """This table with at most `most` rows; what is hidden is counted, and `where` names the place to find it."""
        hidden = more_rows(len(self.rows) - most, where)
        return replace(self, rows=self.rows[:most], hidden=hidden) if hidden else self


@dataclass(frozen=True)
class Bar:
    """One bar: `length` and `tick` are shares, 0 to 1, of the longest of its chart."""

    label: str
    length: float
    tick: float | None
    value: str
    hue: Literal["on", "off", "plain"]


@dataclass(frozen=True)
class BarChart:
    """Bars on one scale under a title (HTML only: a table beside it holds the same numbers)."""

    kind: ClassVar[str] = "bars"
    title: str
    bars: Sequence[Bar]


@dataclass(frozen=True)
class Segment:
    """A part of a stacked bar: it starts at `start` and is `share` long, both from 0 to 1."""

    category: str
    start: float
    share: float


@dataclass(frozen=True)
class StackChart:
    """Stacked bars (HTML only: a table beside it holds the same numbers); the last category is the rest, drawn grey."""

    kind: ClassVar[str] = "stack"
    title: str
    categories: Sequence[str]
    bars: Sequence[tuple[str, Sequence[Segment]]]


@dataclass(frozen=True)
class Chart:
    """A chart that a browser draws (pages of the site only), and the table of its values behind it.

    `spec` is a Vega-Lite specification without its data; `values` are the rows that it draws, and `columns` are the
    fields that the table shows, with their heads.
    """

    kind: ClassVar[str] = "chart"
    title: str
    spec: Mapping[str, Any]
    values: Sequence[Mapping[str, Any]]
    columns: Mapping[str, str]


@dataclass(frozen=True)
class Choice:
    """Two names to choose, A and B, which lead to the page that compares them (pages of the site only).

    `names` are those that are shown, each with its part of an address; `address` has the places `{a}` and `{b}`.
    """

    kind: ClassVar[str] = "choice"
    title: str
    names: Mapping[str, str]
    address: str
    command: str
    """What to type instead where the page of a pair is not published, with the same places."""


@dataclass(frozen=True)
class Histories:
    """The histories of the series of a device (HTML only); a script shows the one that the address names.

    Their data are files beside the page: one more night changes one file of each device, and no page of a series.
    """

    kind: ClassVar[str] = "histories"
    files: Sequence[str]
    """The addresses of the data, the oldest first."""
    series: Mapping[str, Mapping[str, Any]]
    """What the page states of each series, by its id."""


@dataclass(frozen=True)
class Log:
    """Lines as a program printed them."""

    kind: ClassVar[str] = "log"
    text: str


@dataclass(frozen=True)
class Fold:
    """Blocks behind a title that opens them; Markdown shows them below the title, or only the title."""

    kind: ClassVar[str] = "fold"
    title: Text
    blocks: Sequence["Block"]
    is_open: bool = False
    in_markdown: bool = True


@dataclass(frozen=True)
class Heading:
    """A heading inside a section."""

    kind: ClassVar[str] = "heading"
    text: Text


Block = Paragraph | Points | Table | BarChart | StackChart | Chart | Choice | Histories | Log | Fold | Heading


@dataclass(frozen=True)
class Section:
    """A numbered part of the report: the target of links to `anchor`, and its sentences for the summary."""

    anchor: str
    title: str
    blocks: Sequence[Block]
    summary: Sequence[Text] = ()


@dataclass(frozen=True)
class Figure:
    """A number at the head of the page."""

    value: str
    label: str
    tone: Tone = ""


@dataclass(frozen=True)
class Page:
    """A complete page."""

    title: str
    subtitle: Text
    figures: Sequence[Figure]
    summary: Sequence[Text]
    sections: Sequence[Section]
    footer: str
    address: str | None = None
    """Where the page is in a site, such as `nights/2026-11-22.html`; None for a file that stands alone."""
    answer: Text = ()
    """The sentence that answers first."""
    tone: Tone = ""
    """Of the answer."""

    @property
    def has_charts(self) -> bool:
        """Whether a browser has to draw anything."""
        return any(_has_chart(section.blocks) for section in self.sections)

    @property
    def has_histories(self) -> bool:
        """Whether the page can show the history of a series."""
        return any(isinstance(block, Histories) for section in self.sections for block in section.blocks)

    @property
    def is_of_pages_that_go(self) -> bool:
        """Whether a script makes links to pages that may not be published."""
        return any(isinstance(block, Histories | Choice) for section in self.sections for block in section.blocks)


def _has_chart(blocks: Sequence[Block]) -> bool:
    return any(isinstance(block, Chart) or (isinstance(block, Fold) and _has_chart(block.blocks)) for block in blocks)
