"""What a report is made of, before it becomes HTML or Markdown: sections of paragraphs, tables and charts.

Both outputs are made from the same page, so their contents agree. Text is plain; a name that comes from outside (a
model, an operator, a file) is a `Code`, and both outputs escape every text.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

Tone = Literal["", "flag", "quiet", "bad"]
"""flag: needs attention; quiet: of minor importance, or not measured; bad: something went wrong."""


class Code(str):
    """Text shown as code: names, ids and paths."""


class Tag(str):
    """A word that marks the text before it, such as `emulated`."""


Text = str | tuple[str, ...]
"""One line of text; in a tuple, parts that are `Code` or `Tag` are set apart from plain ones."""


def parts_of(text: Text) -> tuple[str, ...]:
    """The parts of a text; plain text is one."""
    return (text,) if isinstance(text, str) else text


@dataclass(frozen=True)
class Cell:
    """A cell of a table: its text, the number that it sorts by, and a share from 0 to 1 drawn behind it (HTML only)."""

    text: Text
    sort: float | None = None
    tone: Tone = ""
    share: float | None = None


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

    def with_columns(self, columns: Sequence[Column], cells: Sequence[Sequence[Cell]]) -> "Table":
        """This table with more columns on its right, and the cells of each row under them."""
        rows = [[*left, *right] for left, right in zip(self.rows, cells, strict=True)]
        return Table([*self.columns, *columns], rows, self.caption)


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


Block = Paragraph | Points | Table | BarChart | StackChart | Log | Fold | Heading


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
    """A complete report."""

    title: str
    subtitle: str
    figures: Sequence[Figure]
    summary: Sequence[Text]
    sections: Sequence[Section]
    footer: str
