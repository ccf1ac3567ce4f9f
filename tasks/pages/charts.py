"""Charts of a page: SVG that is drawn here. Each has its numbers in a table, too."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from tasks.results.text import Text, Tone

Hue = Literal["on", "off", "plain"]
Mark = Literal["slower", "faster", "neither"]


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
class Lane:
    """A condition in words, and before and after as shares, 0 to 1, of the height of its lane; None: unknown."""

    title: str
    values: str
    ends: tuple[float | None, float | None]


@dataclass(frozen=True)
class TimelineRun:
    """A run: its start, length and height are shares, 0 to 1, of the drawing."""

    label: str
    start: float
    length: float
    height: float
    is_warmup: bool


@dataclass(frozen=True)
class Timeline:
    """Runs of a session over time, and the conditions before and after them (HTML only: tables have its numbers)."""

    kind: ClassVar[str] = "timeline"
    title: str
    runs: Sequence[TimelineRun]
    highest: str
    """The longest run, which is as high as the drawing."""
    ticks: Sequence[tuple[float, str]]
    lanes: Sequence[Lane]


@dataclass(frozen=True)
class Frame:
    """A part of an icicle: `start` and `width` are shares, 0 to 1, of the drawing, and row 0 is at the top.

    `title` begins with a name that no other frame of the drawing has, up to its first colon.
    """

    label: str
    title: str
    row: int
    start: float
    width: float
    hue: str
    is_hatched: bool


@dataclass(frozen=True)
class Icicle:
    """A tree as rows of frames, each under the one that contains it. A script zooms (the drawing needs none).

    `anchor` is the name of the drawing in addresses and ids, the only one of its name in a page.
    """

    kind: ClassVar[str] = "icicle"
    anchor: str
    title: str
    frames: Sequence[Frame]
    legend: Sequence[tuple[str, str]]
    """Hue and meaning; the hue `hatched` is that of portable operators."""

    @property
    def rows(self) -> int:
        return 1 + max((frame.row for frame in self.frames), default=0)


@dataclass(frozen=True)
class IntervalRow:
    """A ratio with its interval; positions are shares, 0 to 1, of the axis, and None without an interval."""

    label: Text
    position: float
    ends: tuple[float, float] | None
    answer: str
    mark: Mark


@dataclass(frozen=True)
class IntervalChart:
    """Ratios with their intervals on one logarithmic axis, a line for each row of the table that follows it.

    A script hides the lines whose rows of the table are hidden, and computes the mean of the others (HTML only).
    """

    kind: ClassVar[str] = "intervals"
    title: str
    limits: tuple[float, float]
    """Logarithms of the ratios at both ends of the axis."""
    ticks: Sequence[tuple[float, str]]
    band: tuple[float, float]
    """Between which positions a change is no change."""
    one: float
    """Position of the ratio 1."""
    column: str
    """Title of the column of the table that has the ratios."""
    mean_position: float | None
    """Of the geometric mean; None without one."""
    rows: Sequence[IntervalRow | None]
    """None for a row of the table without a ratio."""


@dataclass(frozen=True)
class Panel:
    """One series of a small multiple. `nights` are shares, 0 to 1, of its axis, the oldest first; None: no time."""

    device: str
    conditions: str
    to: str
    """The address of the series."""
    nights: Sequence[float | None]
    onset: int | None
    """The place of the night since which it has its verdict; None if that is not drawn."""
    value: str
    change: str
    tone: Tone
    axis: str
    """The lower and the upper end of its axis."""

    @property
    def path(self) -> str:
        """The line in a box of 100 x 40, with a gap where there is no time; one night alone is a dot."""
        step, path, pen = 100 / max(1, len(self.nights) - 1), "", "M"
        for at, share in enumerate(self.nights):
            if share is None:
                pen = "M"
                continue
            is_alone = pen == "M" and self.nights[at + 1 : at + 2] in ([], [None])
            path += f"{pen}{step * at:.1f} {38 - 36 * share:.1f}{'h0' if is_alone else ''}"
            pen = "L"
        return path


@dataclass(frozen=True)
class Panels:
    """Small multiples: one panel a series, all over the same nights. Each states its newest time as text."""

    kind: ClassVar[str] = "panels"
    title: str
    panels: Sequence[Panel]
    hidden: Text


@dataclass(frozen=True)
class HeatCell:
    """A cell of a heat map; `style` is `worse-1` to `worse-4`, `better-1` to `better-4`, bad, quiet, same or none."""

    mark: str
    change: str
    style: str
    to: str
    """The address that it links to; empty for one without a change."""


@dataclass(frozen=True)
class HeatRow:
    model: tuple[str, ...]
    label: str
    """What distinguishes it from other rows of its model."""
    cells: Sequence[HeatCell]

    @property
    def rest(self) -> str:
        """What a phone shows instead of the cells without a change."""
        words = {"same": "no change", "quiet": "not judged"}
        counts = {word: sum(cell.style == style for cell in self.cells) for style, word in words.items()}
        return ", ".join(f"{word} on {count}" for word, count in counts.items() if count)


@dataclass(frozen=True)
class HeatMap:
    """Rows and devices with a change in each cell: a table, in which a script shows other figures and chooses rows."""

    kind: ClassVar[str] = "heat_map"
    caption: str
    devices: Sequence[tuple[str, str]]
    """Names and addresses."""
    rows: Sequence[HeatRow]
    data: Mapping[str, Any]
    """What the script reads."""
    key: str
    hidden: str


Drawing = BarChart | StackChart | Scatter | Timeline | Icicle | IntervalChart | Panels | HeatMap
"""Each kind is a macro of `templates/charts.html.j2`; the heat map has a file of its name."""
