"""The list of functions that a query may name."""

import fnmatch

import duckdb
import pytest

from sql.cage.statements import check_text, function_lists, is_allowed
from sql.errors import WarehouseError
from sql.question import questions


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


def test_every_function_of_this_duckdb_is_either_allowed_or_refused(connection: duckdb.DuckDBPyConnection) -> None:
    names = {name.lower() for (name,) in connection.execute("SELECT function_name FROM duckdb_functions()").fetchall()}
    allowed, patterns = function_lists()
    refused = {name for name in names for pattern in patterns if fnmatch.fnmatchcase(name, pattern)}
    # A function that a new version brings has to be read about, and put on one of the lists in functions.txt.
    assert names - allowed - refused == set()
    assert allowed & refused == set()


def test_questions_of_the_farm_name_allowed_functions_only(connection: duckdb.DuckDBPyConnection) -> None:
    assert questions()
    for question in questions().values():
        check_text(connection, question.text)  # raises for any other


@pytest.mark.parametrize(
    "text",
    [
        "SELECT {}", "SELECT 1 ORDER BY {}", "SELECT sum(1) FILTER ({} IS NULL)",
        "SELECT list_transform([1], lambda x: {})", "WITH a AS (SELECT {}) FROM a", "SELECT (SELECT {})",
        "SELECT 1 UNION ALL SELECT {}", "SELECT row_number() OVER (PARTITION BY {})",
        "SELECT 1 GROUP BY {} HAVING {} IS NULL", "SELECT 1 QUALIFY {} IS NULL", "SELECT 1 LIMIT (SELECT {})",
        "VALUES ({})", "SELECT * REPLACE ({} AS a) FROM (SELECT 1 AS a)",
        "FROM (SELECT 1 AS a) JOIN (SELECT 2 AS b) ON {} IS NULL", "FROM unnest([{}])", "EXPLAIN SELECT {}",
        "EXPLAIN ANALYZE SELECT {}", "EXPLAIN (FORMAT json) SELECT {}", "DESCRIBE SELECT {}", "SUMMARIZE SELECT {}",
        "CREATE TEMP TABLE a AS SELECT {}", "CREATE OR REPLACE TEMPORARY TABLE a AS (SELECT {})",
        "CREATE TEMP TABLE IF NOT EXISTS a AS SELECT {}", "PIVOT (SELECT 1 AS a) ON a USING count({})",
        "PIVOT (SELECT {} AS a) ON a USING count(*)", "PIVOT (SELECT 1 AS a) ON a IN (1) USING count({})",
        "UNPIVOT (SELECT {} AS a) ON a", "SELECT 1; SELECT {}",
        "PIVOT (SELECT 1 AS a) ON a USING count(*); SELECT {}",
    ],
)  # fmt: skip
def test_a_function_is_found_wherever_a_query_names_it(connection: duckdb.DuckDBPyConnection, text: str) -> None:
    check_text(connection, text.replace("{}", "lower('x')"))
    for refused in ("getvariable('x')", "main.GetVariable('x')", "system.main.\"getvariable\"('x')"):
        with pytest.raises(WarehouseError, match="the function getvariable is not on the list"):
            check_text(connection, text.replace("{}", refused))


@pytest.mark.parametrize(
    "text",
    [
        "FROM (PIVOT (SELECT 1 AS a) ON a USING count(*))",
        "SELECT 1; PIVOT (SELECT 1 AS a) ON a USING count(*)",
        "CREATE TEMP TABLE b AS PIVOT (SELECT 1 AS a) ON a USING count(*)",
    ],
)
def test_a_pivot_whose_values_are_unknown_is_answered_alone_or_refused_with_advice(
    connection: duckdb.DuckDBPyConnection, text: str
) -> None:
    with pytest.raises(WarehouseError, match=r"write the values of PIVOT"):
        check_text(connection, text)
    check_text(connection, "PIVOT (SELECT 1 AS a, 2 AS b) ON a, (b) USING count(*) GROUP BY a ORDER BY a LIMIT 3;")


def test_macros_of_the_farm_are_allowed_and_names_are_found_in_any_case() -> None:
    assert all(map(is_allowed, ("_changes", "LOWER", "formatReadableSize", "FORMATREADABLESIZE", "+")))
    assert not any(map(is_allowed, ("*anything*", "icu_collate_de", "Read_CSV", "")))


def test_a_query_of_800_levels_is_checked_and_a_deeper_one_refused(connection: duckdb.DuckDBPyConnection) -> None:
    check_text(connection, f"SELECT {'[' * 398}{']' * 398}")  # two levels a list, and four around it
    for depth in (399, 900):
        with pytest.raises(WarehouseError, match="nested too deeply"):
            check_text(connection, f"SELECT {'[' * depth}{']' * depth}")
