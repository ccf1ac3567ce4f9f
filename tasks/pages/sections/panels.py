"""All series of a model as small multiples: the times of each over the same nights, and its newest verdict."""

from collections.abc import Mapping, Sequence
from datetime import date
from statistics import median

from tasks.judge.figures import percent_change
from tasks.pages.charts import Panel, Panels
from tasks.results.series import SeriesRow, worst_series_first
from tasks.results.table import more_rows
from tasks.results.text import DASH, in_ms, numbered, series_conditions, word_tone
from tasks.results.verdicts import MARKS

MAX_PANELS = 48
_MIN_SPAN = 0.1
"""The least height of an axis, a fraction of its middle: noise must not look like a change."""


def series_panels(
    rows: Sequence[SeriesRow], times_ms: Mapping[tuple[str, str], Sequence[float | None]], nights: Sequence[date]
) -> Panels:
    """Return a panel for each of the worst 48 series of a model; the rest is counted.

    `times_ms` are the times of a series, by its id and device, in `nights`, the oldest first.
    """
    listed = worst_series_first(rows)
    texts = [[row.precision, *series_conditions(row)] for row in listed]
    common = [text for text in texts[0] if len(rows) > 1 and all(text in others for others in texts)]
    panels = [
        _panel(
            row,
            " \u00b7 ".join(text for text in conditions if text not in common),
            times_ms.get((row.series_id, row.device), ()),
            nights,
        )
        for row, conditions in zip(listed[:MAX_PANELS], texts, strict=False)
    ]
    title = f"{numbered(len(rows), 'series', 'series')}{''.join(f', {text}' for text in common)}, the worst first"
    if nights:
        title += f": time in {numbered(len(nights), 'night')}, {nights[0]} to {nights[-1]}, each on its own axis"
    return Panels(title, panels, more_rows(len(listed) - MAX_PANELS, "the table of all series lists them"))


def _panel(row: SeriesRow, conditions: str, times_ms: Sequence[float | None], nights: Sequence[date]) -> Panel:
    measured = [time for time in times_ms if time is not None]
    low, high = _axis(measured) if measured else (0.0, 0.0)
    span = (high - low) or 1.0
    shares = [None if time is None else (time - low) / span for time in times_ms]
    is_drawn = row.since in nights and len(times_ms) == len(nights) > 1
    return Panel(
        row.device,
        conditions,
        row.page,
        shares,
        nights.index(row.since) if is_drawn and row.since else None,
        in_ms(row.time_ms) if row.time_ms is not None else DASH,
        _change(row, nights),
        word_tone(row.verdict),
        f"{in_ms(low).removesuffix(' ms')} to {in_ms(high)}" if measured else "no time in these nights",
    )


def _axis(times_ms: Sequence[float]) -> tuple[float, float]:
    """Return the ends of an axis around times, at least 10 % of their middle apart."""
    low, high, middle = min(times_ms), max(times_ms), median(times_ms)
    missing = max(0.0, _MIN_SPAN * middle - (high - low)) / 2
    return max(0.0, low - missing), high + missing


def _change(row: SeriesRow, nights: Sequence[date]) -> str:
    """Return the newest verdict with its mark and change, and its night if that is not the newest."""
    change = f" {percent_change(row.ratio, row.low, row.high)}" if row.ratio is not None else ""
    change = change.replace(" %", "\u00a0%")
    mark = f"{MARKS[row.verdict]} " if row.verdict in MARKS else ""
    night = f", {row.night}" if nights and row.night != nights[-1] else ""
    return f"{mark}{row.verdict}{change}{night}"
