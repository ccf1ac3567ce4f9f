"""The picture of a comparison: ratios of series with their intervals on one logarithmic axis around 1."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tasks.bundle.variant_word import variant_word
from tasks.pages.charts import IntervalChart, IntervalRow, Mark
from tasks.results.changes import GeometricMean
from tasks.results.text import TIMES, Link, Series, counted, rounded_percent

_MAX_FACTOR = 16.0
"""Ends of the axis at most: intervals beyond it are cut."""
_TICKS = (
    (1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 4.0, 8.0),
    (0.99, 0.98, 0.95, 0.9, 0.8, 0.7, 0.5, 0.25, 0.125),
)
"""Ratios that an axis may state, above and below 1."""
_MIN_TICK_DISTANCE = 0.12
_PADDING = 1.08


@dataclass(frozen=True)
class Ratio:
    """The ratio of a series with its interval (None: it has none), and its answer in words; `to` is its page."""

    series: Series
    to: str
    ratio: float | None
    bounds: tuple[float, float] | None
    answer: str
    mark: Mark


def interval_chart(
    title: str, ratios: Sequence[Ratio], column: str, no_change: float, mean: GeometricMean | None
) -> IntervalChart | None:
    """Return the picture of the rows of a table; None without a ratio.

    `column` is the title of the table's column of ratios, and a change up to `no_change`, a fraction, is none.
    """
    if not any(each.ratio for each in ratios):
        return None
    axis = _Axis.around(ratios, no_change)
    labels, common = _label_series([each.series for each in ratios])
    rows = [
        IntervalRow(
            (Link(label, each.to),) if each.to else label,
            axis.position(each.ratio),
            (axis.position(each.bounds[0]), axis.position(each.bounds[1])) if each.bounds else None,
            each.answer,
            each.mark,
        )
        if each.ratio
        else None
        for label, each in zip(labels, ratios, strict=True)
    ]
    bounds = " with their 95 % intervals" if any(each.bounds for each in ratios) else ""
    return IntervalChart(
        title=f"{title}{bounds}{common}; shaded: no change, up to {rounded_percent(no_change)}",
        limits=(axis.low, axis.high),
        ticks=list(axis.ticks()),
        band=(axis.position(1 / (1 + no_change)), axis.position(1 + no_change)),
        one=axis.position(1.0),
        column=column,
        mean_position=axis.position(mean.ratio) if mean else None,
        rows=rows,
    )


def _label_series(every: Sequence[Series]) -> tuple[list[str], str]:
    """Return a label for each series, and what all have in common for the title; it is not part of the labels."""
    parts = [
        (
            each.model,
            each.precision,
            f"on {each.device}",
            variant_word(each.variant),
            counted(each.threads, "thread") if isinstance(each.threads, int) else f"{each.threads} threads",
        )
        for each in every
    ]
    common = [values[0] for values in zip(*parts, strict=True) if len(set(values)) == 1] if len(parts) > 1 else []
    labels = []
    for names in parts:
        what, how = ([name for name in some if name not in common] for some in (names[:3], names[3:]))
        labels.append(", ".join(filter(None, [" ".join(what), *how])))
    return labels, f"; all: {', '.join(common)}" if common else ""


@dataclass(frozen=True)
class _Axis:
    """A logarithmic axis between the logarithms `low` and `high`."""

    low: float
    high: float

    @classmethod
    def around(cls, ratios: Iterable[Ratio], no_change: float) -> "_Axis":
        """Return the axis that has room for all intervals, up to a factor of 16, and for the band of no change."""
        ends = [end for each in ratios if each.ratio for end in (each.ratio, *(each.bounds or ()))]
        logarithms = [math.log(min(max(end, 1 / _MAX_FACTOR), _MAX_FACTOR)) for end in (*ends, 1.0)]
        least = 2 * math.log1p(no_change)
        return cls(min(-least, _PADDING * min(logarithms)), max(least, _PADDING * max(logarithms)))

    def position(self, ratio: float) -> float:
        return min(max((math.log(ratio) - self.low) / (self.high - self.low), 0.0), 1.0)

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Yield position and text of 1 and of the changes around it that have room."""
        yield self.position(1.0), "0 %"
        for ratios in _TICKS:
            last = self.position(1.0)
            for ratio in ratios:
                if self.low < math.log(ratio) < self.high and abs(self.position(ratio) - last) >= _MIN_TICK_DISTANCE:
                    last = self.position(ratio)
                    yield last, _tick_text(ratio)


def _tick_text(ratio: float) -> str:
    """Return a change in percent; from a doubling or a halving on, the factor."""
    if ratio >= 2 or ratio <= 0.5:
        return f"{TIMES}{ratio:.3g}"
    return f"{100 * (ratio - 1):+.0f} %"
