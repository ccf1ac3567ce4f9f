"""Write output of commands: files (complete or not at all), the rows of a query, a comparison."""

import contextlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Literal

from devices.errors import InputError
from flows.terminal import show, show_pieces
from flows.warehouse.readable import warehouse_reader
from sql.cage.cage import Answer
from tasks.pages import comparison as comparisons
from tasks.pages.rows import as_text
from tasks.results.changes import Comparison, fail_reasons
from tasks.results.explanation import explain_worst
from tasks.store.files import complete_file, remove_leftovers
from tasks.store.workspace import Workspace

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
    """Yield a stream whose content becomes `file` at the end of the block; on an error the file stays as it was.

    Raises InputError as `check_output`.
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


@dataclass(frozen=True)
class ComparisonOutput:
    """Formats and files of a comparison, for `etfarm compare` and `etfarm verdicts`."""

    form: str
    """table, csv, json or markdown; for any other one, `show` prints nothing."""
    files: Sequence[Path]
    workspace: Workspace

    def check(self) -> None:
        """Raise InputError if a file cannot be written; to call before anything is measured."""
        for file in self.files:
            check_output(file, comparisons.WRITERS)

    def show(self, comparison: Comparison) -> None:
        """Print and write a comparison; its Markdown, for a pull request, has an explanation of the worst change."""
        if self.form == "markdown" or any(file.suffix == ".md" for file in self.files):
            with warehouse_reader(self.workspace) as reader:
                comparison = replace(comparison, explained=explain_worst(reader, comparison))
        if self.form == "table":
            show_pieces(comparisons.terminal(comparison))
        elif self.form in ("csv", "json"):
            show_pieces(comparisons.rows_text(comparison, self.form))
        elif self.form == "markdown":
            show_pieces([comparisons.markdown(comparison)])
        for file in self.files:
            with output_file(file, comparisons.WRITERS) as stream:
                stream.write(comparisons.WRITERS[file.suffix](comparison).encode())

    def exit_code(self, comparison: Comparison, fail_on: Collection[str]) -> int:
        """Return 1, and print why, if `fail_on` lists the result of a change; else 0."""
        reasons = fail_reasons(comparison, fail_on)
        if reasons:
            show(f"etfarm: compare failed: {'; '.join(reasons)}", err=True)
        return 1 if reasons else 0
