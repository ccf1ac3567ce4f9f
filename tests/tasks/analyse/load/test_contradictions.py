"""Measurements that contradict themselves: refused in one sentence, or counted once, and never as another number."""

import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from tasks.rows import rows
from tests.fixtures.etdump_builder import METHOD, Profile, Run, build_etdump
from tests.fixtures.warehouse import MEAN, BundleMaker, etdump_of

ADD = "native_call_add.out"


def loading(start: int) -> Run:
    """What the runtime records when it loads a method; it does not record which one."""
    return Run([Profile("Method::init", start, start + 9, chain=-1, instruction=0)], name="Default")


def execution(start: int, *names: str, took: int = 100) -> Run:
    """One execution: a portable operator of 10 ns at each instruction."""
    events = []
    for instruction, name in enumerate(names):
        at = start + 10 * instruction
        events.append(Profile(name, at, at + 10, instruction=instruction))
        events.append(Profile("OPERATOR_CALL", at, at + 10, instruction=instruction))
    return Run([*events, Profile(METHOD, start, start + took, chain=-1, instruction=0)])


def bundle(maker: BundleMaker, runs: Sequence[Run], executions: int) -> Path:
    return maker.session([100] * (executions - 1), files={"model.etdump": build_etdump(runs)})


def refusal(maker: BundleMaker, *paths: Path) -> str:
    """Load and return the only refusal; nothing else was loaded."""
    result = maker.load(*paths)
    assert (result.loaded, result.already) == (0, 0)
    [(_, sentence)] = result.refused
    assert "\n" not in sentence
    assert maker.ask("SELECT count(*) FROM session") == [(0,)]
    return sentence


def test_an_etdump_of_two_methods_is_refused_not_pooled(maker: BundleMaker, tmp_path: Path) -> None:
    # given a process that loads and runs two methods by turns, of which one is ten times as fast
    runs = [loading(0), execution(1000, MEAN, ADD), loading(2000)]
    runs += [execution(3000, ADD, took=1000), execution(5000, MEAN, ADD), execution(6000, ADD, took=1000)]
    folder = bundle(maker, runs, 4)
    # when its bundle or its ETDump alone is loaded, then it is refused
    for path in folder, folder / "model.etdump":
        assert refusal(maker, path) == (
            f"{folder / 'model.etdump'}: the process loaded 2 methods, and an ETDump does not record which one an "
            "execution ran; measure one method per process"
        )


def test_a_session_with_an_aborted_execution_is_refused(maker: BundleMaker) -> None:
    # given two complete executions, and the beginning of one before the second
    aborted, last = execution(2000, MEAN, ADD).events[:3], execution(3000, MEAN, ADD)
    folder = bundle(maker, [execution(1000, MEAN, ADD), Run([*aborted, *last.events])], 2)
    for path in folder, folder / "model.etdump":
        assert refusal(maker, path) == (
            f"{folder / 'model.etdump'}: 3 of its events belong to an execution that did not end; run the model again"
        )


def test_a_session_whose_measured_executions_all_last_0_ns_is_refused(maker: BundleMaker) -> None:
    folder = maker.session([(0, {}), (0, {})], files={"model.etdump": etdump_of([(90, {}), (0, {}), (0, {})])})
    assert refusal(maker) == (
        f"{folder / 'model.etdump'}: every measured execution lasts 0 ns: the clock of the runner does not run or is "
        "too coarse; measure with another runner"
    )
    loose = maker.bundles / "loose.etdump"
    loose.write_bytes(etdump_of([(90, {}), (0, {})]))
    assert "every measured execution lasts 0 ns" in refusal(maker, loose)


@pytest.mark.parametrize("last_ns", [10, 0])
def test_executions_of_0_ns_make_no_figure_infinite_or_undefined(
    maker: BundleMaker, monkeypatch: pytest.MonkeyPatch, last_ns: int
) -> None:
    # given sessions whose median is 0 or, loaded before such were refused, whose every execution lasts 0 ns
    monkeypatch.setattr(rows, "contradiction", lambda *_: None)
    for variant in "sme2_on", "sme2_off":
        for index in range(2):
            maker.session([(0, {MEAN: 0}), (0, {MEAN: 0}), (last_ns, {MEAN: 0})], variant=variant, index=index)
    assert maker.load().loaded == 4
    # then no number of any view is infinite or not a number
    for (view,) in maker.ask("SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY 1"):
        for row in maker.ask(f'SELECT * FROM "{view}"'):
            assert all(math.isfinite(value) for value in row if isinstance(value, float)), (view, row)
    assert maker.ask("SELECT DISTINCT median_ms FROM session_latency") == [(0.0,)]


def test_a_bundle_that_lost_its_session_is_refused_not_loaded_as_a_loose_etdump(maker: BundleMaker) -> None:
    # given two sessions of a cell, the second of which lost its session.json
    maker.session([100], index=0)
    lost = maker.session([900], index=1, files={"stdout.txt": b""})
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
