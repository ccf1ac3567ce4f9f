"""The picture of a session: its runs over time, and the conditions before and after them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tasks.pages.charts import Lane, Timeline, TimelineRun
from tasks.results.sessions import RunRow, SessionConditionRow, SessionDetails
from tasks.results.text import in_ms

_MAX_BARS = 300
_TICKS = 5


@dataclass(frozen=True)
class _Gauge:
    """A condition: its field, its range on a quiet device, and how it is written."""

    field: str
    title: str
    form: str
    span: float
    """The least difference that fills a lane, so that noise does not look like a change."""


_GAUGES = (
    _Gauge("frequency_mhz", "Frequency", "{:,.0f} MHz", 500),
    _Gauge("temperature_c", "Temperature", "{:.1f} \u00b0C", 15),
    _Gauge("die_c", "Die", "{:.1f} \u00b0C", 15),
    _Gauge("load_1m", "Load", "{:.2f}", 2),
    _Gauge("background_cpu_percent", "Other programs", "{:.1f} % of a core", 50),
    _Gauge("battery_percent", "Battery", "{:.0f} %", 20),
)


def timeline(session: SessionDetails) -> Timeline | None:
    """Return the picture; None without runs and conditions. Of many runs, the slowest of each stretch is drawn."""
    lanes = list(_lanes(session.conditions))
    if not session.runs and not lanes:
        return None
    if not session.runs:
        return Timeline("Conditions before and after", [], "", [], lanes)
    runs = _slowest(session.runs)
    end_ms = max(run.start_ms + run.execute_ms for run in session.runs) or 1.0
    longest_ms = max(run.execute_ms for run in session.runs) or 1.0
    bars = [
        TimelineRun(
            f"{'warm-up' if run.is_warmup else 'run'} {run.run_index}: {in_ms(run.execute_ms)}",
            run.start_ms / end_ms,
            run.execute_ms / end_ms,
            run.execute_ms / longest_ms,
            run.is_warmup,
        )
        for run in runs
    ]
    unit, scale = ("s", 1000.0) if end_ms >= 2000 else ("ms", 1.0)
    digits = 1 if end_ms / scale < 20 else 0
    marks = (at / (_TICKS - 1) for at in range(_TICKS))
    ticks = [(share, f"{share * end_ms / scale:,.{digits}f} {unit}") for share in marks]
    drawn = "" if len(runs) == len(session.runs) else f", the slowest of each {-(-len(session.runs) // _MAX_BARS)}"
    title = f"Time of each run{drawn}, from the start of the first; below it the conditions before and after"
    return Timeline(title, bars, in_ms(longest_ms), ticks, lanes)


def _slowest(runs: Sequence[RunRow]) -> list[RunRow]:
    """Return at most _MAX_BARS runs: the slowest of each stretch of equally many."""
    step = -(-len(runs) // _MAX_BARS)
    return [max(runs[at : at + step], key=lambda run: run.execute_ms) for at in range(0, len(runs), step)]


def _lanes(conditions: Sequence[SessionConditionRow]) -> Iterator[Lane]:
    """Yield a lane for each condition that the device reported."""
    moments = {row.moment: row for row in conditions}
    for gauge in _GAUGES:
        values = [getattr(moments.get(moment), gauge.field, None) for moment in ("before", "after")]
        numbers = [value for value in values if value is not None]
        if not numbers:
            continue
        middle, span = (max(numbers) + min(numbers)) / 2, max(gauge.span, max(numbers) - min(numbers))
        before, after = (None if value is None else 0.5 + (value - middle) / span for value in values)
        texts = ["unknown" if value is None else gauge.form.format(value) for value in values]
        yield Lane(gauge.title, " \u2192 ".join(dict.fromkeys(texts)), (before, after))
