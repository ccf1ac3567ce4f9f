"""`etfarm trace`: a session by id or path, the run that is traced, and one sentence where there is nothing to trace."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.command import Command, Etfarm
from tests.fixtures.warehouse import CONVOLUTION, LINEAR, MEAN, TRANSPOSE, BundleMaker, etdump_of


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
    stated = {
        event["name"]: {key: event["args"][key] for key in keys if key in event["args"]}
        for event in events
        if event["ph"] == "X"
    }
    return {name: source for name, source in stated.items() if source}


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
    stated = sources_of(tmp_path)
    assert stated == {
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
    assert stated == {
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
