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
    "operator_time": "SELECT sum(time_ms), sum(share) FROM operator_time",
    "category_share": "SELECT sum(time_ms), sum(share) FROM category_share",
    "portable_weight": "SELECT execute_ms, 1.0 FROM portable_weight",
}
TIMES = {
    "the cell": "SELECT time_ms FROM cell_overview",
    "its series": "SELECT time_ms FROM series_latency",
    "its verdict": "SELECT time_ms FROM verdict",
    "its sessions": "SELECT avg(time_ms) FROM session_latency WHERE is_typical",
}
OPERATORS = st.fixed_dictionaries({name: st.integers(0, 10_000) for name in (CONVOLUTION, LINEAR, MEAN)})
RUNS = st.builds(lambda rest, operators: (1 + rest + sum(operators.values()), operators), st.integers(0, 99), OPERATORS)


def same_number_of_runs(sessions: list[list[Execution]]) -> list[list[Execution]]:
    """Sessions of one cell have equally many executions."""
    return [runs[: min(map(len, sessions))] for runs in sessions]


@settings(max_examples=10)
@given(st.lists(st.lists(RUNS, min_size=1, max_size=9), min_size=1, max_size=6).map(same_number_of_runs))
def test_all_parts_add_up_to_one_time_of_the_cell_everywhere(sessions: list[list[Execution]]) -> None:
    # given sessions of one cell with any times
    with tempfile.TemporaryDirectory() as folder:
        maker = BundleMaker(Path(folder) / "farm")
        for index, runs in enumerate(sessions):
            maker.session(runs, repetition=index)
        maker.load()
        # then its time is the mean of the middle half of its sessions, each the mean of the middle half of its runs
        time_ms = interquartile_mean([interquartile_mean([ns for ns, _ in runs]) for runs in sessions]) / 1e6
        for name, text in TIMES.items():
            assert maker.ask(text) == [(pytest.approx(time_ms),)], name
        # and parts add up to it
        for name, text in PARTS.items():
            assert maker.ask(text) == [(pytest.approx(time_ms), pytest.approx(1))], name
        assert maker.ask("SELECT session_id FROM session_latency WHERE unattributed_share NOT BETWEEN 0 AND 1") == []


@pytest.mark.parametrize("runs", [2, 3, 5, 10])
def test_one_run_of_fifty_times_the_time_moves_no_share_by_a_point(maker: BundleMaker, runs: int) -> None:
    # given two equal models, one of which has a session with a run that waited for its linear layer
    usual: Execution = (1000, {CONVOLUTION: 600, LINEAR: 300})
    glitch: Execution = (50_000, {CONVOLUTION: 600, LINEAR: 49_300})
    maker.session([usual] * runs, model__name="calm")
    maker.session([*[usual] * (runs - 1), glitch], model__name="glitch")
    maker.load()
    # then their shares are the same
    shares = dict(
        maker.ask("SELECT model, map_from_entries(list((operator, share))) FROM operator_time GROUP BY model")
    )
    assert shares["glitch"] == pytest.approx(shares["calm"])


@pytest.mark.parametrize("sessions", [2, 3, 5, 10])
def test_one_session_of_fifty_times_the_time_moves_no_share_by_a_point(maker: BundleMaker, sessions: int) -> None:
    usual: Execution = (1000, {CONVOLUTION: 600, LINEAR: 300})
    for index in range(sessions - 1):
        maker.session([usual] * 3, repetition=index)
    maker.session([(50_000, {CONVOLUTION: 600, LINEAR: 49_300})] * 3, repetition=sessions)
    maker.load()
    assert maker.ask("SELECT operator, share FROM operator_time WHERE category <> 'Unattributed' ORDER BY 1") == [
        ("Convolution", pytest.approx(0.6)),
        ("Fully Connected", pytest.approx(0.3)),
    ]


@given(st.lists(st.integers(0, 50), min_size=1, max_size=60))
def test_the_middle_half_is_the_same_in_python_and_in_sql(values: list[int]) -> None:
    text = """
    SELECT list(slot ORDER BY ns, slot) FROM (
        SELECT * FROM (SELECT unnest($values) AS ns, unnest(range(len($values))) AS slot)
        QUALIFY _in_middle_half(row_number() OVER (ORDER BY ns, slot), count(*) OVER ())
    )
    """
    with duckdb.connect() as connection:
        connection.execute(*[file.text for file in macros() if file.name == "_in_middle_half"])
        [(of_sql,)] = connection.execute(text, {"values": values}).fetchall()
    assert of_sql == interquartile_indices(values).tolist()


@pytest.mark.parametrize(
    ("total", "kept"),
    [(1, [0]), (2, [0]), (3, [1]), (4, [1, 2]), (6, [1, 2, 3, 4]), (7, [2, 3, 4]), (10, [*range(2, 8)])],
)
def test_a_quarter_is_left_out_at_each_end(total: int, kept: list[int]) -> None:
    assert interquartile_indices(np.arange(total)).tolist() == kept
    assert interquartile_indices(np.arange(total)[::-1]).tolist() == [total - 1 - place for place in kept]
