"""Runs queries of users and agents in a child process that can only read one warehouse file (child.py, answers.py).

What the child returns is data, and is checked: a crash, a message of any length or a hostile warehouse is an error of
one query. This side imports neither DuckDB nor Arrow, which cost a question half a second.
"""

import contextlib
import io
import json
import math
import os
import select
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from sql.cage.limits import DEFAULT_LIMITS, Budget, Limits, QueryError
from sql.cage.values import MAX_FRAME_BYTES, Row, decode_columns, decode_rows, encode_parameters
from sql.readable import ReadableFile, query_memory_bytes

if TYPE_CHECKING:
    import pyarrow as pa

_HEADER = struct.Struct(">cI")
_READ_BYTES = 1 << 20
_ALL_ROWS = range(1 << 62)
_ENDS_WITHIN_S = 1.0
# Errors after which DuckDB answers no other query, or Python may have lost an object.
_BREAKS_CHILD = {"FatalException", "InternalException", "OutOfMemoryException", "MemoryError", "SystemError", "Error"}


class Cage:
    """A child process that answers queries about one warehouse file, one at a time.

    Its start takes about 0.2 s, in which this process can do something else. It ends with `close`, with this process,
    and with a query that crashed, took too long or was not read to its end.
    """

    def __init__(self, file: ReadableFile, limits: Limits = DEFAULT_LIMITS) -> None:
        self.file, self.limits = file, limits
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-I", *["-B"] * sys.dont_write_bytecode, str(Path(__file__).with_name("child.py"))),
                *(str(file.path.absolute()), str(limits.memory_bytes or query_memory_bytes())),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"TZ": os.environ["TZ"]} if "TZ" in os.environ else {},
            cwd="/",
            start_new_session=True,  # Ctrl-C is for this process, which ends the child
        )
        self._is_ready = False
        self._has_answered = True

    @property
    def is_idle(self) -> bool:
        """Whether the child can answer another query."""
        return self._has_answered and self._process.poll() is None

    def ask(
        self,
        text: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        form: Literal["rows", "arrow"] = "rows",
        rows: range = _ALL_ROWS,
    ) -> "Answer":
        """Start a query with its named parameters; the answer has its columns, then its rows while they are computed.

        Read an answer of form `rows` with `blocks`: it contains the rows with the numbers in `rows`, from 0. Read one
        of form `arrow` with `batches`: it contains all rows. Raises QueryError if the query is refused, wrong, beyond a
        limit or ends the child, or if the file is not a warehouse.
        """
        request = {"text": text, "parameters": encode_parameters(parameters or {}), "form": form}
        budget = Budget(self.limits)
        self._has_answered = False
        try:
            if not self._is_ready:
                self._receive(b"k", budget)
                self._is_ready = True
            self._send({**request, "first_row": rows.start, "end_row": rows.stop})
            _, body = self._receive(b"c", budget)
            columns = decode_columns(body)
        except BaseException as error:
            self._close_unless_answered()
            if isinstance(error, ValueError):
                raise _bad_answer_error(error) from None
            raise
        return Answer(self, columns, budget)

    def kill(self) -> None:
        """End the child: a thread that waits for an answer gets a QueryError. Call `close` as well."""
        self._process.kill()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                with contextlib.suppress(OSError):  # what was not sent yet
                    pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, request: Mapping[str, Any]) -> None:
        assert self._process.stdin
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._crash_error() from None

    def _receive(self, expected: bytes, budget: Budget) -> tuple[bytes, bytes]:
        """Return kind and body of the next frame; raises QueryError for an error, another kind, and beyond a limit."""
        kind, length = _HEADER.unpack(self._read(_HEADER.size, budget))
        budget.spend(length)
        if length > MAX_FRAME_BYTES or kind not in (expected + b"e"):
            raise _bad_answer_error("something else than an answer")
        body = self._read(length, budget)
        if kind == b"e":
            error = _decode_error(body, self.file)
            self._has_answered = error.kind not in _BREAKS_CHILD
            raise error
        self._has_answered = kind == b"z"
        return kind, body

    def _read(self, length: int, budget: Budget) -> bytes:
        """Return `length` bytes of the child's output; raises QueryError at the limit of time or if the child ended."""
        assert self._process.stdout
        pipe, parts, poll = self._process.stdout.fileno(), bytearray(), select.poll()
        poll.register(pipe, select.POLLIN)
        while len(parts) < length:
            if not poll.poll(math.ceil(budget.left_s() * 1_000)):
                limit = f"{self.limits.max_s:g} s"
                raise QueryError(f"the query took longer than {limit}; select fewer rows, or a model, device or night")
            part = os.read(pipe, min(length - len(parts), _READ_BYTES))
            if not part:
                raise self._crash_error()
            parts += part
        return bytes(parts)

    def _close_unless_answered(self) -> None:
        if not self._has_answered:
            self.close()

    def _crash_error(self) -> QueryError:
        """End the child, which closed a pipe, and return the error of its query."""
        try:
            code = self._process.wait(_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:  # it closed its output only
            self._process.kill()
            code = self._process.wait()
        ending = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        cause = "possibly out of memory" if code == -signal.SIGKILL else "a fault of DuckDB that this query meets"
        return QueryError(f"the query ended the process that ran it ({ending}: {cause}); write it in another way")


class Answer:
    """The columns of a query, and its rows while they are computed; read them once, to the end."""

    def __init__(self, cage: Cage, columns: list[str], budget: Budget) -> None:
        self._cage = cage
        self._budget = budget
        self.columns = columns
        self.rows = 0
        """Rows read so far."""

    def blocks(self) -> Iterator[list[Row]]:
        """Yield the rows in blocks of up to 10,000; raises QueryError."""
        for body in self._bodies(b"r"):
            try:
                block = decode_rows(body, len(self.columns))
            except ValueError as error:
                raise _bad_answer_error(error) from None
            self.rows += len(block)
            yield block

    def all_rows(self) -> list[Row]:
        """Return all rows; raises QueryError above 256 MiB."""
        self.limit_to_memory()
        return [row for block in self.blocks() for row in block]

    def limit_to_memory(self) -> None:
        """Limit the rest of the answer to 256 MiB, because it is kept in memory; reading more raises QueryError."""
        self._budget.limit_to_memory()

    def batches(self) -> "tuple[pa.Schema, Iterator[pa.RecordBatch]]":
        """Return the Arrow schema, with distinct names, and the rows in batches of up to 100,000."""
        import pyarrow as pa

        parts = self._bodies(b"a")
        try:
            reader = pa.ipc.open_stream(pa.PythonFile(io.BufferedReader(_Stream(parts)), mode="r"))
        except (pa.ArrowException, OSError, MemoryError) as error:
            raise _bad_answer_error(error) from None
        names = distinct_names(self.columns)
        if len(names) != len(reader.schema):
            raise _bad_answer_error(f"{len(reader.schema)} columns instead of {len(names)}")
        schema = pa.schema([field.with_name(name) for field, name in zip(reader.schema, names, strict=True)])
        return schema, self._batches(reader, schema, parts)

    def _batches(
        self, reader: "pa.RecordBatchReader", schema: "pa.Schema", parts: Iterator[bytes]
    ) -> "Iterator[pa.RecordBatch]":
        """Yield each batch, validated and with the names of `schema`; raises QueryError."""
        import pyarrow as pa

        while True:
            try:
                batch = next(reader, None)
                if batch is None:
                    for _ in parts:  # up to the end of the answer, after which the child answers another query
                        pass
                    return
                batch.validate(full=True)
            except (pa.ArrowException, OSError, MemoryError) as error:
                raise _bad_answer_error(error) from None
            self.rows += batch.num_rows
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)

    def _bodies(self, kind: bytes) -> Iterator[bytes]:
        """Yield the bodies of the frames up to the end of the answer; end the child if they are not read that far."""
        try:
            while True:
                received, body = self._cage._receive(kind + b"z", self._budget)
                if received == b"z":
                    return
                yield body
        finally:
            self._cage._close_unless_answered()


class _Stream(io.RawIOBase):
    """Parts of a stream as a file that Arrow reads."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts = parts
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer from the current or the next part; return the number of bytes, 0 at the end."""
        if not self._rest:
            self._rest = memoryview(next(self._parts, b""))
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


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


def _decode_error(body: bytes, file: ReadableFile) -> QueryError:
    """Return the error in a frame, with the file as the user named it, not the copy that was opened."""
    try:
        opened, named = str(file.path.absolute()), str(file.named)
        fields = {name: str(text or "").replace(opened, named) for name, text in json.loads(body).items()}
        kind, message = fields["kind"], fields["message"]
        return QueryError(fields["sentence"] or f"the query failed: {kind}: {message}", kind, message)
    except (ValueError, AttributeError, KeyError, RecursionError):
        return QueryError("the query failed, and its process sent no reason; run it again")


def _bad_answer_error(cause: object) -> QueryError:
    return QueryError(f"the query failed: its process did not send an answer ({cause}); run it again")
