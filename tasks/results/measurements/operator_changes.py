"""The operators of a series in a night beside its baseline nights, judged with intervals."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Annotated

from tasks.judge.figures import percent_change
from tasks.results.cells import ChangePercent, Interval
from tasks.results.reader import Reader
from tasks.results.table import Milliseconds, Name, Number, Row, Signed, Words, grouped
from tasks.results.text import rounded_percent, word_tone


@dataclass(frozen=True)
class OperatorChangeRow(Row):
    query = "operator_changes"
    series_id: str
    device: str
    night: date
    operator: Annotated[str, Name("Operator")]
    category: Annotated[str, Words("Category")]
    before_ms: Annotated[float, Milliseconds("Before", unit="ms per run", meaning="median of the baseline nights")]
    after_ms: Annotated[float, Milliseconds("After", unit="ms per run", meaning="of the night")]
    ratio: Annotated[float | None, ChangePercent("Change", "without what all operators share: above 0 is slower")]
    low: Annotated[float | None, Interval("95 % interval")]
    high: float | None
    added_ms: Annotated[float, Signed("Adds", "ms per run", digits=3)]
    part_percent: Annotated[float | None, Number("Part of the change", "%")]
    verdict: Annotated[str, Words("Verdict", tone=word_tone)]
    common_factor: float
    """What all operators share in the night, relative to the baseline."""
    common_percent: float | None


def read_operator_changes(
    reader: Reader, keys: Sequence[tuple[str, str, date]]
) -> dict[tuple[str, str], list[OperatorChangeRow]]:
    """Return the operators of each series and device in a night, by series id and device; `keys` name all three."""
    names = [f"{series_id}{device}{night}" for series_id, device, night in keys]
    return grouped(reader.rows(OperatorChangeRow, {"series": names}), lambda row: (row.series_id, row.device))


def shared_in_words(rows: Sequence[OperatorChangeRow]) -> Iterator[str]:
    """Yield what all operators of a series share, in a sentence; nothing if that is below 0.5 %."""
    for row in rows[:1]:
        if abs(row.common_factor - 1) >= 0.005:
            part = "" if row.common_percent is None else f", {rounded_percent(row.common_percent / 100)} of the change"
            yield (
                f"All operators share {percent_change(row.common_factor)}{part}: frequency, heat or load move them "
                "alike. The changes below are without it."
            )
