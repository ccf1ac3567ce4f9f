"""Every judged figure of series in a night, also those that did not change."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from tasks.judge.figures import METRICS, signed_percent
from tasks.results.reader import Reader
from tasks.results.table import Row
from tasks.results.verdicts import VerdictRow

WORSE = ("regression", "suspected", "device slower", "device worse")
BETTER = ("improvement", "suspected improvement", "device faster", "device better")


@dataclass(frozen=True)
class FigureRow(Row):
    query = "judged_figures"
    series_id: str
    device: str
    metric: str
    verdict: str
    ratio: float | None
    low: float | None
    high: float | None
    value: float | None
    """In the unit of the metric, as is `baseline_value`."""
    baseline_value: float | None
    backend: str

    @property
    def size(self) -> float | None:
        """The size of the change: a fraction, of a share in points / 100; None without a baseline."""
        if METRICS[self.metric].is_share:
            both = self.value is not None and self.baseline_value is not None
            return abs((self.value or 0.0) - (self.baseline_value or 0.0)) if both else None
        return None if self.ratio is None or METRICS[self.metric].offset else abs(self.ratio - 1)

    @property
    def change(self) -> str:
        """The change in percent, of a share in points: `+12.3`; empty without a baseline, and of an output error."""
        if self.size is None:
            return ""
        if METRICS[self.metric].is_share:
            return f"{100 * ((self.value or 0.0) - (self.baseline_value or 0.0)):+.1f}"
        return signed_percent(self.ratio or 1.0, self.low, self.high)


def read_judged_figures(reader: Reader, night: date, series: Iterable[VerdictRow]) -> list[FigureRow]:
    """Return the judged figures of series on their devices in a night."""
    rows = [*series]
    names = {"series": [row.series_id for row in rows], "devices": [row.device for row in rows]}
    return reader.rows(FigureRow, {**names, "night": night}) if rows else []
