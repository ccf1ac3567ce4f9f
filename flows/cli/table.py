"""Format rows as a plain-text table."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from devices.untrusted import sanitize_line

WIDEST_CELL = 60


def as_table(columns: Sequence[str], rows: Sequence[tuple[Any, ...]], *, widest_cell: int = WIDEST_CELL) -> str:
    """Return the table with one line per row and the number of rows last; long cells are cut with an ellipsis."""
    return "".join(table_lines(columns, [rows], widest_cell=widest_cell))


def table_lines(
    columns: Sequence[str], blocks: Iterable[Sequence[tuple[Any, ...]]], *, widest_cell: int = WIDEST_CELL
) -> Iterator[str]:
    """Yield the same table in pieces, for rows in blocks; the first block decides how wide the columns are."""
    count = 0
    widths: list[int] = []
    numeric: list[bool] = []

    def line(row: Sequence[str]) -> str:
        aligned = (c.rjust(w) if n else c.ljust(w) for c, w, n in zip(row, widths, numeric, strict=True))
        return "  ".join(aligned).rstrip() + "\n"

    def head(rows: Sequence[tuple[Any, ...]], cells: list[list[str]]) -> str:
        for at, column in enumerate(columns):
            widths.append(max(len(column), *(len(row[at]) for row in cells), 0))
            numeric.append(all(isinstance(row[at], int | float | None) for row in rows))
        return line(columns) + "  ".join("-" * width for width in widths) + "\n"

    for rows in blocks:
        cells = [[short_text(value, widest_cell) for value in row] for row in rows]
        if not widths:
            yield head(rows, cells)
        count += len(rows)
        yield "".join(map(line, cells))
    if not widths:
        yield head([], [])
    yield f"({count} row{'' if count == 1 else 's'})\n"


def short_text(value: Any, widest_cell: int | None = None) -> str:
    """Return a value in one line, numbers with 6 digits, NULL as nothing, and long text cut with an ellipsis."""
    if value is None:
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else sanitize_line(value)
    return text if widest_cell is None or len(text) <= widest_cell else text[: widest_cell - 1] + "…"
