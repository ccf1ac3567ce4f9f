"""`etfarm trace`: the runs of a session or ETDump, printed or as a trace; a sentence if there is nothing to trace."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from flows.warehouse.publish import load_and_publish
from tests.fixtures.command import Command, DataFolder, Etfarm
from tests.fixtures.etdump_builder import METHOD, Profile, Run, build_etdump
from tests.fixtures.warehouse import CONVOLUTION, LINEAR, MEAN, TRANSPOSE, etdump_of


@pytest.fixture
def trace(etfarm: Etfarm, tmp_path: Path) -> Etfarm:
    return lambda *words: etfarm("trace", *words, "-o", tmp_path / "t.json")


CONV_NODE = {"kind": "XNNConv2d", "sources": [0], "graph_nodes": ["aten_conv", "aten_pad"], "clamp": [2]}
NODES = [{"kind": "XNNStaticTranspose", "sources": []}, CONV_NODE]
DELEGATED = {"chain": 0, "instruction": 0, "backend": "XnnpackBackend", "sources": [0, 2], "nodes": NODES}
WHERE = [[1, "aten.convolution.default", "net.py:5"], [2, "aten.mean.dim", None], [1, "aten.relu.default", "net.py:6"]]
SOURCES = {
    "version": 1,
    "modules": [["", "net.Net"], ["blocks.2.conv1", "torch.nn.Conv2d"], ["head", None]],
    "sources": WHERE,
    "methods": {"forward": [DELEGATED, {"chain": 0, "instruction": 3, "sources": [1], "graph_nodes": ["aten_mean"]}]},
}
SOURCES_FILE = {"sources.json": json.dumps(SOURCES).encode()}
STATED = ("module_path", "file_line", "source_operator", "fused_with", "certainty")
OPERATORS = {TRANSPOSE: 100, CONVOLUTION: 300, MEAN: 50}


def events(tmp_path: Path) -> list[dict[str, Any]]:
    """The events of the written trace."""
    written: list[dict[str, Any]] = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))["traceEvents"]
    return written


def sources_of(tmp_path: Path) -> dict[str, dict[str, str]]:
    """What the written trace states about the source of each operator that has a statement."""
    slices = {each["name"]: each["args"] for each in events(tmp_path) if each["ph"] == "X"}
    sources = {name: {key: args[key] for key in STATED if key in args} for name, args in slices.items()}
    return {name: source for name, source in sources.items() if source}


def durations_ns(tmp_path: Path) -> list[int]:
    return [round(event["dur"] * 1000) for event in events(tmp_path) if event["name"] == "Method::execute"]


def test_the_middle_run_or_the_chosen_ones_are_traced(trace: Etfarm, data: DataFolder, tmp_path: Path) -> None:
    # given a session of a warm-up run and three measured ones, and an ETDump of any origin
    folder = data.session([(900, {CONVOLUTION: 300}), (500, {CONVOLUTION: 300}), (600, {CONVOLUTION: 300})])
    (loose := tmp_path / "some.etdump").write_bytes(etdump_of([(70, {}), (80, {})]))
    for words, said, traced in (
        ([folder.name], "run 3 of 0 to 3, the middle one by duration", [600]),
        ([folder], "run 3 of 0 to 3, the middle one by duration", [600]),
        ([folder / "session.json", "--run", "0"], "run 0 of 0 to 3, a warm-up run", [8100]),
        ([folder.name, "--run", "2"], "run 2 of 0 to 3, measured", [500]),
        ([folder.name, "--run", "all"], "all 4 runs, 1 of them warm-up", [8100, 900, 500, 600]),
        ([loose], "run 1 of 0 to 1", [80]),
    ):
        # when it is traced, then that run is in the file, and the command names it
        code, printed = trace(*words)
        assert (code, said in printed, durations_ns(tmp_path)) == (0, True, traced), printed


def test_what_cannot_be_traced_is_answered_with_the_reason(trace: Etfarm, data: DataFolder, tmp_path: Path) -> None:
    session = data.session([500, 600]).name
    failed = data.session(status="failed", reason_code="device_lost", reason="phone: lost")
    for words, sentence in (
        *(([session, "--run", run], f"--run {run}: no such run; use a number from 0 to 2") for run in ("3", "-1", "x")),
        ([failed.name], f"{failed}: the session has no ETDump (phone: lost)"),
        (["0123"], "0123: neither a session in"),
    ):
        code, printed = trace(*words)
        assert (code, printed.startswith(f"etfarm: {sentence}"), printed.count("\n")) == (2, True, 1), printed
    assert not (tmp_path / "t.json").exists()


def test_files_beside_a_loose_etdump_are_not_read(trace: Etfarm, data: DataFolder, tmp_path: Path) -> None:
    # given a copied ETDump with its session.json, which lists a sources.json that would be waited for
    folder = data.session([(500, OPERATORS)] * 2, files=SOURCES_FILE)
    (copied := tmp_path / "copied").mkdir()
    for name in ("session.json", "model.etdump"):
        shutil.copy(folder / name, copied)
    os.mkfifo(copied / "sources.json")
    assert trace(copied / "model.etdump")[0] == 0
    assert sources_of(tmp_path) == {}


def test_each_operator_states_what_operator_source_states(trace: Etfarm, data: DataFolder, tmp_path: Path) -> None:
    # given a session whose export recorded sources: one operator was inserted, one has no line
    folder = data.session([(900, OPERATORS)] * 2, files=SOURCES_FILE)
    assert trace(folder.name)[0] == 0
    # then each operator states what is known, and nothing else
    sources = sources_of(tmp_path)
    assert sources == {
        TRANSPOSE: {"certainty": "inserted"},
        CONVOLUTION: {
            "module_path": "blocks.2.conv1",
            "file_line": "net.py:5",
            "source_operator": "aten.convolution.default",
            "fused_with": "aten.relu.default of blocks.2.conv1",
            "certainty": "known",
        },
        MEAN: {"module_path": "head", "source_operator": "aten.mean.dim", "certainty": "known"},
    }
    # and that is what the warehouse answers
    load_and_publish(data.workspace, [data.bundles])
    rows = data.ask(f"SELECT operator, {', '.join(STATED)} FROM operator_source WHERE operator IS NOT NULL")
    answers = {operator: dict(zip(STATED, values, strict=True)) for operator, *values in rows}
    assert answers == {name: dict.fromkeys(STATED) | source for name, source in sources.items()}


def test_model_explorer_gets_the_median_of_each_node_of_the_graph_and_its_change(
    etfarm: Etfarm, data: DataFolder, tmp_path: Path
) -> None:
    # Given a warm-up run and three measured ones in ns, and an operator that two nodes share
    operators = [OPERATORS | {CONVOLUTION: ns} for ns in (300, 300, 500)]
    now = data.session([(900, each) for each in operators], files=SOURCES_FILE).name
    before = data.session([(900, OPERATORS | {MEAN: 80})] * 3, files=SOURCES_FILE).name

    def node_data(*words: str) -> dict[str, float]:
        code, printed = etfarm("trace", now, "--model-explorer", *words, "-o", tmp_path / "nodes.json")
        assert (code, "3 nodes with 77.8 % of the time" in printed) == (0, True), printed
        results = json.loads((tmp_path / "nodes.json").read_text())["forward"]["results"]
        return {name: round(result["value"] * 1e6) for name, result in results.items()}

    assert node_data() == {"aten_conv": 150, "aten_pad": 150, "aten_mean": 50}
    assert node_data("--before", before) == {"aten_conv": 0, "aten_pad": 0, "aten_mean": -30}
    # and a session without the names of nodes is refused
    without = data.session([(900, OPERATORS)] * 2).name
    code, printed = etfarm("trace", without, "--model-explorer", "-o", tmp_path / "nodes.json")
    assert (code, printed.startswith(f"etfarm: {without}: it has no sources.json")) == (2, True), printed


@pytest.mark.parametrize(
    ("operators", "fields"),
    [
        ([OPERATORS], {"mode": "numerics"}),
        ([OPERATORS], {"model__method": "decode"}),
        ([{CONVOLUTION: 300}, {LINEAR: 300}], {}),  # not of one method
    ],
)
def test_operators_of_another_program_or_method_state_no_source(
    trace: Etfarm, data: DataFolder, tmp_path: Path, operators: list[dict[str, int]], fields: dict[str, Any]
) -> None:
    folder = data.session([(900, each) for each in operators], files=SOURCES_FILE, **fields)
    assert trace(folder.name, "--run", "all")[0] == 0
    assert sources_of(tmp_path) == {}


def execution(start: int, name: str, took: int) -> list[Profile]:
    """One execution whose only operator lasts half as long."""
    return [
        Profile(name, start, start + took // 2, instruction=0),
        Profile("OPERATOR_CALL", start, start + took // 2, instruction=0),
        Profile(METHOD, start, start + took, chain=-1, instruction=0),
    ]


def test_the_time_of_an_etdump_is_that_of_its_session(tmp_path: Path, command: Command, data: DataFolder) -> None:
    # given sessions of a cold run and ten others, of which the first ones are slow
    runs = [(us * 1000, {CONVOLUTION: us * 700}) for us in (900, 500, 300, 104, 103, 102, 101, 100, 99, 98)]
    bundles = [data.session(runs, warmup_executions=warmup) for warmup in (1, 3)]
    load_and_publish(data.workspace, [data.bundles])
    times = data.ask("SELECT time_ms FROM session_latency ORDER BY session_id")
    # then both leave out its warm-up runs
    for bundle, (time_ms,), kind in zip(bundles, times, ("the others", "the 8 after 3 warm-up runs"), strict=True):
        assert f"{kind}: {time_ms:.3f} ms, interquartile mean" in command("trace", bundle / "model.etdump").out
    # and of an ETDump elsewhere only the first run is known to be cold
    shutil.copy(bundle / "model.etdump", tmp_path / "loose.etdump")
    assert "the others: " in command("trace", tmp_path / "loose.etdump").out


NAME = "native_call_a"
ABORTED = [
    *execution(0, NAME, 90_000_000),
    *execution(10**8, NAME, 50_000_000)[:2],
    *execution(10**9, NAME, 20_000_000),
]
CYCLES = [
    Profile(text="conv:OpId_21 (cycles)", end=13_000_000, instruction=0),
    Profile("DELEGATE_CALL", 1_000_000, 9_000_000, instruction=0),
    Profile(METHOD, 1_000_000, 11_000_000, chain=-1, instruction=0),
]


@pytest.mark.parametrize(
    ("runs", "said", "shares"),
    [
        (
            [execution(0, NAME, 100), execution(200, "native_call_b", 100)],
            [
                "2 executions, 6 events",
                "its executions belong to different methods: instruction 0 ran native_call_a",
            ],
            [],
        ),
        (
            [ABORTED],  # between two complete ones, which alone have figures
            [
                "2 executions, 8 events",
                "2 of its events belong to an execution that did not end",
                "first execution 90.000 ms (cold)",
                "the others: 20.000 ms, interquartile mean (median 20.000, min 20.000, max 20.000)",
            ],
            [[METHOD, "1", "10", "50"], [NAME, "1", "10", "50"]],
        ),
        (
            [execution(start, NAME, 0) for start in (0, 10)],
            ["every measured execution lasts 0 ns: "],
            [[METHOD, "1", "0", "-"], [NAME, "1", "0", "-"]],
        ),
        ([CYCLES], ["QNN delegate: shown as the total of its calls; "], [["QNN", "delegate", "1", "8", "80"]]),
    ],
    ids=["several methods", "aborted", "0 ns", "a delegate without times"],
)
def test_what_is_wrong_with_an_etdump_is_printed_and_figures_are_of_the_rest(
    tmp_path: Path, command: Command, runs: list[list[Profile]], said: list[str], shares: list[list[str]]
) -> None:
    path = tmp_path / "model.etdump"
    path.write_bytes(build_etdump([Run(events) for events in runs]))
    lines = command("trace", path).out.removeprefix(f"{path}: ").splitlines()
    assert [text for text in said if not any(line.startswith(text) for line in lines)] == []
    assert [row for row in shares if row not in [line.split() for line in lines]] == []
    assert bool(shares) == (len(lines) > 2)
