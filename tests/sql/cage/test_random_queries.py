"""No query ends more than its own process: random ones name every function of DuckDB.

A query nests functions of the list, allowed or refused, with NULL, extremes, huge and nested arguments, in every part
of a statement. `--hypothesis-profile=fuzz` asks for hours.
"""

import random
import re
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sql.cage.limits import Limits, QueryError
from sql.cage.statements import is_allowed
from sql.cage.warm import WarmCage
from sql.readable import ReadableFile
from sql.warehouse import writing

_MAX_S = 5.0
_LATE_S = 30.0  # beyond the limit: a busy machine, and the start of a child
_MAX_CHARS = 2_000
_ARGUMENTS = (
    "NULL", "0", "1", "-1", "2147483647", "-9223372036854775808", "9223372036854775807", "1e308", "'nan'::DOUBLE",
    "'-inf'::DOUBLE", "170141183460469231731687303715884105727", "''", "'a'", "'%'", "'['", "repeat('a', 100000)",
    "repeat('[', 5000)", "repeat('(a*)*', 20)", "chr(0)", "'\\xF0\\x9F'::BLOB", "TRUE", "DATE '0001-01-01'",
    "DATE '9999-12-31'", "TIMESTAMP 'infinity'", "INTERVAL 99999999 YEARS", "[]", "[NULL]", "[[1], NULL]",
    "range(100000)", "{'a': NULL}", "MAP {NULL: 1}", "MAP {1: NULL}", "'{\"a\": [1, null]}'::JSON", "uuid()",
    "1.5::DECIMAL(38, 37)", "'1'::BIT", "array_value(1, 2, 3)", "union_value(a := NULL)", "x", "*", "lambda y: y",
    "lambda y, z: z", "sweep", "(SELECT x)", "'a'::ENUM('a')", "NULL::INTEGER[]", "NULL::STRUCT(a INTEGER)",
)  # fmt: skip
_TYPE = re.compile(
    r"(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|VARCHAR|DOUBLE|FLOAT|BOOLEAN|DATE|TIME\w*|BLOB|BIT|JSON|UUID)(\[\])?"
)
_STATEMENTS = (
    "SELECT {}", "SELECT {} FROM range(3) t(x)", "SELECT {} OVER () FROM range(3) t(x)",
    "SELECT {} OVER (ORDER BY x ROWS BETWEEN {} PRECEDING AND {} FOLLOWING) FROM range(3) t(x)", "FROM {}",
    "FROM {} LIMIT 3", "SELECT x FROM range(3) t(x) WHERE {} IS NOT NULL", "SELECT {} FROM range(3) t(x) GROUP BY x",
    "SELECT x FROM range(3) t(x) ORDER BY {}", "EXPLAIN SELECT {}", "DESCRIBE SELECT {}", "SUMMARIZE SELECT {} AS x",
    "CREATE TEMP TABLE t AS SELECT {} AS x; FROM t", "PIVOT (SELECT 1 AS x, {} AS y) ON x USING first(y)",
    "SELECT DISTINCT {} FROM range(3) t(x)", "SELECT list({}) FROM range(3) t(x)", "SELECT CAST({} AS VARCHAR)",
    "SELECT COLUMNS(*)::{} FROM range(3)", "WITH RECURSIVE t(x) AS (SELECT 1 UNION SELECT {} FROM t) FROM t LIMIT 9",
)  # fmt: skip


@pytest.fixture
def warm() -> Iterator[WarmCage]:
    cage = WarmCage()
    yield cage
    cage.end()


@pytest.mark.fault
@pytest.mark.long
@pytest.mark.thorough
def test_a_random_query_is_answered_or_refused_in_time_and_leaves_no_file(tmp_path: Path, warm: WarmCage) -> None:
    path = tmp_path / "warehouse.duckdb"
    with writing(path):
        pass
    file, beside, functions = ReadableFile(path, is_ours=False, named=path), sorted(tmp_path.iterdir()), _functions()

    @settings(max_examples=20 * settings().max_examples)
    @given(st.integers(0))
    def each(seed: int) -> None:
        started, message = time.monotonic(), ""
        try:
            with warm.cage(file, Limits(max_s=_MAX_S)) as cage:
                cage.ask(_query(random.Random(seed), functions), rows=range(1000)).all_rows()
        except QueryError as error:
            message = str(error)
        assert len(message) <= _MAX_CHARS
        assert time.monotonic() - started < _MAX_S + _LATE_S
        assert sorted(tmp_path.iterdir()) == beside

    each()


_Function = tuple[str, list[str]]


def _functions() -> list[_Function]:
    """Return each function that is allowed, by its signatures, and some of the others."""
    with duckdb.connect() as connection:
        rows = connection.execute("SELECT function_name, parameter_types FROM duckdb_functions() ORDER BY ALL")
        functions = [(name, types or []) for name, types in rows.fetchall()]
    allowed = [function for function in functions if is_allowed(function[0])]
    return allowed + [function for function in functions if not is_allowed(function[0])][::10]


def _query(chance: random.Random, functions: list[_Function]) -> str:
    statement = chance.choice(_STATEMENTS)
    for _ in range(statement.count("{}")):
        statement = statement.replace("{}", _call(chance, functions, chance.choice((1, 1, 2, 3))), 1)
    return statement


def _call(chance: random.Random, functions: list[_Function], depth: int) -> str:
    name, types = chance.choice(functions)
    written = name if name.isidentifier() else f'"{name}"'
    if chance.random() < 0.1:
        types = chance.choice(functions)[1]
    arguments = []
    for kind in types:
        is_nested = depth > 1 and chance.random() < 0.5
        value = _call(chance, functions, depth - 1) if is_nested else chance.choice(_ARGUMENTS)
        # Most values fit the signature, so that most queries compute.
        is_cast = kind is not None and _TYPE.fullmatch(kind) and chance.random() < 0.9
        arguments.append(f"TRY_CAST({value} AS {kind})" if is_cast else value)
    if chance.random() < 0.01:
        arguments = ["(" * 3000 + "1" + ")" * 3000]
    return f"{written}({', '.join(arguments)})"
