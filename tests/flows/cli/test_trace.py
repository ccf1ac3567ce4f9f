"""`etfarm trace`: the runs of a session or ETDump, printed or as a trace; a sentence if there is nothing to trace."""

import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.command import Command, Etfarm
from tests.fixtures.etdump_builder import METHOD, Profile, Run, build_etdump
from tests.fixtures.warehouse import CONVOLUTION, LINEAR, MEAN, TRANSPOSE, BundleMaker, etdump_of

Lines = Callable[[Sequence[Run]], list[str]]


@pytest.fixture
def maker(tmp_path: Path) -> BundleMaker:
    return BundleMaker(tmp_path / "var")


@pytest.fixture
def trace(command: Command, tmp_path: Path) -> Etfarm:
    """Run `etfarm trace` with these words; return its exit code and what it printed."""

    def run(*words: object) -> tuple[int, str]:
        ended = command("trace", *words, "--data-dir", tmp_path / "var", "-o", tmp_path / "t.json")
        return ended.code, ended.out + ended.err

    return run


SOURCES = {
    "version": 1,
    "modules": [["", "net.Net"], ["blocks.2.conv1", "torch.nn.Conv2d"], ["head", None]],
    "sources": [
        [1, "aten.convolution.default", "model.py:56"],
        [2, "aten.mean.dim", None],
        [1, "aten.relu.default", "model.py:57"],
    ],
    "methods": {
        "forward": [
            {
                "chain": 0,
                "instruction": 0,
                "backend": "XnnpackBackend",
                "sources": [0, 2],
                "nodes": [
                    {"kind": "XNNStaticTranspose", "sources": []},
                    {"kind": "XNNConv2d", "sources": [0], "clamp": [2]},
                ],
            },
            {"chain": 0, "instruction": 3, "sources": [1]},
        ]
    },
}
OPERATORS = {TRANSPOSE: 100, CONVOLUTION: 300, MEAN: 50}


def sources_of(tmp_path: Path) -> dict[str, dict[str, str]]:
    """What the written trace states about the source of each operator that has a statement."""
    keys = ("module_path", "file_line", "source_operator", "fused_with", "certainty")
    events = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))["traceEvents"]
    sources = {
        event["name"]: {key: event["args"][key] for key in keys if key in event["args"]}
        for event in events
        if event["ph"] == "X"
    }
    return {name: source for name, source in sources.items() if source}


def durations_ns(tmp_path: Path) -> list[int]:
    events = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))["traceEvents"]
    return [round(event["dur"] * 1000) for event in events if event["name"] == "Method::execute"]


def test_the_measured_run_in_the_middle_by_duration_is_traced_by_its_id_or_its_path(
    trace: Etfarm, maker: BundleMaker, tmp_path: Path
) -> None:
    # given a session of a warm-up run and three measured ones
    folder = maker.session([(900, {CONVOLUTION: 300}), (500, {CONVOLUTION: 300}), (600, {CONVOLUTION: 300})])
    for session in (folder.name, folder, folder / "session.json"):
        # when it is traced
        code, printed = trace(session)
        # then that run is in the file, and the command names it
        assert code == 0
        assert "run 3 of 0 to 3, the middle one by duration" in printed
        assert durations_ns(tmp_path) == [600]
        content = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))
        assert content["otherData"]["session_id"] == folder.name


def test_a_run_can_be_chosen_and_so_can_all(trace: Etfarm, maker: BundleMaker, tmp_path: Path) -> None:
    folder = maker.session([500, 600])
    assert "run 0 of 0 to 2, a warm-up run" in trace(folder.name, "--run", "0")[1]
    assert durations_ns(tmp_path) == [4500]
    assert "run 2 of 0 to 2, measured" in trace(folder.name, "--run", "2")[1]
    assert durations_ns(tmp_path) == [600]
    assert "all 3 runs, 1 of them warm-up" in trace(folder.name, "--run", "all")[1]
    assert durations_ns(tmp_path) == [4500, 500, 600]


def test_an_etdump_of_any_origin_is_traced(trace: Etfarm, tmp_path: Path) -> None:
    (tmp_path / "some.etdump").write_bytes(etdump_of([(70, {}), (80, {})]))
    assert trace(tmp_path / "some.etdump")[0] == 0
    assert durations_ns(tmp_path) == [80]


def test_files_beside_a_loose_etdump_are_not_read(trace: Etfarm, maker: BundleMaker, tmp_path: Path) -> None:
    # given a copied ETDump with its session.json, which lists a sources.json that would be waited for
    run = (500, OPERATORS)
    folder = maker.session([run, run], files={"sources.json": json.dumps(SOURCES).encode()})
    (tmp_path / "copied").mkdir()
    for name in ("session.json", "model.etdump"):
        shutil.copy(folder / name, tmp_path / "copied")
    os.mkfifo(tmp_path / "copied" / "sources.json")
    # then it is traced without sources
    assert trace(tmp_path / "copied" / "model.etdump")[0] == 0
    assert sources_of(tmp_path) == {}


@pytest.mark.parametrize("run", ["3", "-1", "first"])
def test_a_run_that_does_not_exist_is_answered_with_those_that_do(
    trace: Etfarm, maker: BundleMaker, tmp_path: Path, run: str
) -> None:
    code, printed = trace(maker.session([500, 600]).name, "--run", run)
    assert (code, printed) == (2, f"etfarm: --run {run}: no such run; use a number from 0 to 2, or all\n")
    assert not (tmp_path / "t.json").exists()


def test_a_session_that_cannot_be_traced_is_answered_with_the_reason(trace: Etfarm, maker: BundleMaker) -> None:
    failed = maker.session(status="failed", reason_code="device_lost", reason="phone: lost")
    assert trace(failed.name) == (2, f"etfarm: {failed}: the session has no ETDump (phone: lost); trace another one\n")
    code, printed = trace("0123")
    assert code == 2
    assert "0123: neither a session in" in printed


