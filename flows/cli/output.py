"""Write output of commands: files, which are complete or not at all, and the rows of a query."""

import contextlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Literal

from devices.errors import InputError
from flows.terminal import show_pieces, show_table, terminal_width
from sql.cage.cage import Answer
from tasks.pages.answer_table import MAX_CELL_LINES, table_lines
from tasks.pages.rows import Blocks, as_text
from tasks.results.table import Column
from tasks.store.files import complete_file, remove_leftovers

_TEXT_FORMATS = {".csv": "csv", ".json": "json", ".md": "markdown"}
_SUFFIXES = (".csv", ".json", ".parquet", ".arrow", ".md")


def check_output(file: Path, suffixes: Collection[str]) -> None:
    """Raise InputError if the file has another suffix or is a folder."""
    if file.suffix not in suffixes:
        raise InputError(f"{file}: unknown output format; end its name in {', '.join(suffixes)}")
    if file.is_dir():
        raise InputError(f"{file}: is a folder; name a file")


@contextlib.contextmanager
def output_file(file: Path, suffixes: Collection[str] = _SUFFIXES) -> Iterator[BinaryIO]:
    """Yield a stream whose content becomes `file` unless the block raises; InputError as `check_output`."""
    check_output(file, suffixes)
    remove_leftovers(file.parent)
    with complete_file(file) as stream:
        yield stream


def show_rows(
    columns: Sequence[Column | str],
    blocks: Blocks,
    form: str,
    *,
    wide: bool,
    max_cell_lines: int | None = MAX_CELL_LINES,
) -> None:
    """Print rows as csv, json, markdown, or as a table that fits the terminal unless `wide`.

    On a terminal, a cell of more than `max_cell_lines` is cut, and the last line says so.
    """
    if form == "table":
        show_table(table_lines(columns, blocks, terminal_width(wide=wide), max_cell_lines))
    else:
        show_pieces(as_text([each if isinstance(each, str) else each.title for each in columns], blocks, form))


def row_form(file: Path) -> Literal["rows", "arrow"]:
    """Return the form of an answer that `write_rows` writes to a file of this name."""
    return "rows" if file.suffix in _TEXT_FORMATS else "arrow"


def write_rows(answer: Answer, stream: BinaryIO, file: Path) -> None:
    """Write all rows in the format of the suffix of `file`; InputError if it cannot store a column."""
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
