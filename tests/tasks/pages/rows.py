"""Rows of answers without a warehouse, for tests of what pages write from them."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import date
from typing import Any, TypeVar, cast

from tasks.results.reader import Answers, Reader, SweepRow
from tasks.results.table import Row
from tasks.results.verdicts import VerdictRow

RowT = TypeVar("RowT", bound=Row)
_DEFAULTS: dict[str, Any] = {
    **{"cell": "c1", "series_id": "s1", "sweep_id": "smoke-2026-11-20", "night": date(2026, 11, 20), "device": "host"},
    **{"model": "toy", "precision": "fp32", "variant": "sme2_off", "threads": 1, "metric": "latency"},
    **{"sessions": 8, "graph": (), "reason": "its reason"},
}


def row(row_class: type[RowT], **values: Any) -> RowT:
    """Return a row with some values; its other fields have common ones or are None."""
    return row_class(**{each.name: values.get(each.name, _DEFAULTS.get(each.name)) for each in fields(row_class)})


def verdict(name: str, time_ms: float | None = 10.0, ratio: float | None = None, **values: Any) -> VerdictRow:
    figures = {"value": None if time_ms is None else time_ms * 1e6, "ratio": ratio}
    return row(VerdictRow, verdict=name, **(figures | values))


class _Rows:
    """A reader of these rows, whatever the parameters of their query are."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self.names: dict[str, str] = {}
        self.warehouse_names: dict[str, str] = {}

    def once(self, read: Callable[[Any], Any]) -> Any:
        return read(self)

    def rows(self, row_class: type[Row], _parameters: Any = None) -> Sequence[Row]:
        return [each for each in self._rows if type(each) is row_class]


def reader_of(*rows: Row) -> Reader:
    return cast(Reader, _Rows(rows))


def answers_of(*rows: Row, **sweep: Any) -> Answers:
    counts = {"succeeded": 1, "failed": 0, "invalid": 0, "discarded": 0, "devices": 1, "models": 1}
    return Answers(reader_of(*rows), row(SweepRow, name="smoke", **(counts | sweep)))
