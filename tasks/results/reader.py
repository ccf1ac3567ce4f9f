"""Run the queries of `sql/queries/`, about the farm or one sweep, and return typed rows."""

import contextlib
import functools
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import duckdb

from devices.errors import FarmError
from sql.cage.connection import QueryRunner, open_readable
from sql.excerpt import Excerpt
from sql.readable import ReadableFile
from sql.schema import sql_files
from sql.warehouse import first_line
from tasks.bundle.model_names import short_names
from tasks.judge.operators.advice import HEAVY_SHARE
from tasks.results.cells import Night, SweepId
from tasks.results.sentences import (
    describe_changes,
    describe_commit,
    describe_differences,
    describe_flags,
    describe_likely_reason,
    describe_purpose,
    describe_taken,
)
from tasks.results.table import Number, Row, RowT, Words

_MAX_IDS_NAMED = 10
ResultT = TypeVar("ResultT")
_SENTENCES: Mapping[str, Callable[[Any], str | None]] = {
    "changed": describe_changes,
    "source_commit": describe_commit,
    "differs": describe_differences,
    "flags": describe_flags,
    "likely_reason": describe_likely_reason,
    "purpose": describe_purpose,
    "taken": describe_taken,
}
"""Columns whose data rows have as text."""


@dataclass(frozen=True)
class SweepRow(Row):
    query = "sweeps"
    sweep_id: Annotated[str, SweepId("Sweep")]
    name: str
    night: Annotated[date | None, Night("Night")]
    succeeded: Annotated[int, Number("Succeeded")]
    failed: Annotated[int, Number("Failed", tone=lambda count: "bad" if count else "quiet")]
    invalid: Annotated[int, Number("Invalid", tone=lambda count: "flag" if count else "quiet")]
    discarded: Annotated[int, Number("Discarded")]
    devices: Annotated[int, Number("Devices")]
    models: Annotated[int, Number("Models")]
    started_at: Annotated[datetime | None, Words("Started (UTC)", form="%Y-%m-%d %H:%M")]
    ended_at: Annotated[datetime | None, Words("Ended (UTC)", form="%Y-%m-%d %H:%M")]
    measured_later: Annotated[date | None, Words("Measured later", only_with="measured_later")] = None


@dataclass(frozen=True)
class _ExcerptSweepRow(SweepRow):
    """The sweep of an excerpt, which may have sessions of comparisons only."""

    query = "excerpt_sweep"