def test_each_operator_states_the_module_and_the_line_that_operator_source_states(
    trace: Etfarm, maker: BundleMaker, tmp_path: Path
) -> None:
    # given a session whose export recorded sources: one operator was inserted, one has no line
    run = (900, OPERATORS)
    folder = maker.session([run, run], files={"sources.json": json.dumps(SOURCES).encode()})
    # when a run is traced
    assert trace(folder.name)[0] == 0
    # then each operator states what is known, and nothing else
    sources = sources_of(tmp_path)
    assert sources == {
        TRANSPOSE: {"certainty": "inserted"},
        CONVOLUTION: {
            "module_path": "blocks.2.conv1",
            "file_line": "model.py:56",
            "source_operator": "aten.convolution.default",
            "fused_with": "aten.relu.default of blocks.2.conv1",
            "certainty": "known",
        },
        MEAN: {"module_path": "head", "source_operator": "aten.mean.dim", "certainty": "known"},
    }
    # and that is what the warehouse answers
    maker.load()
    columns = ("module_path", "file_line", "source_operator", "fused_with", "certainty")
    rows = maker.ask(f"SELECT operator, {', '.join(columns)} FROM operator_source WHERE operator IS NOT NULL")
    assert sources == {
        operator: {key: value for key, value in zip(columns, values, strict=True) if value is not None}
        for operator, *values in rows
    }


@pytest.mark.parametrize("fields", [{"mode": "numerics"}, {"model__method": "decode"}])
def test_operators_of_another_program_or_method_state_no_source(
    trace: Etfarm, maker: BundleMaker, tmp_path: Path, fields: dict[str, Any]
) -> None:
    run = (900, OPERATORS)
    folder = maker.session([run], files={"sources.json": json.dumps(SOURCES).encode()}, **fields)
    assert trace(folder.name)[0] == 0
    assert sources_of(tmp_path) == {}


def test_executions_of_several_methods_state_no_source(trace: Etfarm, maker: BundleMaker, tmp_path: Path) -> None:
    # given executions of which one ran another operator in the delegate, so they are not of one method
    runs = [(900, {CONVOLUTION: 300}), (900, {LINEAR: 300})]
    folder = maker.session(runs, files={"sources.json": json.dumps(SOURCES).encode()})
    assert trace(folder.name, "--run", "all")[0] == 0
    assert sources_of(tmp_path) == {}


def execution(start: int, name: str, took: int) -> list[Profile]:
    """One execution whose only operator lasts half as long."""
    return [
        Profile(name, start, start + took // 2, instruction=0),
        Profile("OPERATOR_CALL", start, start + took // 2, instruction=0),
        Profile(METHOD, start, start + took, chain=-1, instruction=0),
    ]


@pytest.fixture
def printed_lines(tmp_path: Path, command: Command) -> Lines:
    """Print what an ETDump of these runs contains; returns the lines."""

    def run(runs: Sequence[Run]) -> list[str]:
        path = tmp_path / "model.etdump"
        path.write_bytes(build_etdump(runs))
        return command("trace", path).out.removeprefix(f"{path}: ").splitlines()

    return run


def test_executions_of_several_methods_have_no_common_figure(printed_lines: Lines) -> None:
    runs = [Run(execution(start, name, 100)) for start, name in ((0, "native_call_a"), (200, "native_call_b"))]
    assert printed_lines(runs) == [
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


def test_an_aborted_execution_is_reported_and_does_not_count(printed_lines: Lines) -> None:
    # given an execution that was aborted between two complete ones
    name = "native_call_a"
    events = [*execution(0, name, 90_000_000), *execution(10**8, name, 50_000_000)[:2]]
    runs = [Run([*events, *execution(2 * 10**8, name, 20_000_000)])]
    # then only the complete ones have figures
    lines = printed_lines(runs)
    assert lines[:4] == [
        "2 executions, 8 events",
        "2 of its events belong to an execution that did not end; run the model again",
        "first execution 90.000 ms (cold)",
        "the others: 20.000 ms, interquartile mean (median 20.000, min 20.000, max 20.000)",
    ]
    assert sorted(line.split() for line in lines[6:8]) == [[METHOD, "1", "10", "50"], [name, "1", "10", "50"]]


def test_executions_of_0_ns_have_dashes_instead_of_shares(printed_lines: Lines) -> None:
    lines = printed_lines([Run(execution(start, "native_call_a", 0)) for start in (0, 10)])
    assert lines[2:4] == [
        "the others: 0.000 ms, interquartile mean (median 0.000, min 0.000, max 0.000)",
        "every measured execution lasts 0 ns: the clock of the runner does not run or is too coarse; measure with "
        "another runner",
    ]
    assert {line.split()[-1] for line in lines[6:9]} == {"-"}
    assert "nan" not in "".join(lines)


def test_a_delegate_whose_events_are_no_times_is_one_part_with_the_reason(printed_lines: Lines) -> None:
    # given cycles of QNN where an ETDump has nanoseconds
    events = [
        Profile(text="conv:OpId_21 (cycles)", end=13_000_000, instruction=0),
        Profile("DELEGATE_CALL", 1_000_000, 9_000_000, instruction=0),
        Profile(METHOD, 1_000_000, 11_000_000, chain=-1, instruction=0),
    ]
    lines = printed_lines([Run(events)])
    assert (
        "QNN delegate: shown as the total of its calls; QNN reports cycles or microseconds, not the nanoseconds of an "
        "ETDump" in lines
    )
    assert any(line.split() == ["QNN", "delegate", "1", "8", "80"] for line in lines)
