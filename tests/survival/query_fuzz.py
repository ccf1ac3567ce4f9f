"""Does any query end more than its own process? Asks random ones that name every function of DuckDB, for an hour.

Run: python -m tests.survival.query_fuzz --minutes 60 --seed 1

A query nests functions of the list, allowed or refused, with NULL, extremes, huge and nested arguments, in every part
of a statement. It prints how queries ended, and what ended a child. It fails if this process dies, if a query takes
longer than its limit, if a file appears beside the warehouse, or if a message has more than a screen.
"""

import argparse
import collections
import random
import re
import sys
import tempfile
import time
from pathlib import Path

import duckdb

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


def main() -> int:
    """Ask until the time is over; return how many promises were broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "warehouse.duckdb"
        with writing(path):
            pass
        endings, broken = _ask(ReadableFile(path, is_ours=False, named=path), options.seed, 60 * options.minutes)
    for ending, count in endings.most_common():
        print(f"{count:8}  {ending}")
    print(f"{sum(endings.values())} queries, {len(broken)} broken promises", *broken, sep="\n")
    return len(broken)


def _ask(file: ReadableFile, seed: int, seconds: float) -> tuple[collections.Counter[str], list[str]]:
    chance, warm, until = random.Random(seed), WarmCage(), time.monotonic() + seconds
    functions = _functions()
    endings, broken, beside = collections.Counter[str](), list[str](), sorted(file.path.parent.iterdir())
    while time.monotonic() < until:
        text, started = _query(chance, functions), time.monotonic()
        try:
            with warm.cage(file, Limits(max_s=_MAX_S)) as cage:
                cage.ask(text, rows=range(1000)).all_rows()
            ending = "answered"
        except QueryError as error:
            ending = _kind(str(error))
            if len(str(error)) > _MAX_CHARS:
                broken.append(f"a message of {len(str(error))} characters: {text[:300]}")
        endings[ending] += 1
        if time.monotonic() - started > _MAX_S + _LATE_S:
            broken.append(f"{time.monotonic() - started:.1f} s: {text[:300]}")
        if sorted(file.path.parent.iterdir()) != beside:
            broken.append(f"a file beside the warehouse: {text[:300]}")
    warm.end()
    return endings, broken


def _kind(message: str) -> str:
    """Return what a message is about: the class of DuckDB's error, or how the child ended."""
    if message.startswith("the query ended the process"):
        return f"child ended: {message.partition('(')[2].partition(':')[0]}"
    return " ".join(message.split()[:5]) if message.startswith("the query failed") else " ".join(message.split()[:4])


_Function = tuple[str, list[str]]


def _functions() -> list[_Function]:
    """Return each function that is allowed, by its signatures, and some of the others."""
    with duckdb.connect() as connection:
        known = connection.execute("SELECT function_name, parameter_types FROM duckdb_functions() ORDER BY ALL")
        functions = [(name, types or []) for name, types in known.fetchall()]
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


if __name__ == "__main__":
    sys.exit(main())
