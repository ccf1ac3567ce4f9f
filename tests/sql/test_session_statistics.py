"""Flags of a session in session_latency: sessions, a query, the expected rows."""

import numpy as np

from sql.warehouse import writing
from tasks.judge.refresh import judge_series
from tasks.load.commit import add_session_statistics
from tasks.maintain.check import check_aggregates
from tests.fixtures.warehouse import BundleMaker

FLAGS = "settled_after_runs, round(drift_share, 3), round(quartile_ratio, 3), has_drift, outlier_runs, is_bimodal"
ALL_FLAGS = f"SELECT session_id, {FLAGS} FROM session_latency ORDER BY session_id"
STEADY = [1000, 1003, 998, 1001, 1005, 997, 1002, 999, 1004, 996] * 5


SHAPES: dict[str, tuple[list[int], tuple[object, ...]]] = {
    "slow start": (
        [run + (100 if index < 4 else 0) for index, run in enumerate(STEADY)],
        (4, -0.004, 0.997, False, 4, False),
    ),
    "drift": ([run + 2 * index for index, run in enumerate(STEADY)], (0, 0.095, 1.073, True, 0, False)),
    "two modes": ([run + 300 * (index % 2) for index, run in enumerate(STEADY)], (0, 0.0, 1.0, False, 0, True)),
    "too few": ([100] * 9, (None,) * 6),
}


def write_sessions(maker: BundleMaker) -> None:
    for model, (runs, _) in SHAPES.items():
        maker.session(runs, model__name=model)
    maker.session(STEADY, mode="profile", model__name="profile")
    maker.session(status="failed", reason_code="crash", model__name="failed")
    # 100 sessions of 20 steady runs that scatter by 10 %
    generator = np.random.default_rng(3)
    for index in range(100):
        runs = [round(run) for run in generator.normal(100_000, 10_000, 20)]
        maker.session(runs, repetition=index, model__name="noisy")


def test_a_timing_session_shows_what_its_runs_look_like(farm: BundleMaker) -> None:
    rows = farm.ask(f"SELECT model, {FLAGS} FROM session_latency WHERE model <> 'noisy'")
    assert {model: tuple(flags) for model, *flags in rows} == {model: flags for model, (_, flags) in SHAPES.items()}
    assert farm.ask("SELECT count(*) FROM session_statistic") == [(len(SHAPES) + 100,)]


def test_noisy_runs_that_are_steady_have_no_drift(farm: BundleMaker) -> None:
    # then many have quarters that differ by 5 %, and hardly one is called drift
    counts = "count(*) FILTER (quartile_ratio > 1.05), count(*) FILTER (has_drift)"
    [(slow_ends, drifting)] = farm.ask(f"SELECT {counts} FROM session_latency WHERE model = 'noisy'")
    assert (slow_ends > 15, drifting <= 3) == (True, True)


def test_sessions_of_an_older_farm_are_looked_at_in_the_next_load(maker: BundleMaker) -> None:
    # given two sessions whose statistics were never computed, one of them without its events
    for index in range(2):
        maker.session([run + index for run in STEADY], repetition=index)
    maker.load()
    expected = maker.ask(ALL_FLAGS)
    with writing(maker.warehouse) as connection:
        connection.execute("DELETE FROM session_statistic")
        connection.execute("DELETE FROM event WHERE run_id IN (SELECT run_id FROM run WHERE session_key = 1)")
        connection.execute("INSERT INTO thinned_session VALUES (1, now()::TIMESTAMP)")
    assert {row[1:] for row in maker.ask(ALL_FLAGS)} == {(None,) * 6}
    # when one more is loaded
    third = maker.session(STEADY, repetition=2)
    maker.load()
    # then all have them
    rows = maker.ask(ALL_FLAGS)
    assert rows[:2] == expected
    assert (rows[2][0], rows[2][1:]) == (third.name, expected[0][1:])
    # and those that are missing again are computed as they were, and a check finds changed ones
    with writing(maker.warehouse) as connection:
        connection.execute("DELETE FROM session_statistic WHERE session_key = 1")
        connection.execute("DELETE FROM cell_interval")
        add_session_statistics(connection)
        judge_series(connection)
        assert list(check_aggregates(connection)) == []
    with writing(maker.warehouse) as connection:
        connection.execute("UPDATE session_statistic SET outlier_runs = 5 WHERE session_key = 2")
        (finding,) = check_aggregates(connection)
    assert "session_statistic is not what its sessions give" in finding
