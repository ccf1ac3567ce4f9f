"""A session and a cell have one time, and all parts add up to it, whatever the runs did."""

import tempfile
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sql.schema import macros
from tasks.bundle.robust_statistics import interquartile_indices, interquartile_mean
from tests.fixtures.warehouse import CONVOLUTION, LINEAR, MEAN, BundleMaker, Execution

PARTS = {
    "operator_time": "SELECT model, sum(time_ms), sum(share) FROM operator_time",
    "category_share": "SELECT model, sum(time_ms), sum(share) FROM category_share",
    "_time_part": "SELECT model, sum(time_ms), sum(share) FROM _time_part JOIN cell USING (cell_id)",
    "portable_weight": "SELECT model, sum(execute_ms), count(*) FROM portable_weight",
}
TIMES = {
    "the cell": "SELECT model, sum(time_ms) FROM cell_overview",
    "its series": "SELECT model, sum(time_ms) FROM series_latency",
    "its verdict": "SELECT model, sum(time_ms) FROM verdict",
    "its sessions": "SELECT model, avg(time_ms) FROM session_latency WHERE is_typical",
}
OPERATORS = st.fixed_dictionaries({name: st.integers(0, 10_000) for name in (CONVOLUTION, LINEAR, MEAN)})
RUNS = st.builds(lambda rest, operators: (1 + rest + sum(operators.values()), operators), st.integers(0, 99), OPERATORS)


CELL = st.lists(st.lists(RUNS, min_size=1, max_size=9), min_size=1, max_size=6)


@settings(max_examples=2)
@given(st.lists(CELL, min_size=8, max_size=8))
def test_all_parts_add_up_to_one_time_of_the_cell_everywhere(cells: list[list[list[Execution]]]) -> None:
    times_ms = {}
    with tempfile.TemporaryDirectory() as folder:
        # given sessions of cells with any times, and equally many executions in all sessions of a cell
        maker = BundleMaker(Path(folder) / "farm")
        for number, cell in enumerate(cells):
            sessions = [runs[: min(map(len, cell))] for runs in cell]
            for index, runs in enumerate(sessions):
                maker.session(runs, repetition=index, model__name=f"{number}")
            # then its time is the mean of the middle half of its sessions, each the mean of the middle half of its runs
            middles = [interquartile_mean([ns for ns, _ in runs]) for runs in sessions]
            times_ms[f"{number}"] = pytest.approx(interquartile_mean(middles) / 1e6)
        maker.load()
        for name, text in TIMES.items():
            assert dict(maker.ask(f"{text} GROUP BY model")) == times_ms, name
        # and parts add up to it
        for name, text in PARTS.items():
            rows = maker.ask(f"{text} GROUP BY model")
            assert {model: time_ms for model, time_ms, _ in rows} == times_ms, name
            assert [share for *_, share in rows] == pytest.approx([1] * 8), name
        assert maker.ask("SELECT session_id FROM session_latency WHERE unattributed_share NOT BETWEEN 0 AND 1") == []


MIDDLE = ("_in_middle_half", "_interquartile_mean")


def test_the_middle_half_is_the_same_in_python_and_in_sql() -> None:
    text = """
    SELECT list(slot ORDER BY ns, slot) FROM (
        SELECT * FROM (SELECT unnest($values) AS ns, unnest(range(len($values))) AS slot)
        QUALIFY _in_middle_half(row_number() OVER (ORDER BY ns, slot), count(*) OVER ())
    )
    """
    with duckdb.connect() as connection:
        connection.execute("".join(file.text for file in macros() if file.name in MIDDLE))

        @given(st.lists(st.integers(0, 50), min_size=1, max_size=60))
        def each(values: list[int]) -> None:
            [(of_sql,)] = connection.execute(text, {"values": values}).fetchall()
            assert of_sql == interquartile_indices(values).tolist()
            [(mean,)] = connection.execute("SELECT _interquartile_mean($values)", {"values": values}).fetchall()
            assert mean == pytest.approx(interquartile_mean(values))

        each()


@pytest.mark.parametrize(
    ("total", "kept"),
    [(1, [0]), (2, [0]), (3, [1]), (4, [1, 2]), (6, [1, 2, 3, 4]), (7, [2, 3, 4]), (10, [*range(2, 8)])],
)
def test_a_quarter_is_left_out_at_each_end(total: int, kept: list[int]) -> None:
    assert interquartile_indices(np.arange(total)).tolist() == kept
    assert interquartile_indices(np.arange(total)[::-1]).tolist() == [total - 1 - place for place in kept]
