"""The formats in which `etfarm sql` prints or writes rows, each a block at a time."""

import contextlib
import csv
import io
import json
import math
import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal

from devices.errors import InputError
from devices.foreign_text import plain
from flows.cli.table import short_text, table_lines
from sql.cage.cage import Answer, distinct_names
from tasks.pages.markdown import escaped
from tasks.store.files import complete_file, remove_leftovers

_TEXT_FORMATS = {".csv": "csv", ".json": "json", ".md": "markdown"}
_KEYS = (str, int, float, type(None))  # of objects in JSON; json writes them as text
_SUFFIXES = (".csv", ".json", ".parquet", ".arrow", ".md")


Blocks = Iterable[Sequence[tuple[Any, ...]]]
"""Rows in blocks, such as those of a query's answer."""


def as_text(columns: Sequence[str], blocks: Blocks, form: str) -> Iterator[str]:
    """Yield the rows in pieces, as `table`, `csv`, `json` or `markdown`.

    No text can act on a terminal that shows them: JSON escapes every character outside ASCII, the other formats replace
    control characters and marks of direction with U+FFFD.
    """
    writers = {"csv": _as_csv, "json": _as_json, "markdown": _as_markdown, "table": table_lines}
    try:
        yield from writers[form](columns, blocks)
    except RecursionError:
        raise InputError(f"a value is nested too deeply for {form}; select a part of it") from None


def check_output(file: Path, suffixes: Collection[str]) -> None:
    """Raise InputError if nothing can be written to a file of this name."""
    if file.suffix not in suffixes:
        raise InputError(f"{file}: unknown output format; end its name in {', '.join(suffixes)}")
    if file.is_dir():
        raise InputError(f"{file}: is a folder; name a file")


@contextlib.contextmanager
def output_file(file: Path, suffixes: Collection[str] = _SUFFIXES) -> Iterator[BinaryIO]:
    """Yield a stream whose content becomes `file` at the end of the block; on an error the file stays as it was.

    Raises InputError if rows cannot be written to a file of this name.
    """
    check_output(file, suffixes)
    remove_leftovers(file.parent)
    with complete_file(file) as stream:
        yield stream


def row_form(file: Path) -> Literal["rows", "arrow"]:
    """Return the form of an answer that `write_rows` writes to a file of this name."""
    return "rows" if file.suffix in _TEXT_FORMATS else "arrow"


def write_rows(answer: Answer, stream: BinaryIO, file: Path) -> None:
    """Write all rows to the stream of `file` in the format of its suffix.

    Raises InputError if the format cannot store a column.
    """
    if file.suffix in _TEXT_FORMATS:
        for piece in as_text(answer.columns, answer.blocks(), _TEXT_FORMATS[file.suffix]):
            stream.write(piece.encode())
        return
    import pyarrow as pa  # slow to import

    try:
        _write_arrow(answer, stream, file.suffix)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        cause = " ".join(str(error).split())
        raise InputError(
            f"{file}: this format cannot store a column ({cause}); cast the column, or write .csv"
        ) from None


def _write_arrow(answer: Answer, stream: BinaryIO, suffix: str) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    schema, batches = answer.batches()
    if suffix == ".parquet":
        with parquet.ParquetWriter(stream, schema, compression="zstd") as writer:
            for batch in batches:
                writer.write_batch(batch)
        return
    with pa.ipc.new_file(stream, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _as_csv(columns: Sequence[str], blocks: Blocks) -> Iterator[str]:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for block in blocks:
        writer.writerows(block)
        yield plain(text.getvalue())
        text.seek(0)
        text.truncate()
    yield plain(text.getvalue())


def _as_json(columns: Sequence[str], blocks: Blocks) -> Iterator[str]:
    names = distinct_names(list(columns))
    before = "[\n"
    for block in blocks:
        rows = (dict(zip(names, map(for_json, row), strict=True)) for row in block)
        yield before + ",\n".join(textwrap.indent(_json(row), " ") for row in rows)
        before = ",\n"
    yield "[]\n" if before == "[\n" else "\n]\n"


def _json(row: dict[str, Any]) -> str:
    return json.dumps(row, indent=1, default=str).replace("\x7f", "\\u007f")  # the one that json leaves


def for_json(value: Any) -> Any:
    """Replace what JSON does not support: NaN and infinite numbers with None, keys such as dates with their text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key if isinstance(key, _KEYS) else str(key): for_json(inner) for key, inner in value.items()}
    return [for_json(inner) for inner in value] if isinstance(value, list | tuple) else value


def _as_markdown(columns: Sequence[str], blocks: Blocks) -> Iterator[str]:
    def line(cells: list[str]) -> str:
        return f"| {' | '.join(cells)} |\n"

    yield line([escaped(column) for column in columns]) + line(["---"] * len(columns))
    for block in blocks:
        yield "".join(line([escaped(short_text(value)) for value in row]) for row in block)
