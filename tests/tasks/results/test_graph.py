"""How exported graphs differ: counts by operator and place, and the modules where they do."""

from collections.abc import Iterator

import duckdb
import pytest

from sql.schema import query_text
from tasks.results.measurements.graph import GraphChange, graph_in_words


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((1, 0, 0, 1), "1 left the delegate"),
        ((0, 1, 1, 0), "1 moved into the delegate"),
        ((0, 0, 2, 5), "3 more, portable"),
        ((4, 0, 0, 0), "4 fewer, delegated"),
        ((3, 0, 0, 2), "2 left the delegate and 1 fewer, delegated"),
        ((0, 1, 3, 0), "1 moved into the delegate and 2 fewer, portable"),
        ((1, 2, 0, 1), "1 more, delegated and 1 more, portable"),
    ],
)
def test_an_operator_moves_or_is_added_or_removed(counts: tuple[int, int, int, int], words: str) -> None:
    change = GraphChange("aten.mean.dim", *counts, modules=["head"])
    assert graph_in_words([change]) == [f"`aten.mean.dim`: {words} (in `head`)"]
    # and what moved and what was added make up the whole difference
    delegated, portable = change.added
    assert (delegated - change.moved, portable + change.moved) == (counts[1] - counts[0], counts[3] - counts[2])


def test_what_is_not_listed_is_counted() -> None:
    modules = [f"layer.{index}" for index in range(5)]
    lines = graph_in_words([GraphChange(f"aten.op{index}", 0, 1, 0, 0, modules) for index in range(7)])
    assert lines[0] == "`aten.op0`: 1 more, delegated (in `layer.0`, `layer.1`, `layer.2` and 2 other modules)"
    assert (len(lines), lines[-1]) == (6, "2 more operators differ")


@pytest.fixture
def exports() -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield two exports of one model: a mean leaves the delegate in `head`, and another in `body` stays there."""
    with duckdb.connect() as connection:
        connection.execute("""
            CREATE TABLE cell AS FROM (VALUES (1, 'a'), (2, 'b')) AS t(cell_id, cell);
            CREATE TABLE session_cell AS FROM (VALUES (11, 1), (12, 1), (13, 2)) AS t(session_key, cell_id);
            CREATE TABLE session AS FROM (VALUES (11, 1), (12, 1), (13, 2)) AS t(session_key, model_id);
            CREATE TABLE model_operator AS FROM (
                VALUES (1, 'delegated', 'mean', 2), (1, 'delegated', 'relu', 1),
                (2, 'delegated', 'mean', 1), (2, 'portable', 'mean', 1), (2, 'delegated', 'relu', 1)
            ) AS t(model_id, placement, operator, count);
            CREATE TABLE source_map AS FROM (VALUES (1, 1), (2, 2), (3, 2)) AS t(source_map_id, model_id);
            CREATE TABLE node_source AS FROM (
                VALUES (1, 'mean', 'body', 'XNNMean'), (1, 'mean', 'head', 'XNNMean'), (1, 'relu', '', 'XNNClamp'),
                (3, 'mean', 'body', 'XNNMean'), (3, 'mean', 'head', NULL), (3, 'relu', '', 'XNNClamp')
            ) AS t(source_map_id, source_operator, module_path, delegate_node);
        """)
        yield connection


def test_the_modules_with_other_counts_are_named_where_both_exports_state_them(
    exports: duckdb.DuckDBPyConnection,
) -> None:
    cells = {"cells_a": ["a", "a"], "cells_b": ["a", "b"]}
    change = (1, "mean", 2, 1, 0, 1)
    assert exports.execute(query_text("graph_difference"), cells).fetchall() == [(*change, ["head"])]
    exports.execute("DELETE FROM node_source WHERE source_map_id = 1")
    assert exports.execute(query_text("graph_difference"), cells).fetchall() == [(*change, [])]
    # and a file without a record of its operators differs in nothing that is known
    exports.execute("DELETE FROM model_operator WHERE model_id = 1")
    assert exports.execute(query_text("graph_difference"), cells).fetchall() == []
