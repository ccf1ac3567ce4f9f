"""The answers to the queries `sql/queries/report_*.sql` for one sweep, as typed rows."""

import contextlib
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import ClassVar, TypeVar, cast

import duckdb

from devices.errors import FarmError
from sql.schema import sql_files
from sql.warehouse import first_line, open_read_only

_MOST_IDS_NAMED = 10


class ReportError(FarmError):
    """The report cannot be made; the text is one sentence with the cause and what to do."""


@dataclass(frozen=True)
class Row:
    """One row of an answer. A subclass names its query and has one field per column, of the same name and type."""

    query: ClassVar[str]
    """`latency` for sql/queries/report_latency.sql."""
    naming: ClassVar[tuple[str, ...]] = ()
    """The fields that name what a row is about; their columns come first."""


RowT = TypeVar("RowT", bound=Row)


@dataclass(frozen=True)
class SweepRow(Row):
    """A sweep and how its sessions ended."""

    query = "sweeps"
    sweep_id: str
    name: str
    night: date | None
    succeeded: int
    failed: int
    invalid: int
    discarded: int
    devices: int
    models: int
    started_at: datetime | None
    ended_at: datetime | None


class Answers:
    """The rows of any query for one sweep; each query is run once, when its rows are first requested."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, sweep: SweepRow) -> None:
        self.sweep = sweep
        self.not_loaded: Sequence[str] = ()
        """Why bundles of the sweep are in no figure of the report, a sentence each."""
        self.dropped: str | None = None
        """How many sessions the newest start of the sweep dropped, and why: `8 dropped (...)`."""
        self._connection = connection
        self._known: dict[type[Row], Sequence[Row]] = {}

    def rows(self, row_class: type[RowT]) -> list[RowT]:
        """The rows of the class's query."""
        if row_class not in self._known:
            self._known[row_class] = _read(self._connection, row_class, self.sweep.sweep_id)
        return cast(list[RowT], self._known[row_class])


@contextlib.contextmanager
def open_answers(snapshot: Path, sweep_id: str | None) -> Iterator[Answers]:
    """Open a warehouse file for the report of one sweep, the newest without an id.

    Raises ReportError if the file does not contain the sweep or its views are too old, WarehouseError if it cannot be
    read.
    """
    with open_read_only(snapshot) as connection:
        try:
            sweep = _chosen(_read(connection, SweepRow), sweep_id, snapshot)
            yield Answers(connection, sweep)
        except (duckdb.CatalogException, duckdb.BinderException) as error:
            raise ReportError(
                f"{snapshot}: its views do not match this version of etfarm ({first_line(error)}); load any bundle "
                "with `etfarm load` to update them"
            ) from None


def _chosen(sweeps: list[SweepRow], sweep_id: str | None, snapshot: Path) -> SweepRow:
    if not sweeps:
        raise ReportError(f"{snapshot}: no sweep is loaded yet; run `etfarm sweep` first")
    if sweep_id is None:
        return sweeps[0]
    for sweep in sweeps:
        if sweep.sweep_id == sweep_id:
            return sweep
    ids = [sweep.sweep_id for sweep in sweeps]
    rest = f" and {len(ids) - _MOST_IDS_NAMED} more" if len(ids) > _MOST_IDS_NAMED else ""
    raise ReportError(f"{snapshot}: unknown sweep `{sweep_id}`; available: {', '.join(ids[:_MOST_IDS_NAMED])}{rest}")


def _read(connection: duckdb.DuckDBPyConnection, row_class: type[RowT], sweep_id: str | None = None) -> list[RowT]:
    text = _queries()[f"report_{row_class.query}"]
    answer = connection.execute(text, {"sweep_id": sweep_id} if "$sweep_id" in text else {})
    columns = [name for name, *_ in answer.description or []]
    return [row_class(**dict(zip(columns, values, strict=True))) for values in answer.fetchall()]


@functools.cache
def _queries() -> dict[str, str]:
    return {file.name: file.text for file in sql_files("queries")}
