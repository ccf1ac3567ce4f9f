"""Check a text of SQL, by DuckDB's parser: it may only read, and name only allowed functions.

functions.txt lists every function of DuckDB as allowed or refused; what is on neither list is refused.
"""

import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

from sql.errors import WarehouseError
from sql.schema import macros

_LIST = Path(__file__).with_name("functions.txt")
_SERIALIZE = "SELECT json_serialize_sql($text::VARCHAR)"
_ONLY_READS = (
    "queries only read the warehouse; use SELECT, DESCRIBE, SHOW, EXPLAIN or CREATE TEMP TABLE ... AS SELECT, and "
    "`etfarm sql --output FILE` to write rows to a file"
)
_PIVOT_ADVICE = "write the values of PIVOT ... ON in the query, as in ON name IN ('a', 'b')"
_ENDS_OF_ON = (",", "using", "group", "order", "limit", ";", "")
_WORD = re.compile(rb"\w+")
_MAX_DEPTH = 800  # of lists and objects in the JSON of a statement; a list in a list has two


def check_text(connection: duckdb.DuckDBPyConnection, text: str) -> None:
    """Raise WarehouseError unless each statement of a text only reads, with allowed functions.

    Raises duckdb.Error if DuckDB cannot parse the text.
    """
    statements = connection.extract_statements(text)
    if not statements:
        raise WarehouseError("the query is empty; write one such as SELECT * FROM run_latency")
    # PIVOT without IN is two statements without a text; from DuckDB 2 on, one of several.
    if any(not each.query.strip() or _type_of(each) == duckdb.StatementType.MULTI for each in statements):
        _check_query(connection, _with_in_clauses(text))
        return
    for statement in statements:
        _check_query(connection, _select_part(statement))


@functools.cache
def is_allowed(function: str) -> bool:
    """Return whether a query may name a function, in any case: an allowed one of DuckDB, or a macro of etfarm."""
    return function.lower() in function_lists()[0]


@functools.cache
def function_lists() -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of allowed functions, etfarm's macros included, and the patterns of refused ones.

    All are in lower case, since DuckDB finds a function in any case.
    """
    allowed, refused = {macro.name for macro in macros()}, set[str]()
    names = allowed
    for line in _LIST.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            names = allowed if line.startswith("[allowed") else refused
        elif not line.startswith("# "):
            names.update(line.lower().split())
    return frozenset(allowed), frozenset(refused)


def _check_query(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    """Raise WarehouseError unless a query is one that DuckDB serializes, a SELECT, and names only allowed functions."""
    answer = connection.execute(_SERIALIZE, {"text": query}).fetchall()[0][0]
    try:
        parsed = json.loads(answer)
    except RecursionError:
        raise _too_deep() from None
    if parsed["error"]:
        if parsed["error_type"] == "not implemented":
            raise WarehouseError(f"the query was refused: {_ONLY_READS}")
        raise WarehouseError(f"the query failed: {parsed['error_message']}")
    if not parsed["statements"]:
        raise WarehouseError(f"the query was refused: {_PIVOT_ADVICE}")
    for name in _function_names(parsed["statements"]):
        if not is_allowed(name):
            raise WarehouseError(
                f"the query was refused: the function {name} is not on the list of allowed ones, which compute from "
                "the warehouse alone"
            )


def _function_names(parsed: Any) -> Iterator[str]:
    """Yield the name of each function in a parsed statement, those of operators and windows included.

    Raises WarehouseError if it is nested too deeply: the planner's time grows with the third power of the depth, and
    only some versions of Python refuse the JSON of such a statement.
    """
    waiting = [(parsed, 0)]
    while waiting:
        part, depth = waiting.pop()
        if depth > _MAX_DEPTH:
            raise _too_deep()
        if isinstance(part, dict):
            if "function_name" in part:
                yield part["function_name"]
            part = part.values()
        elif not isinstance(part, list):
            continue
        waiting.extend((each, depth + 1) for each in part)


def _too_deep() -> WarehouseError:
    return WarehouseError("the query failed: it is nested too deeply; write it in steps, with WITH")


def _type_of(statement: duckdb.Statement) -> duckdb.StatementType | None:
    """Return the type of a statement; None for one that DuckDB's Python package does not know (UPDATE EXTENSIONS)."""
    try:
        return statement.type
    except ValueError:
        return None


def _select_part(statement: duckdb.Statement) -> str:
    """Return the SELECT in EXPLAIN and CREATE TEMP TABLE ... AS, and any other statement as it is."""
    text, words = statement.query, list(_tokens(statement.query))
    start, depth = 0, 0  # byte at which the SELECT begins
    if _type_of(statement) == duckdb.StatementType.EXPLAIN:
        for at, word in words[1:]:
            depth += (word == "(") - (word == ")")
            if depth == 0 and word not in (")", "analyze"):
                start = at
                break
    elif _type_of(statement) == duckdb.StatementType.CREATE:
        first = [word for _, word in words[1:5]]
        if "table" in first and {"temp", "temporary"} & set(first):
            start = next((at + len("as") for at, word in words if word == "as"), 0)
    return text.encode()[start:].decode()


def _with_in_clauses(text: str) -> str:
    """Return a PIVOT without IN, with IN (NULL) behind each column that it pivots on: its functions stay the same.

    Raises WarehouseError for any other text.
    """
    words = list(_tokens(text))
    depth, is_on, ends = 0, False, list[int]()
    for at, word in [*words, (len(text.encode()), "")]:
        depth += (word == "(") - (word == ")")
        if depth == 0 and is_on and word in _ENDS_OF_ON:
            ends.append(at)
            is_on = word == ","
        elif depth == 0 and word == "on":
            is_on = True
    if not ends or words[0][1] != "pivot":
        raise WarehouseError(f"the query was refused: {_PIVOT_ADVICE}")
    written = text.encode()
    for at in reversed(ends):
        written = written[:at] + b"\n IN (NULL) " + written[at:]
    return written.decode()


def _tokens(text: str) -> Iterator[tuple[int, str]]:
    """Yield (byte offset, word) for each token: a keyword or operator in lower case, "?" for any other."""
    written = text.encode()
    for at, kind in duckdb.tokenize(text):
        if kind == duckdb.token_type.operator:
            yield at, chr(written[at])
        elif kind == duckdb.token_type.keyword and (word := _WORD.match(written, at)):
            yield at, word[0].decode().lower()
        else:
            yield at, "?"
