"""What a report knows: the answers of the queries `sql/queries/report_*.sql` for one sweep."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from sql.schema import sql_files
from sql.warehouse import first_line, open_read_only
from tasks.errors import FarmError

Row = dict[str, Any]
_PREFIX = "report_"
_SWEEPS = "sweeps"
_MOST_IDS_NAMED = 10


class ReportError(FarmError):
    """There is nothing to report on; the text is one sentence with the way on."""


@dataclass(frozen=True)
class Answers:
    """Rows by the name of their query (`latency` of report_latency.sql), and the sweep that they are about."""

    sweep: Row
    tables: dict[str, list[Row]]

    def __getitem__(self, query: str) -> list[Row]:
        return self.tables[query]

    @property
    def has_times(self) -> bool:
        """Whether any device of the sweep has times that mean something."""
        return any(row["median_ms"] is not None for row in self["latency"])


def ask(snapshot: Path, sweep_id: str | None) -> Answers:
    """Answer every query for one sweep, the newest without an id; raises ReportError and WarehouseError."""
    queries = {file.name.removeprefix(_PREFIX): file.text for file in sql_files("queries") if _is_ours(file.name)}
    with open_read_only(snapshot) as connection:
        try:
            sweeps = _rows(connection, queries.pop(_SWEEPS))
            sweep = _chosen(sweeps, sweep_id, snapshot)
            of_sweep = {"sweep_id": sweep["sweep_id"]}
            return Answers(sweep, {name: _rows(connection, text, of_sweep) for name, text in queries.items()})
        except (duckdb.CatalogException, duckdb.BinderException) as error:
            raise ReportError(
                f"{snapshot}: its views are not those of this farm ({first_line(error)}); `etfarm load` of anything "
                "brings them up to date"
            ) from None


def _is_ours(name: str) -> bool:
    return name.startswith(_PREFIX)


def _chosen(sweeps: list[Row], sweep_id: str | None, snapshot: Path) -> Row:
    if not sweeps:
        raise ReportError(f"{snapshot}: nothing was loaded yet, so there is no sweep to report on; run `etfarm sweep`")
    if sweep_id is None:
        return sweeps[0]
    for sweep in sweeps:
        if sweep["sweep_id"] == sweep_id:
            return sweep
    raise ReportError(f"{snapshot}: there is no sweep `{sweep_id}` in it; it knows {_named(sweeps)}")


def _named(sweeps: Iterable[Row]) -> str:
    ids = [str(sweep["sweep_id"]) for sweep in sweeps]
    rest = f" and {len(ids) - _MOST_IDS_NAMED} more" if len(ids) > _MOST_IDS_NAMED else ""
    return ", ".join(ids[:_MOST_IDS_NAMED]) + rest


def _rows(connection: duckdb.DuckDBPyConnection, text: str, parameters: dict[str, Any] | None = None) -> list[Row]:
    answer = connection.execute(text, parameters or {})
    names = [column[0] for column in answer.description or []]
    return [dict(zip(names, values, strict=True)) for values in answer.fetchall()]
