"""`etfarm trace`: what it prints of ETDumps that are not repeated measurements of one method."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.fixtures.command import Command
from tests.fixtures.etdump_builder import METHOD, Profile, Run, build_etdump
from tests.fixtures.warehouse import CONVOLUTION, BundleMaker

Inspect = Callable[[Sequence[Run]], list[str]]


def execution(start: int, name: str, took: int) -> list[Profile]:
    """One execution whose only operator lasts half as long."""
    return [
        Profile(name, start, start + took // 2, instruction=0),
        Profile("OPERATOR_CALL", start, start + took // 2, instruction=0),
        Profile(METHOD, start, start + took, chain=-1, instruction=0),
    ]


@pytest.fixture
def inspect(tmp_path: Path, command: Command) -> Inspect:
    """Print what an ETDump of these runs contains; returns the lines."""

    def run(runs: Sequence[Run]) -> list[str]:
        path = tmp_path / "model.etdump"
        path.write_bytes(build_etdump(runs))
        return command("trace", path).out.removeprefix(f"{path}: ").splitlines()

    return run


def test_executions_of_several_methods_have_no_common_figure(inspect: Inspect) -> None:
    runs = [Run(execution(start, name, 100)) for start, name in ((0, "native_call_a"), (200, "native_call_b"))]
    assert inspect(runs) == [
        "2 executions, 6 events",
        "its executions belong to different methods: instruction 0 ran native_call_a in execution 0 and not in "
        "execution 1; measure one method per process",
    ]


@pytest.mark.parametrize("warmup", [1, 3])
def test_the_time_of_an_etdump_in_a_bundle_is_that_of_its_session(
    tmp_path: Path, command: Command, warmup: int
) -> None:
    # given a session of a cold run and ten others, of which the first ones are slow
    maker = BundleMaker(tmp_path)
    runs = [(us * 1000, {CONVOLUTION: us * 700}) for us in (900, 500, 300, 104, 103, 102, 101, 100, 99, 98)]
    bundle = maker.session(runs, warmup_executions=warmup)
    maker.load()
    ((time_ms,),) = maker.ask("SELECT time_ms FROM session_latency")
    out = command("trace", bundle / "model.etdump").out
    # then both leave out its warm-up runs
    kind = "the others" if warmup == 1 else "the 8 after 3 warm-up runs"
    assert f"{kind}: {time_ms:.3f} ms, interquartile mean" in out
    # and of an ETDump elsewhere only the first run is known to be cold
    shutil.copy(bundle / "model.etdump", tmp_path / "loose.etdump")
    assert "the others: " in command("trace", tmp_path / "loose.etdump").out


def test_an_aborted_execution_is_reported_and_does_not_count(inspect: Inspect) -> None:
    # given an execution that was aborted between two complete ones
    name = "native_call_a"
    events = [*execution(0, name, 90_000_000), *execution(10**8, name, 50_000_000)[:2]]
    runs = [Run([*events, *execution(2 * 10**8, name, 20_000_000)])]
    # then only the complete ones have figures
    lines = inspect(runs)
    assert lines[:4] == [
        "2 executions, 8 events",
        "2 of its events belong to an execution that did not end; run the model again",
        "first execution 90.000 ms (cold)",
        "the others: 20.000 ms, interquartile mean (median 20.000, min 20.000, max 20.000)",
    ]
    assert sorted(line.split() for line in lines[6:8]) == [[METHOD, "1", "10", "50"], [name, "1", "10", "50"]]


def test_executions_of_0_ns_have_dashes_instead_of_shares(inspect: Inspect) -> None:
    lines = inspect([Run(execution(start, "native_call_a", 0)) for start in (0, 10)])
    assert lines[2:4] == [
        "the others: 0.000 ms, interquartile mean (median 0.000, min 0.000, max 0.000)",
        "every measured execution lasts 0 ns: the clock of the runner does not run or is too coarse; measure with "
        "another runner",
    ]
    assert {line.split()[-1] for line in lines[6:9]} == {"-"}
    assert "nan" not in "".join(lines)


def test_a_delegate_whose_events_are_no_times_is_one_part_with_the_reason(inspect: Inspect) -> None:
    # given cycles of QNN where an ETDump has nanoseconds
    events = [
        Profile(text="conv:OpId_21 (cycles)", end=13_000_000, instruction=0),
        Profile("DELEGATE_CALL", 1_000_000, 9_000_000, instruction=0),
        Profile(METHOD, 1_000_000, 11_000_000, chain=-1, instruction=0),
    ]
    lines = inspect([Run(events)])
    assert (
        "QNN delegate: shown as the total of its calls; QNN reports cycles or microseconds, not the nanoseconds of an "
        "ETDump" in lines
    )
    assert any(line.split() == ["QNN", "delegate", "1", "8", "80"] for line in lines)