class Reader:
    """Runs the queries of pages. Rows have the short name of each model, `voice` for `./voice.py:make`."""

    def __init__(self, connection: QueryRunner, names: Mapping[str, str] | None = None) -> None:
        self.connection = connection
        self._names = names
        self._rows: dict[type[Row], list[Any]] = {}
        """The rows of queries without parameters, each read once."""
        self._answers: dict[str, Answers] = {}
        self._results: dict[Callable[[Reader], Any], Any] = {}

    @functools.cached_property
    def names(self) -> Mapping[str, str]:
        """The name of each model on pages, by its name in the warehouse."""
        if self._names is not None:
            return self._names
        models = self.connection.execute("SELECT name FROM model UNION SELECT model FROM skipped_model").fetchall()
        return short_names(name for (name,) in models)

    def excerpt(self, sweep_id: str, measured: Collection[tuple[str, str]]) -> "Answers":
        """Return the answers about pairs of model (by its name on pages) and device in a sweep.

        They are much faster where a sweep has many cells, contain no verdicts, and are valid until the next call.
        """
        self._excerpt.fill(sweep_id, {(self.warehouse_names.get(model, model), device) for model, device in measured})
        part = Reader(self._excerpt, self.names)
        (sweep,) = part.rows(_ExcerptSweepRow)
        return Answers(part, replace(sweep, discarded=0))

    def answers(self, sweep: SweepRow) -> "Answers":
        """Return the answers about a whole sweep; only those of the last sweep are kept."""
        if sweep.sweep_id not in self._answers:
            self._answers = {sweep.sweep_id: Answers(self, sweep)}
        return self._answers[sweep.sweep_id]

    @functools.cached_property
    def _excerpt(self) -> Excerpt:
        return Excerpt(self.connection)

    def close(self) -> None:
        """Remove what `excerpt` copied; the connection stays open."""
        if "_excerpt" in self.__dict__:
            self._excerpt.close()

    @functools.cached_property
    def warehouse_names(self) -> dict[str, str]:
        """The name of each model in the warehouse, by its name on pages."""
        return {page_name: name for name, page_name in self.names.items()}

    def rows(self, row_class: type[RowT], parameters: Mapping[str, Any] | None = None) -> list[RowT]:
        """Return the rows of a class's query, which gets the parameters that it names; without any, it runs once.

        Columns that are not fields of the class are left out; a field without a column has its default. Data of
        the columns in _SENTENCES is text in rows.
        """
        if row_class in self._rows:
            return list(self._rows[row_class])
        text = _queries()[row_class.query]
        used = {name: value for name, value in (parameters or {}).items() if re.search(rf"\${name}\b", text)}
        answer = self.connection.execute(text, used)
        names = {field.name for field in fields(row_class)}
        indices = {name: index for index, (name, *_) in enumerate(answer.description or []) if name in names}
        described = _SENTENCES.keys() & indices
        rows = []
        for values in answer.fetchall():
            row = object.__new__(row_class)  # a frozen dataclass takes three times as long to construct
            row.__dict__.update({name: values[index] for name, index in indices.items()})
            if "model" in indices:
                row.__dict__["model"] = self.names.get(row.__dict__["model"], row.__dict__["model"])
            for name in described:
                row.__dict__[name] = _SENTENCES[name](row.__dict__[name])
            rows.append(row)
        if not used:
            self._rows[row_class] = list(rows)
        return rows

    def once(self, make: Callable[["Reader"], ResultT]) -> ResultT:
        """Return what a function makes of this reader, which calls it only the first time."""
        if make not in self._results:
            self._results[make] = make(self)
        return cast(ResultT, self._results[make])

    def tuples(self, query: str, **parameters: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query of `sql/queries`, named without its suffix, with model names of the warehouse."""
        return self.connection.execute(_queries()[query], parameters).fetchall()


class Answers:
    """The rows of any query for one sweep; each query is run once, when its rows are first requested."""

    def __init__(self, reader: Reader, sweep: SweepRow) -> None:
        self.sweep = sweep
        self.not_loaded: Sequence[str] = ()
        """Why bundles of the sweep could not be loaded and are in no figure, a sentence each."""
        self.dropped: str | None = None
        """How many sessions the newest start of the sweep dropped, and why: `8 dropped (...)`; None: no session."""
        self._reader = reader
        self._scope: Mapping[str, Collection[str]] = {}
        self._rows: dict[type[Row], Sequence[Row]] = {}

    def rows(self, row_class: type[RowT]) -> list[RowT]:
        """Return the rows of the class's query, limited as `limit_to` describes."""
        if row_class not in self._rows:
            night = self.sweep.night
            parameters = {
                "sweep_id": self.sweep.sweep_id,
                "sweeps": [self.sweep.sweep_id],
                "night": night,
                "nights": [night],
                "heavy_share": HEAVY_SHARE,
            }
            self._rows[row_class] = self._reader.rows(row_class, parameters)
        rows = cast(list[RowT], self._rows[row_class])
        limits = self._scope.keys() & {field.name for field in fields(row_class)}
        # An id of a cell or pair includes all other fields.
        limits = next(({name} for name in ("cell", "pair") if name in limits), limits)
        return [row for row in rows if all(getattr(row, name) in self._scope[name] for name in limits)]

    def provide(self, row_class: type[RowT], rows: Sequence[RowT]) -> None:
        """Set the rows of a class that were read for another page; its query is not run."""
        self._rows[row_class] = rows

    def limit_to(self, scope: Mapping[str, Collection[str]]) -> "Answers":
        """Return the answers about some cells, pairs, models or devices: `{"model": ["voice"]}`.

        Rows without such a field stay; where there is a field of cells or pairs, it decides alone. `not_loaded` and
        `dropped` are not taken over.
        """
        part = Answers(self._reader, self.sweep)
        part._scope, part._rows = scope, self._rows
        return part


@contextlib.contextmanager
def open_reader(snapshot: ReadableFile | Path) -> Iterator[Reader]:
    """Open a warehouse file for pages; raises FarmError if its views are too old, WarehouseError if unreadable."""
    with open_readable(snapshot) as connection, view_errors(snapshot):
        reader = Reader(connection)
        try:
            yield reader
        finally:
            reader.close()


@contextlib.contextmanager
def open_answers(snapshot: ReadableFile | Path, sweep_id: str | None) -> Iterator[Answers]:
    """Open a sweep's report, of the newest without an id; FarmError, or WarehouseError if unreadable."""
    with open_reader(snapshot) as reader:
        sweeps = reader.rows(SweepRow)
        if not sweeps:
            raise FarmError(f"{snapshot}: no sweep is loaded yet; run `etfarm sweep` first")
        sweep = sweeps[0] if sweep_id is None else next((each for each in sweeps if each.sweep_id == sweep_id), None)
        if sweep is None:
            ids, hidden = [each.sweep_id for each in sweeps[:_MAX_IDS_NAMED]], len(sweeps) - _MAX_IDS_NAMED
            available = ", ".join(ids) + (f" and {hidden} more" if hidden > 0 else "")
            raise FarmError(f"{snapshot}: unknown sweep `{sweep_id}`; available: {available}")
        yield Answers(reader, sweep)


@contextlib.contextmanager
def view_errors(snapshot: ReadableFile | Path) -> Iterator[None]:
    """Raise a FarmError if the views of a warehouse file are older than the queries inside the block."""
    try:
        yield
    except (duckdb.CatalogException, duckdb.BinderException) as error:
        raise FarmError(
            f"{snapshot}: its views do not match this version of etfarm ({first_line(error)}); load any bundle "
            "with `etfarm warehouse load` to update them"
        ) from None


@functools.cache
def _queries() -> dict[str, str]:
    return {file.name: file.text for file in sql_files("queries")}
