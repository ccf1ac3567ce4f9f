"""Checksums of rows: equal if and only if two warehouses contain the same rows, in any order."""

import logging
from dataclasses import dataclass

import duckdb

from sql.schema import identifier

_log = logging.getLogger(__name__)
_VIEWS = """
SELECT view_name FROM duckdb_views() WHERE NOT internal AND NOT starts_with(view_name, '_') ORDER BY view_name
"""
_FLOATING = ("DOUBLE", "FLOAT")


@dataclass(frozen=True)
class Checksum:
    """A number of rows, and two sums of their hashes."""

    rows: int
    xor: int
    total: int


def view_checksums(connection: duckdb.DuckDBPyConnection) -> dict[str, Checksum]:
    """Return the checksum of each public view; internal ids are in none."""
    checksums = {}
    for (view,) in connection.execute(_VIEWS).fetchall():
        checksums[view] = checksum(connection, f"SELECT * FROM {identifier(view)}")
        _log.info("%s: %d rows", view, checksums[view].rows)
    return checksums


def checksum(connection: duckdb.DuckDBPyConnection, query: str) -> Checksum:
    """Return the checksum of the rows of a query.

    Floating-point values count to nine digits: the last ones of a sum depend on the order of its terms.
    """
    columns = connection.execute(f"DESCRIBE {query}").fetchall()
    row = ", ".join(_text(column[0], column[1]) for column in columns)
    [found] = connection.execute(
        f"SELECT count(*), coalesce(bit_xor(h), 0), coalesce(sum(h), 0) "
        f"FROM (SELECT hash(row({row})::VARCHAR) AS h FROM ({query}))"
    ).fetchall()
    return Checksum(*found)


def _text(column: str, kind: str) -> str:
    name = identifier(column)
    if kind in _FLOATING:
        return f"CASE WHEN {name} = 0 THEN '0' ELSE format('{{:.8e}}', {name}) END"  # -0.0 and 0.0 are equal
    return name
