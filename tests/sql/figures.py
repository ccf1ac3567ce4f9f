"""What every column of the views shows of the described farm, in figures.csv.

Run: python -m tests.sql.figures

It writes the file anew. Its difference to the file before is what a change of the views changed for their readers.
"""

import csv
import hashlib
import math
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sql.schema import sql_files
from sql.warehouse import query
from tests.fixtures.described_farm import DescribedFarm, write_farm

FILE = Path(__file__).with_name("figures.csv")
HEAD = ("view", "column", "filled", "distinct", "least", "most", "sum")


def figures_of(warehouse: Path) -> Iterator[tuple[str, ...]]:
    """Yield the lines of each view that users and the report read: one for its rows, one for each column."""
    asked = " ".join(file.text for file in sql_files("queries"))
    for file in sql_files("views"):
        if file.name.startswith("_") and not re.search(rf"\b{file.name}\b", asked):
            continue
        columns, rows = query(warehouse, f"SELECT COLUMNS(name -> name <> 'cell_id') FROM {file.name}")
        shown = sorted("|".join(map(_shown, row)) for row in rows)
        checksum = hashlib.sha256("\n".join(shown).encode()).hexdigest()[:12]
        yield (file.name, "", str(len(rows)), str(len(set(shown))), checksum, "", "")
        for position, column in enumerate(columns):
            yield (file.name, column, *_figures(row[position] for row in rows))


def _figures(values: Iterator[Any]) -> Iterator[str]:
    filled = [value for value in values if value is not None]
    yield str(len(filled))
    yield str(len(set(map(_shown, filled))))
    is_sorted = bool(filled) and not isinstance(filled[0], list | dict)
    yield from (_shown(end(filled))[:40] if is_sorted else "" for end in (min, max))
    is_number = bool(filled) and isinstance(filled[0], int | float)
    yield _shown(round(math.fsum(filled), 9)) if is_number else ""


def _shown(value: Any) -> str:
    """Return a value as text; of a sum, the order of its numbers changes the last digits."""
    return f"{value:.9g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, FILE.open("w", newline="", encoding="utf-8") as stream:
        described = DescribedFarm(Path(folder))
        write_farm(described)
        csv.writer(stream, lineterminator="\n").writerows([HEAD, *figures_of(described.warehouse)])
