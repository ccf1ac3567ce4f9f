"""The rows of the tables in this folder."""

import csv
import functools
from pathlib import Path


@functools.cache
def operator_categories() -> tuple[tuple[str, ...], ...]:
    """Return the rows (operator, kind, category) of operator_category.csv."""
    return _rows("operator_category.csv")


@functools.cache
def sme_rules() -> tuple[tuple[str, ...], ...]:
    """Return the rows (sme2, pattern) of sme_rule.csv; patterns are searched for in the names of operators."""
    return _rows("sme_rule.csv")


def _rows(name: str) -> tuple[tuple[str, ...], ...]:
    with (Path(__file__).parent / name).open(encoding="utf-8", newline="") as stream:
        _, *rows = csv.reader(stream)
    return tuple(tuple(row) for row in rows)
