"""The section on the roof: operators over their intensity, the roof above them, and what could be won."""

import math
from collections.abc import Sequence

from tasks.pages.charts import Dot, Scatter
from tasks.pages.page import Block, Explanation, Paragraph, Section, cell_folds
from tasks.results.measurements.roofline import ModelRooflineRow, RooflineRow
from tasks.results.reader import Answers
from tasks.results.table import build_table, more_rows
from tasks.results.text import counted, in_ms, in_percent, ms_digits

_MAX_OPERATORS, _MAX_DOTS = 10, 60
_HUES = {"compute": "hue-0", "memory": "hue-1", "overhead": "rest"}
_LEGEND = [("hue-0", "limited by computing"), ("hue-1", "limited by memory"), ("rest", "too short to tell")]


def roofline(answers: Answers) -> Section:
    """Return the operators of each cell beside the roof of its device, one fold per cell."""
    title = "How far from the roof"
    rows = answers.rows(RooflineRow)
    if not rows:
        absent = "No roof was measured for these cells. `roof: true` in the sweep file measures it on real devices."
        return Section("roof", title, [Paragraph(absent)])
    explained = (
        "The roof of a device is what it can do at most: multiply-accumulates per second of a large matrix product, "
        "and how fast it reads memory and caches. Each operator is compared with what its work would take there."
    )
    blocks: list[Block] = [Explanation(explained)]
    models = {row.cell: row for row in answers.rows(ModelRooflineRow)}
    for cell, fold in cell_folds(rows):
        model = models[cell[0].cell]
        listed = cell[:_MAX_OPERATORS]
        inner: list[Block] = [Paragraph(model.sentence)]
        drawn = [row for row in cell if row.intensity and row.gmac_per_s]
        if drawn:
            inner.append(_scatter(drawn, model))
        inner.append(build_table(listed, is_named=False, digits=ms_digits(row.time_ms for row in listed)))
        if hidden := more_rows(len(cell) - len(listed), "etfarm sql lists them in operator_roofline"):
            inner.append(Paragraph(hidden, tone="quiet"))
        share = in_percent(model.roof_ms / model.time_ms)
        blocks.append(fold.filled(f"{share} of the roof, {in_ms(model.winnable_ms)} could be won", inner))
    return Section("roof", title, blocks)


class _Scale:
    """A logarithmic axis around values above 0, in full decades."""

    def __init__(self, values: Sequence[float]) -> None:
        self._first = math.floor(math.log10(min(values)))
        self._last = max(math.ceil(math.log10(max(values))), self._first + 1)

    @property
    def ends(self) -> tuple[float, float]:
        return 10.0**self._first, 10.0**self._last

    @property
    def ticks(self) -> list[tuple[float, str]]:
        return [(self.place(10.0**power), f"{10.0**power:g}") for power in range(self._first, self._last + 1)]

    def place(self, value: float) -> float:
        """Return where a value is, from 0 to 1."""
        return min(max((math.log10(value) - self._first) / (self._last - self._first), 0.0), 1.0)


def _scatter(rows: Sequence[RooflineRow], model: ModelRooflineRow) -> Scatter:
    """Return the operators that multiply, and the roofs of memory and of the fastest cache."""
    peak, speeds = model.peak_gmac_per_s, {model.read_gb_per_s[-1], max(model.read_gb_per_s)}
    across = _Scale([*(row.intensity or 0.0 for row in rows), *(peak / speed for speed in speeds)])
    up = _Scale([*(row.gmac_per_s or 0.0 for row in rows), peak])
    longest_ms = max(row.time_ms for row in rows)
    dots = [
        Dot(
            f"{row.operator}: {in_ms(row.time_ms)}, {in_percent(row.share or 0.0)} of the roof",
            across.place(row.intensity or 0.0),
            up.place(row.gmac_per_s or 0.0),
            math.sqrt(row.time_ms / longest_ms),
            _HUES[row.bound],
        )
        for row in sorted(rows, key=lambda row: -row.time_ms)[:_MAX_DOTS]
    ]
    lines = []
    for speed in sorted(speeds):
        start = max(across.ends[0], up.ends[0] / speed)
        corners = [(start, start * speed), (peak / speed, peak), (across.ends[1], peak)]
        lines.append([(across.place(x), up.place(y)) for x, y in corners])
    drawn = f"The longest {_MAX_DOTS} of " if len(rows) > _MAX_DOTS else ""
    title = f"{drawn}{counted(len(rows), 'operator')} that multiply, under the roofs of memory and of the fastest cache"
    axes = "multiply-accumulates per byte", "GMAC/s"
    return Scatter(title, axes, across.ticks, up.ticks, lines, dots, _LEGEND)
