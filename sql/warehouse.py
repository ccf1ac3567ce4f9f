"""The warehouse: one DuckDB file with one writer at a time; readers open copies of it (tasks/load/snapshot.py)."""

import contextlib
import fcntl
import random
import re
import time
import warnings
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import duckdb

from sql.errors import (
    DAMAGED_REMEDY,
    InvalidDatabase,
    NoWarehouse,
    RowsRefused,
    UnusableFile,
    WarehouseDamaged,
    WarehouseError,
    shows_damage,
)
from sql.readable import MAX_WAIT_S, MISSING, query_memory_bytes, writer_lock
from sql.schema import bring_up_to_date, check_schema, migrations, update_for_reader

if TYPE_CHECKING:
    import pyarrow as pa

# From DuckDB 2 on; it is about a copy of the rows, which are few.
warnings.filterwarnings("ignore", "Arrow output on a DB-API result")

Settings = dict[str, str | bool | int | float | list[str]]
# Of a new file. A load writes a block or more of each table, four times as many bytes with DuckDB's default; blocks of
# 16 KiB make a large table four times as large.
_NEW_FILE: Settings = {"default_block_size": str(1 << 16)}


@contextlib.contextmanager
def writing(path: Path, *, max_wait_s: float = MAX_WAIT_S) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the warehouse for one transaction, which is committed if the block ends without an error.

    Creates the warehouse or brings it up to date first. Waits up to `max_wait_s` seconds for another process that has
    it open. Raises WarehouseError, and RowsRefused if rows do not fit their table; nothing of the transaction is
    stored then.
    """
    with _opened(path, None, max_wait_s=max_wait_s) as connection:
        bring_up_to_date(connection, path)
        connection.begin()
        yield connection
        connection.commit()


def keep_open(path: Path) -> contextlib.AbstractContextManager[object]:
    """Open a warehouse once for all transactions of the block, which take turns with no other process; creates none.

    Opening and closing takes longer than a small transaction. Raises WarehouseError.
    """
    return _opened(path, None, max_wait_s=MAX_WAIT_S) if path.is_file() else contextlib.nullcontext()


@contextlib.contextmanager
def open_read_only(
    path: Path, *, max_wait_s: float = MAX_WAIT_S, memory_bytes: int | None = None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a warehouse file or one snapshot of this farm for reading; waits up to `max_wait_s` seconds for a writer.

    Queries use up to `memory_bytes` (default: `query_memory_bytes`), never spill to disk, and reach no other file,
    extension or setting. For a user's query, or a file from elsewhere, use sql/cage. Raises WarehouseError.
    """
    if not path.is_file():
        raise NoWarehouse(MISSING.format(path))
    settings = reader_settings(memory_bytes or query_memory_bytes())
    with _opened(path, settings, max_wait_s=max_wait_s) as connection:
        prepare_reader(connection, path)
        yield connection


def prepare_reader(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Check the tables and, if no migration is missing, give the reader this version's views; raises WarehouseError."""
    if check_schema(connection, path) == len(migrations()):
        update_for_reader(connection)


@contextlib.contextmanager
def open_to_copy(path: Path) -> Iterator[tuple[BinaryIO, duckdb.DuckDBPyConnection]]:
    """Yield the bytes of an up-to-date warehouse, which no other process can write to inside the block, and open it.

    Writers wait meanwhile, up to their `max_wait_s`. Raises WarehouseError.
    """
    if not path.is_file():
        raise WarehouseError(f"{path}: there is no warehouse to publish; create one with `etfarm warehouse load`")
    # POSIX drops DuckDB's lock as soon as this process closes any other descriptor of the file, so the descriptor to
    # copy from is opened before the connection and closed after it.
    with path.open("rb") as source, exclusive(path) as connection:
        yield source, connection


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a warehouse that is up to date and complete in its file; no other process can write to it meanwhile.

    For copying or replacing the file: writers wait, up to their `max_wait_s`, and then open what is at `path`.
    Creates a missing warehouse. Raises WarehouseError.
    """
    with _opened(path, None, max_wait_s=MAX_WAIT_S) as connection:
        bring_up_to_date(connection, path)
        connection.execute("CHECKPOINT")
        yield connection


def keep_aside(path: Path, damage: UnusableFile) -> Path | None:
    """Rename a damaged or outdated warehouse to `<name>-damaged-<time>` beside it, with its log; return the new path.

    Return None if that file is gone, because another process was first. Raises WarehouseError if another process has
    it open.
    """
    if damage.inode is None or _inode(path) != damage.inode:
        return None
    with path.open("r+b") as stream:
        try:
            fcntl.lockf(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the lock that DuckDB takes
        except OSError:
            raise WarehouseError(f"{path} is open in another process; close it there") from None
        if _inode(path) != damage.inode:
            return None
        aside = path.with_name(f"{path.stem}-damaged-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}{path.suffix}")
        log = path.with_name(f"{path.name}.wal")
        if log.is_file():
            log.rename(aside.with_name(f"{aside.name}.wal"))
        path.rename(aside)
    return aside


def query(path: Path, text: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Run one trusted SQL query on a warehouse file or a snapshot; return its columns and rows.

    Raises WarehouseError with DuckDB's message and suggestions if the query is wrong.
    """
    with open_read_only(path) as connection, query_errors():
        answer = connection.execute(text)
        return [column[0] for column in answer.description or []], answer.fetchall()


def insert_rows(connection: duckdb.DuckDBPyConnection, table: str, rows: "Sequence[dict[str, Any]] | pa.Table") -> None:
    """Insert rows by the names of their columns, which are the same in all; `table` is never user input."""
    import pyarrow as pa  # slow to import, and a reader does not need it

    if not len(rows):
        return
    connection.register("new_rows", rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows))
    connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM new_rows")
    connection.unregister("new_rows")


