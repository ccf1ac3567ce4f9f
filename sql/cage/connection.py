"""etfarm's queries on a warehouse file: in this process or, for a file from elsewhere, in a cage."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import duckdb

from sql.cage.cage import Cage
from sql.cage.limits import QueryError
from sql.cage.values import Row
from sql.readable import ReadableFile
from sql.warehouse import open_read_only

if TYPE_CHECKING:
    import pyarrow as pa  # slow to import, and few queries need it


class QueryRunner(Protocol):
    """What runs queries."""

    def execute(self, query: str, parameters: Any = None, /) -> "Reading":
        """Start a query with named parameters."""


class Reading(QueryRunner, Protocol):
    """What readers use of a connection of DuckDB."""

    @property
    def description(self) -> Any:
        """A tuple for each column, its name first."""

    def fetchall(self) -> list[Any]:
        """Return the rows."""

    def fetchone(self) -> Any:
        """Return the first row, or None."""

    def to_arrow_table(self) -> "pa.Table":
        """Return the rows as a table of Arrow."""

    def interrupt(self) -> None:
        """End the query that another thread runs, with an error there."""


@contextlib.contextmanager
def open_readable(file: ReadableFile | Path) -> Iterator[Reading]:
    """Open a file for etfarm's queries; a path is trusted. Raises WarehouseError if it is not a warehouse."""
    if isinstance(file, ReadableFile) and not file.is_ours:
        with Cage(file) as cage:
            yield CagedConnection(cage)
    else:
        with open_read_only(file if isinstance(file, Path) else file.path) as connection:
            yield connection


class CagedConnection:
    """Answers queries like a connection of DuckDB, with a cage; errors have DuckDB's classes."""

    def __init__(self, cage: Cage) -> None:
        self._cage = cage
        self._query: tuple[str, Mapping[str, Any] | None] = ("", None)
        self._columns: list[str] = []
        self._rows: list[Row] | None = None

    @property
    def description(self) -> list[tuple[str]]:
        self._fetch()
        return [(column,) for column in self._columns]

    def execute(self, query: str, parameters: Mapping[str, Any] | None = None, /) -> Self:
        """Store a query, which runs when its columns or rows are read."""
        self._query, self._rows = (query, parameters), None
        return self

    def fetchall(self) -> list[Row]:
        return self._fetch()

    def fetchone(self) -> Row | None:
        return next(iter(self._fetch()), None)

    def to_arrow_table(self) -> "pa.Table":
        import pyarrow as pa

        with _duckdb_errors():
            answer = self._cage.ask(*self._query, form="arrow")
            answer.limit_to_memory()
            schema, batches = answer.batches()
            return pa.Table.from_batches(batches, schema)

    def interrupt(self) -> None:
        """End the query that another thread runs, with an error there; the connection cannot be used afterwards."""
        self._cage.kill()

    def _fetch(self) -> list[Row]:
        """Run the stored query unless it has run, and return its rows."""
        if self._rows is None:
            with _duckdb_errors():
                answer = self._cage.ask(*self._query)
                self._columns, self._rows = answer.columns, answer.all_rows()
        return self._rows


@contextlib.contextmanager
def _duckdb_errors() -> Iterator[None]:
    """Raise a QueryError inside the block as the class of DuckDB that it had in the cage, if it had one."""
    try:
        yield
    except QueryError as error:
        kind = getattr(duckdb, error.kind, None)
        if isinstance(kind, type) and issubclass(kind, duckdb.Error):
            raise kind(error.message) from None
        raise
