"""Measurements that contradict themselves: refused in one sentence, or counted once, and never as another number."""

import math
from itertools import product

import pytest

from tasks.rows import rows
from tests.fixtures.etdump_builder import LOADING, METHOD, Profile, Run, build_etdump
from tests.fixtures.warehouse import MEAN, BundleMaker

ADD = "native_call_add.out"


def execution(start: int, *names: str, took: int = 100) -> Run:
    """One execution: a portable operator of 10 ns at each instruction."""
    events = []
    for instruction, name in enumerate(names):
        at = start + 10 * instruction
        events.append(Profile(name, at, at + 10, instruction=instruction))
        events.append(Profile("OPERATOR_CALL", at, at + 10, instruction=instruction))
    return Run([*events, Profile(METHOD, start, start + took, chain=-1, instruction=0)])


FAST, SLOW = execution(1000, MEAN, ADD), execution(3000, ADD, took=1000)
ABORTED = Run([*execution(2000, MEAN, ADD).events[:3], *execution(3000, MEAN, ADD).events])


@pytest.mark.parametrize(
    ("runs", "executions", "sentence"),
    [
        pytest.param(
            [LOADING, FAST, LOADING, SLOW, FAST, SLOW],
            4,
            "the process loaded 2 methods, and an ETDump does not record which one an execution ran; "
            "measure one method per process",
            id="two methods by turns, of which one is ten times as fast",
        ),
        pytest.param(
            [FAST, ABORTED],
            2,
            "3 of its events belong to an execution that did not end; run the model again",
            id="the beginning of an execution before a complete one",
        ),
        pytest.param(
            [execution(0, took=90), execution(100, took=0), execution(200, took=0)],
            3,
            "every measured execution lasts 0 ns: the clock of the runner does not run or is too coarse; "
            "measure with another runner",
            id="a clock that stands still",
        ),
    ],
)
def test_a_measurement_that_contradicts_itself_is_refused_in_its_bundle_and_alone(
    maker: BundleMaker, runs: list[Run], executions: int, sentence: str
) -> None:
    folder = maker.session([100] * (executions - 1), files={"model.etdump": build_etdump(runs)})
    for path in folder, folder / "model.etdump":
        result = maker.load(path)
        assert (result.loaded, result.already) == (0, 0)
        assert [each for _, each in result.refused] == [f"{folder / 'model.etdump'}: {sentence}"]
    assert maker.ask("SELECT count(*) FROM session") == [(0,)]


@pytest.mark.thorough
def test_executions_of_0_ns_make_no_figure_infinite_or_undefined(
    maker: BundleMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given sessions whose median is 0 or, loaded before such were refused, whose every execution lasts 0 ns
    monkeypatch.setattr(rows, "contradiction", lambda *_: None)
    for last_ns, variant, index in product((10, 0), ("sme2_on", "sme2_off"), range(2)):
        runs = [(0, {MEAN: 0}), (0, {MEAN: 0}), (last_ns, {MEAN: 0})]
        maker.session(runs, variant=variant, repetition=index, model__name=f"last-{last_ns}")
    assert maker.load().loaded == 8
    # then no number of any view is infinite or not a number
    for (view,) in maker.ask("SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY 1"):
        for row in maker.ask(f'SELECT * FROM "{view}"'):
            assert all(math.isfinite(value) for value in row if isinstance(value, float)), (view, row)
    assert maker.ask("SELECT DISTINCT median_ms FROM session_latency") == [(0.0,)]


def test_a_bundle_that_lost_its_session_is_refused_not_loaded_as_a_loose_etdump(maker: BundleMaker) -> None:
    # given two sessions of a cell, the second of which lost its session.json
    maker.session([100], repetition=0)
    lost = maker.session([900], repetition=1, files={"stdout.txt": b""})
    (lost / "session.json").unlink()
    # when all are loaded, twice
    for loaded, already in (1, 0), (0, 1):
        result = maker.load()
        assert (result.loaded, result.already) == (loaded, already)
        assert result.refused == [
            (
                lost,
                f"{lost}: damaged bundle: session.json is missing; restore it from a backup, or name its .etdump "
                "file to load it without its session",
            )
        ]
    # then only the complete one counts, and no loose session appeared
    assert maker.ask("SELECT device, median_ms FROM session_latency") == [("host", 1e-4)]
    # and the ETDump that is named is loaded as what is left of it: a loose one
    assert maker.load(lost / "model.etdump").loaded == 1
    assert maker.ask("SELECT DISTINCT device FROM session_latency ORDER BY 1") == [("host",), ("unknown",)]
