"""The rows of the tables in this folder."""

import csv
import functools
import re
from pathlib import Path


@functools.cache
def operator_categories() -> tuple[tuple[str, ...], ...]:
    """Return the rows (operator, kind, category) of operator_category.csv."""
    return _rows("operator_category.csv")


@functools.cache
def sme_rules() -> tuple[tuple[str, ...], ...]:
    """Return the rows (sme2, pattern) of sme_rule.csv; patterns are searched for in the names of operators."""
    return _rows("sme_rule.csv")


@functools.cache
def interval_ranks() -> tuple[tuple[int, int], ...]:
    """Return the rows (values, rank) of interval_rank.csv."""
    return tuple((int(values), int(rank)) for values, rank in _rows("interval_rank.csv"))


@functools.cache
def scalar_patterns() -> tuple[str, ...]:
    """Return the patterns of scalar_operator.csv."""
    return tuple(pattern for (pattern,) in _rows("scalar_operator.csv"))


@functools.cache
def is_scalar_operator(operator: str) -> bool:
    """Return whether an operator of an exported graph computes a shape or a number, so that it is not portable.

    The one rule, by scalar_operator.csv; the macro `_is_scalar_operator` is the same for SQL.
    """
    return any(re.search(pattern, operator) for pattern in scalar_patterns())


def _rows(name: str) -> tuple[tuple[str, ...], ...]:
    with (Path(__file__).parent / name).open(encoding="utf-8", newline="") as stream:
        _, *rows = csv.reader(stream)
    return tuple(tuple(row) for row in rows)
