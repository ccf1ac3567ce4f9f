"""The rows of a query, fetched in blocks while DuckDB computes them, so that memory stays bounded."""

import contextlib
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from sql.errors import WarehouseError
from sql.query import query_errors, start_query
from sql.warehouse import open_read_only

Row = tuple[Any, ...]
_T = TypeVar("_T")
_BLOCK_ROWS = 10_000
_BATCH_ROWS = 100_000  # a row group of a Parquet file
_POLL_S = 0.05


class Answer:
    """The columns and rows of one query; fetch them once, as rows or as Arrow batches."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, pool: ThreadPoolExecutor, most_s: float | None = None
    ) -> None:
        self._connection = connection
        self._pool = pool
        self._most_s = most_s
        self._until = time.monotonic() + (most_s or math.inf)
        self.columns: list[str] = []
        self.rows = 0
        """Rows fetched so far."""

    def start(self, text: str, parameters: Mapping[str, Any] | None) -> None:
        """Start the query; `columns` are known then. Raises WarehouseError."""
        started = self._run(lambda: start_query(self._connection, text, parameters))
        self.columns = [column[0] for column in started.description or []]

    def blocks(self) -> Iterator[list[Row]]:
        """Yield the rows in blocks of up to 10 000; raises WarehouseError."""
        while block := self._run(lambda: self._connection.fetchmany(_BLOCK_ROWS)):
            self.rows += len(block)
            yield block

    def batches(self) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """Return the Arrow schema, with distinct names, and the rows in batches of up to 100 000."""
        reader = self._run(lambda: self._connection.to_arrow_reader(_BATCH_ROWS))
        fields = zip(reader.schema, distinct_names(self.columns), strict=True)
        schema = pa.schema([field.with_name(name) for field, name in fields])
        return schema, self._batches(reader, schema)

    def _batches(self, reader: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        while (batch := self._run(lambda: _next_batch(reader))) is not None:
            self.rows += batch.num_rows
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)

    def _run(self, call: Callable[[], _T]) -> _T:
        """Run a call of DuckDB in the pool's thread and wait for it; on Ctrl-C, interrupt it before going on.

        In the main thread it would keep Python from seeing the signal until it returns. An interrupt before DuckDB
        starts the query has no effect, so it is repeated. A second Ctrl-C kills the process.
        """
        is_late = False
        with query_errors():
            with _noted_interrupt() as interrupt:
                running = self._pool.submit(call)
                while not wait([running], _POLL_S).done:
                    if interrupt.is_set() or (is_late := time.monotonic() > self._until):
                        self._connection.interrupt()
            if is_late:
                limit = f"{self._most_s:g} s"
                raise WarehouseError(
                    f"the query took longer than {limit}; select fewer rows, or a model, device or night"
                )
            if interrupt.is_set():
                raise KeyboardInterrupt
            return running.result()


@contextlib.contextmanager
def _noted_interrupt() -> Iterator[threading.Event]:
    """Yield an event that Ctrl-C sets in the block, in the main thread.

    A KeyboardInterrupt while a lock is being acquired or released would leave it in the wrong state.
    """
    noted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield noted
        return

    def note(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        noted.set()

    before = signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        if not noted.is_set():
            signal.signal(signal.SIGINT, before)


def _next_batch(reader: pa.RecordBatchReader) -> pa.RecordBatch | None:
    """Return the next batch, or None at the end; Arrow passes on DuckDB's errors as OSError."""
    try:
        return next(reader, None)
    except OSError as error:
        raise duckdb.Error(str(error)) from None


@contextlib.contextmanager
def answered(
    path: Path, text: str, parameters: Mapping[str, Any] | None = None, most_s: float | None = None
) -> Iterator[Answer]:
    """Start one query on a warehouse file or a snapshot and yield its answer; raises WarehouseError.

    A query and its rows may take `most_s` seconds; None: any time.
    """
    with open_read_only(path) as connection, ThreadPoolExecutor(max_workers=1) as pool:
        answer = Answer(connection, pool, most_s)
        answer.start(text, parameters)
        yield answer


def distinct_names(columns: list[str]) -> list[str]:
    """Return the names with a number behind each repeated one, as DuckDB names columns of a table: a, a_1, a_2."""
    taken: set[str] = set()
    names = []
    for column in columns:
        name, number = column, 0
        while name.lower() in taken:
            number += 1
            name = f"{column}_{number}"
        taken.add(name.lower())
        names.append(name)
    return names
