"""Format rows as a plain-text table."""

from collections.abc import Sequence
from typing import Any

WIDEST_CELL = 60


def as_table(columns: Sequence[str], rows: Sequence[tuple[Any, ...]], *, widest_cell: int = WIDEST_CELL) -> str:
    """Return the table with one line per row and the number of rows last; long cells are cut with an ellipsis."""
    cells = [[_short(value, widest_cell) for value in row] for row in rows]
    widths = [max(len(line[at]) for line in [list(columns), *cells]) for at in range(len(columns))]
    numeric = [all(isinstance(row[at], int | float | None) for row in rows) for at in range(len(columns))]

    def line(row: list[str]) -> str:
        aligned = (c.rjust(w) if n else c.ljust(w) for c, w, n in zip(row, widths, numeric, strict=True))
        return "  ".join(aligned).rstrip()

    rule = "  ".join("-" * width for width in widths)
    count = f"({len(rows)} row{'' if len(rows) == 1 else 's'})"
    return "\n".join([line(list(columns)), rule, *map(line, cells), count]) + "\n"


def _short(value: Any, widest_cell: int) -> str:
    if value is None:
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else " ".join(str(value).splitlines())
    return text if len(text) <= widest_cell else text[: widest_cell - 1] + "…"
