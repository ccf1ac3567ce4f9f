"""The process in a cage: opens one warehouse file and answers queries until its input ends.

A request is a line of JSON; an answer is frames, each a letter, the length of its body (4 bytes, big-endian) and the
body:

    k  ready for requests                          c  the columns of a query that was started, as JSON
    r  rows, as JSON                               a  a part of a stream of Arrow
    z  the end of rows or of a stream              e  an error, as JSON
"""

import json
import os
import queue
import struct
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

from sql.cage.statements import check_text
from sql.cage.values import MAX_FRAME_BYTES, MAX_MESSAGE_CHARS, decode_parameters, encode_rows
from sql.errors import WarehouseError
from sql.warehouse import open_read_only, prepare_reader, query_errors

_BLOCK_ROWS = 10_000
_OUTPUT = 1  # a pipe to the owner
_BATCH_ROWS = 100_000  # a row group of a Parquet file


def serve(file: Path, memory_bytes: int) -> None:
    """Open the file and answer requests until the input ends; errors are answers, too."""
    requests = _requests()
    try:
        with open_read_only(file, memory_bytes=memory_bytes) as connection:
            _send(b"k")
            for request in requests:
                # Each query has a connection, so that temporary tables of one are unknown to the next.
                with connection.cursor() as cursor:
                    try:
                        prepare_reader(cursor, file)
                        _answer(cursor, request)
                    except Exception as error:
                        _send_error(error)
    except Exception as error:
        _send_error(error)


def _answer(connection: duckdb.DuckDBPyConnection, request: dict[str, Any]) -> None:
    """Check and run the query of a request; send its columns, its rows in the requested form and range, and the end."""
    check_text(connection, request["text"])
    connection.execute(request["text"], decode_parameters(request["parameters"]) or None)
    described = connection.description or []
    _send(b"c", json.dumps([name for name, *_ in described]).encode())
    if request["form"] == "arrow":
        _send_arrow(connection)
    else:
        skipped = request["first_row"]
        while skipped > 0 and (block := connection.fetchmany(min(_BLOCK_ROWS, skipped))):
            skipped -= len(block)
        count = request["end_row"] - request["first_row"]
        _send_rows(connection, count, has_maps=any("MAP(" in str(kind) for _, kind, *_ in described))
    _send(b"z")


def _send_rows(connection: duckdb.DuckDBPyConnection, max_rows: int, *, has_maps: bool) -> None:
    """Send up to `max_rows` rows in frames; raises WarehouseError if a single row is too large for one."""
    while max_rows > 0 and (block := connection.fetchmany(min(_BLOCK_ROWS, max_rows))):
        max_rows -= len(block)
        parts = [block]
        while parts:
            part = parts.pop()
            encoded = encode_rows(part, has_maps=has_maps)
            if len(encoded) <= MAX_FRAME_BYTES:
                _send(b"r", encoded)
            elif len(part) == 1:
                limit = f"{MAX_FRAME_BYTES >> 20} MiB"
                raise WarehouseError(
                    f"the query failed: one row has more than {limit}; select fewer columns, or shorten a text"
                )
            else:
                middle = len(part) // 2
                parts += [part[middle:], part[:middle]]


def _send_arrow(connection: duckdb.DuckDBPyConnection) -> None:
    import pyarrow as pa  # slow to import, and few queries need it

    reader = connection.to_arrow_reader(_BATCH_ROWS)
    with pa.ipc.new_stream(pa.PythonFile(_ArrowSink(), mode="w"), reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)


class _ArrowSink:
    """A file for Arrow that sends what is written to it in frames."""

    closed = False

    def write(self, data: bytes) -> int:
        view = memoryview(data)
        for at in range(0, len(view), MAX_FRAME_BYTES):
            _send(b"a", view[at : at + MAX_FRAME_BYTES])
        return len(view)

    def flush(self) -> None:
        """Do nothing: each part is sent at once."""

    def close(self) -> None:
        self.closed = True


def _requests() -> Iterator[dict[str, Any]]:
    """Yield each request; at the end of the input, end the process, also while DuckDB computes."""
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin.buffer:
            lines.put(line)
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    while True:
        yield json.loads(lines.get())


def _send(kind: bytes, body: bytes | memoryview = b"") -> None:
    """Send a frame; waits until the owner has taken it."""
    for part in (kind + struct.pack(">I", len(body)), body):
        left = memoryview(part)
        while left:
            left = left[os.write(_OUTPUT, left) :]


def _send_error(error: Exception) -> None:
    """Send an error as its class, its message and, for errors of warehouse or query, the sentence for a user."""
    fields = {"kind": type(error).__name__, "message": str(error), "sentence": None}
    if isinstance(error, duckdb.Error | WarehouseError):  # its owner makes a sentence of any other error
        try:
            with query_errors():
                raise error
        except WarehouseError as converted:
            fields["sentence"] = str(converted)
    _send(b"e", json.dumps({name: text and text[:MAX_MESSAGE_CHARS] for name, text in fields.items()}).encode())
