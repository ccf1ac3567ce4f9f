"""The parts of a page, before it becomes HTML or Markdown: sections of paragraphs, tables and charts.

Both outputs are made from the same page, so their contents agree. Text is plain; a name that comes from outside (a
model, an operator, a file) is a `Code`, and both outputs escape every text.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from tasks.results.cells import CellNames, NamedRowT, by_cell_or_pair
from tasks.results.table import Table
from tasks.results.text import Code, Text, Tone, counted, joined

Hue = Literal["on", "off", "plain"]
MAX_LISTED = 400
"""Rows of a table on a page of the site that lists."""
_MAX_UNFOLDED_BARS = 40


@dataclass(frozen=True)
class Paragraph:
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
class Bar:
    """One bar: `length` and `tick` (None: no mark) are shares, 0 to 1, of the longest value of its chart."""

    label: str
    length: float
    tick: float | None
    value: str
    hue: Hue


@dataclass(frozen=True)
class BarChart:
    """Bars on one scale under a title (HTML only: a table beside it has the same numbers)."""

    kind: ClassVar[str] = "bars"
    title: str
    bars: Sequence[Bar]


@dataclass(frozen=True)
class Segment:
    """A part of a stacked bar: it starts at `start` and is `share` long, both from 0 to 1.

    `value` is written on it; without one, its share in percent is.
    """

    category: str
    start: float
    share: float
    value: str = ""


@dataclass(frozen=True)
class StackChart:
    """Stacked bars (HTML only: a table beside it has the same numbers); the last category is the rest, drawn grey."""

    kind: ClassVar[str] = "stack"
    title: str
    categories: Sequence[str]
    bars: Sequence[tuple[str, Sequence[Segment]]]


@dataclass(frozen=True)
class Dot:
    """A point of a scatter; all lengths are shares, 0 to 1, of the drawing, and `weight` of its largest dot."""

    label: str
    x: float
    y: float
    weight: float
    hue: str


@dataclass(frozen=True)
class Scatter:
    """Dots over two axes, with lines of such positions (HTML only: a table beside it has the same numbers)."""

    kind: ClassVar[str] = "scatter"
    title: str
    axes: tuple[str, str]
    """Titles of the horizontal and the vertical axis."""
    x_ticks: Sequence[tuple[float, str]]
    y_ticks: Sequence[tuple[float, str]]
    lines: Sequence[Sequence[tuple[float, float]]]
    dots: Sequence[Dot]
    legend: Sequence[tuple[str, str]]
    """Hue and meaning."""


@dataclass(frozen=True)
class Chart:
    """A chart that a browser draws (pages of the site only), and the table of its values behind it.

    `spec` is a Vega-Lite specification without its data, `values` are the rows that it draws, and `columns` maps the
    fields that the table shows to their heads.
    """

    kind: ClassVar[str] = "chart"
    title: str
    spec: Mapping[str, Any]
    values: Sequence[Mapping[str, Any]]
    columns: Mapping[str, str]


@dataclass(frozen=True)
class Choice:
    """A choice of A and B that opens the page that compares them (pages of the site only).

    `options` has the label of each, its name in a command, and its part of an address; `address` contains the
    placeholders `{a}` and `{b}`.
    """

    kind: ClassVar[str] = "choice"
    title: str
    options: Sequence[tuple[str, str, str]]
    address: str
    command: str
    """The command to type where the page of a pair is not published, with the same placeholders."""


@dataclass(frozen=True)
class Histories:
    """The histories of the series of a device (HTML only); a script shows the one that the address names."""

    kind: ClassVar[str] = "histories"
    files: Sequence[str]
    """The addresses of the files with the data, the oldest first."""
    series: Mapping[str, Mapping[str, Any]]
    """What the script shows of each series besides its nights, by its id."""


@dataclass(frozen=True)
class Log:
    """Lines as a program printed them."""

    kind: ClassVar[str] = "log"
    text: str


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


Block = Paragraph | Points | Table | BarChart | StackChart | Scatter | Chart | Choice | Histories | Log | Fold | Heading


@dataclass(frozen=True)
class Section:
    """A numbered part of a page: the target of links to `anchor`, with its sentences for the summary of the page."""

    anchor: str
    title: str
    blocks: Sequence[Block]
    summary: Sequence[Text] = ()


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