@contextlib.contextmanager
def query_errors() -> Iterator[None]:
    """Turn DuckDB's errors inside the block into WarehouseError, with DuckDB's message and suggestions in one line."""
    try:
        yield
    except duckdb.PermissionException as error:
        raise WarehouseError(
            "the query was refused: queries only read the warehouse, no other file and no extension "
            f"({_with_suggestions(error)})"
        ) from None
    except duckdb.OutOfMemoryException:
        raise WarehouseError(
            "the query failed: it needs more memory than a query may use (half of the machine's, at most 8 GiB); "
            "select fewer rows or columns, or aggregate them"
        ) from None
    except duckdb.InterruptException:
        # An error in one of DuckDB's threads stops the others, and it may report that one of those was stopped.
        raise WarehouseError("the query failed while rows were fetched; run it again to see the cause") from None
    except duckdb.Error as error:
        if shows_damage(error):
            cause = f"the warehouse is damaged ({_with_suggestions(error)})"
            raise WarehouseError(f"the query failed: {cause}; {DAMAGED_REMEDY}") from None
        raise WarehouseError(f"the query failed: {_with_suggestions(error)}") from None


def _with_suggestions(error: duckdb.Error) -> str:
    """Return DuckDB's message in one line, names that it suggests included, without the statement below it."""
    message = str(error).split("query result\nError: ")[-1].split("\n\n", maxsplit=1)[0]
    return " ".join(message.split()).rstrip(".")


def first_line(error: Exception) -> str:
    """Return the first line of an error's text, without DuckDB's advice and statement below it."""
    return (str(error).splitlines() or [type(error).__name__])[0].strip().rstrip(".")


def reader_settings(memory_bytes: int) -> Settings:
    """Return DuckDB settings for readers: no other files, no extensions, limited memory, and no way to change them."""
    return {
        "enable_external_access": "false",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
        "allow_persistent_secrets": "false",
        "python_enable_replacements": "false",  # otherwise a name in SQL may mean a variable of this program
        "memory_limit": f"{memory_bytes >> 20}MiB",
        "temp_directory": "",
        "lock_configuration": "true",
    }


@contextlib.contextmanager
def _opened(path: Path, settings: Settings | None, *, max_wait_s: float) -> Iterator[duckdb.DuckDBPyConnection]:
    """Connect, with a reader's settings to read, without any to write.

    Errors of DuckDB inside the block become WarehouseError, for a writer those of the disk too. A reader's OSError
    comes from where it puts the rows, and stays as it is.
    """
    before, read_only = _size(path), settings is not None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with (
            contextlib.nullcontext() if read_only else writer_lock(path),
            contextlib.closing(_connect(path, settings, max_wait_s=max_wait_s)) as connection,
        ):
            yield connection
    except (duckdb.DataError, duckdb.IntegrityError, duckdb.ProgrammingError) as error:
        _raise_if_damaged(path, error)
        if read_only:
            raise WarehouseError(f"{path}: the warehouse could not be read ({first_line(error)})") from error
        raise RowsRefused(f"{path}: rows were refused ({first_line(error)}); none of them was stored") from error
    except (duckdb.Error, OSError) as error:
        if read_only and isinstance(error, OSError):
            raise
        _raise_if_damaged(path, error)
        verb = "read" if read_only else "written"
        rest = "its previous content is intact" if before else "nothing was stored"
        raise WarehouseError(f"{path}: the warehouse could not be {verb} ({first_line(error)}); {rest}") from error


def _raise_if_damaged(path: Path, error: Exception) -> None:
    if shows_damage(error):
        cause = f"the warehouse is damaged ({first_line(error)})"
        raise WarehouseDamaged(f"{path}: {cause}; {DAMAGED_REMEDY}", _inode(path)) from error


def _connect(path: Path, settings: Settings | None, *, max_wait_s: float) -> duckdb.DuckDBPyConnection:
    """Open the file that is at `path` now, for reading if there are `settings`; wait while another process has it open.

    Raises InvalidDatabase, WarehouseDamaged if the file is empty, WarehouseError after `max_wait_s`, or duckdb.Error.
    """
    give_up = time.monotonic() + max_wait_s
    while True:
        before = _inode(path)
        try:
            config = settings or ({} if before else _NEW_FILE)
            connection = duckdb.connect(str(path), read_only=settings is not None, config=config)
            if before in (None, _inode(path)):
                return connection
            connection.close()  # the file was replaced after it was opened: what is written to it would be lost
        except (duckdb.IOException, duckdb.ConnectionException) as error:
            if "not a valid DuckDB database" in str(error):
                if _size(path) == 0:
                    cause = "the warehouse is damaged (the file is empty)"
                    raise WarehouseDamaged(f"{path}: {cause}; {DAMAGED_REMEDY}", _inode(path)) from None
                cause = "it is not a DuckDB file"
                raise InvalidDatabase(f"{path} is not a warehouse: {cause}; name another file", _inode(path)) from None
            if "Could not set lock" not in str(error) and "different configuration" not in str(error):
                raise
            if time.monotonic() >= give_up:
                match = re.search(r"PID (\d+)", str(error))
                holder = f" (process {match[1]})" if match else ""
                raise WarehouseError(f"{path} is open in another process{holder}; close it there") from None
            time.sleep(random.uniform(0.005, 0.05))


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None
