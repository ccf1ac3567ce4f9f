"""`etfarm status`: what runs and until when, what was stopped, what waits, the newest nights. The expected end."""

import io
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock
from uuid import uuid4

import pytest
from prefect.client.schemas.filters import FlowRunFilter
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.exceptions import ObjectNotFound
from rich.console import Console

from devices.inventory import load_inventory, open_device
from devices.ondevice.lease import acquire, this_process
from flows import progress
from flows.cli.status import _stopped_line
from flows.progress import Board, board
from flows.server.runs import _read_runs
from flows.status.expected_time import ExpectedEnd, SessionPace, StepProgress, _kind, end_of_sweep, expected_end
from flows.status.farm_status import NightSummary
from flows.status.running_sweeps import _RECORD, RunningSweep, forget_stopped, read_running, record_progress
from flows.warehouse.publish import load_and_publish
from tasks.bundle.cell import Cell
from tasks.store.workspace import Workspace
from tests.fixtures.command import Command, DataFolder
from tests.fixtures.documented import assert_documented
from tests.fixtures.paths import ROOT
from tests.fixtures.waiting import wait_for

CELL = Cell("local", "linear", "fp32", 1, "sme2_off", "timing", 3, 1)
NOW = datetime(2126, 11, 28, 20, 0).astimezone()
KILLED = """
import sys, threading
from pathlib import Path
from flows.progress import board
from flows.status.farm_status import NightSummary
from flows.status.running_sweeps import _RECORD, RunningSweep, forget_stopped, read_running, record_progress
from tasks.store.workspace import Workspace

board.expect("here", 8)
with record_progress(Workspace(Path(sys.argv[1])), "smoke-2026-01-28", "", ["here"]):
    threading.Event().wait()
"""


def after(minutes: float) -> datetime:
    return NOW + timedelta(minutes=minutes)


def test_earlier_sweeps_give_a_range_until_this_start_has_measured_most_of_what_is_left() -> None:
    # given two earlier sweeps of a device, one of them slow
    pace, cells = SessionPace(), [CELL] * 6
    assert expected_end(pace.seconds("here", cells), NOW) is None
    for sweep_id, mean_s in (("a", 30.0), ("b", 40.0)):
        pace._sweeps["here"][sweep_id][_kind(CELL)] = mean_s
    assert pace.seconds("here", cells) == pytest.approx((180 * 0.75, 240 / 0.75))
    # when this start measures sessions of 20 s, then these decide, and the range is narrower
    for _ in range(2):
        pace.add("here", CELL, 20.0)
    seconds = pace.seconds("here", cells)
    assert seconds == pytest.approx((120 / 1.1, 120 * 1.1))
    # and nothing ends after the time by which the sweep must have ended
    assert expected_end(seconds, NOW, after(1)) == ExpectedEnd(after(1), after(1))


def test_a_sweep_ends_with_its_last_device_and_is_unknown_as_long_as_that_of_one_is() -> None:
    def device(name: str, end: ExpectedEnd | None, *, has_ended: bool = False) -> StepProgress:
        return StepProgress(name, "", 1, 4, 0, "", end, has_ended)

    soon, late = ExpectedEnd(after(1), after(9)), ExpectedEnd(after(5), after(6))
    both = [device("a", soon), device("b", late), device("c", None, has_ended=True)]
    assert end_of_sweep(both, ["a", "b", "c"]) == ExpectedEnd(after(5), after(9))
    assert end_of_sweep(both, ["a", "b", "not probed"]) is None
    assert str(ExpectedEnd(NOW, after(0.5))) == "20:00"
    # and an end that has passed, such as that of a paused sweep, is no longer announced
    past = NOW.replace(year=2026, month=1)
    assert str(ExpectedEnd(past, past + timedelta(minutes=5))) == "20:05, overdue"


def test_a_log_without_a_line_for_a_minute_gets_the_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, of_log = io.StringIO(), Board()
    with of_log.display(Console(file=stream, width=200)):
        of_log.expect("here", 8)
        of_log.remind("smoke: here: 0 of 8")
        monkeypatch.setattr(progress, "_SILENCE_S", 0.0)
        of_log.remind("smoke: here: 0 of 8, again")
    assert stream.getvalue().splitlines()[:2] == ["here: 8 to do", "smoke: here: 0 of 8, again"]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DataFolder:
    """A data folder with two nights of one series; an inventory with one device that is here and one that is not."""
    monkeypatch.setattr("devices.device.Device.machine_folder", str(tmp_path / "machine"))
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    here = f"{{name: here, transport: local, root: {tmp_path / 'device'}}}"
    gone = "{name: gone, transport: ssh, address: 127.0.0.1, port: 9, user: nobody, root: /tmp/x}"
    (tmp_path / "inventory.yaml").write_text(f"devices: [{here}, {gone}]", encoding="utf-8")
    data = DataFolder(tmp_path / "var")
    for night in ("2026-11-19", "2026-11-20"):
        for repetition in range(3):
            sweep: dict[str, Any] = {"sweep__sweep_id": f"smoke-{night}", "sweep__night": night}
            data.session([10_000_000] * 3, repetition=repetition, **sweep)
    load_and_publish(data.workspace, [data.bundles])
    return data


def test_a_running_sweep_has_its_expected_end_and_a_killed_one_is_stopped(
    data: DataFolder, command: Command, tmp_path: Path
) -> None:
    words = ("status", "--data-dir", data.workspace.root, "--inventory", tmp_path / "inventory.yaml")
    # given a sweep of this process, and one whose process was killed
    killed = subprocess.Popen([sys.executable, "-c", KILLED, str(data.workspace.root)], cwd=ROOT)
    wait_for(lambda: _records(data.workspace), "the first record")
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    board.expect("here", 4)
    board.set_end("here", ExpectedEnd(after(5), after(9)))
    with record_progress(data.workspace, "nightly-2026-11-28", "", ["here"]):
        wait_for(lambda: len(_records(data.workspace)) == 2, "its record")
        ended = command(*words)
        document = json.loads(command(*words, "--format", "json").out)
    board.finish("here")
    # then the one runs, until the expected end, and the other does not
    head, running, step, stopped_head, stopped, *_ = ended.lines
    assert (ended.code, head, stopped_head) == (0, "running:", "stopped before the end:"), ended
    assert running.startswith("  nightly-2026-11-28, since ")
    assert running.endswith(f"expected end 20:05 to 20:09, process {os.getpid()} on {os.uname().nodename}")
    assert step == "    here: 0 of 4, until 20:05 to 20:09"
    assert stopped.startswith("  smoke-2026-01-28, since ")
    assert stopped.endswith(" sessions: to resume, add `--night 2026-01-28` to its command")
    # and the nights, and which device does not answer
    assert "  gone: " in ended.out
    assert "  smoke-2026-11-20  3 succeeded  " in ended.out
    assert_documented("status", document)
    # and the next start of the killed sweep, at its end, leaves nothing
    with record_progress(data.workspace, "smoke-2026-01-28", "", ["here"]):
        pass
    assert _records(data.workspace) == []
    # and a device that something else uses is named
    with open_device(load_inventory(tmp_path / "inventory.yaml").devices[0]) as device, acquire(device, "compare"):
        ended = command(*words)
    assert ended.lines[0] == "nothing is running"
    assert f"  here: held by compare, process {os.getpid()} on " in ended.out


def test_a_sweep_of_an_earlier_boot_is_stopped_when_it_has_been_silent(tmp_path: Path) -> None:
    # given a sweep of a machine that has lost its power meanwhile, and one of another machine
    workspace, now = Workspace(tmp_path), datetime.now().astimezone()
    workspace.running.mkdir()
    for name, minutes in (("without power", 11), ("elsewhere", 9)):
        process = replace(this_process(name), place="another boot")
        sweep = RunningSweep(process, "", [], [], now - timedelta(minutes=minutes))
        (workspace.running / f"{name}.json").write_bytes(_RECORD.dump_json(sweep))
    # then the one that gave no sign of life for ten minutes does not count as running, and its next start replaces it
    running, stopped = read_running(workspace)
    assert ([each.sweep_id for each in running], [each.sweep_id for each in stopped]) == (
        ["elsewhere"],
        ["without power"],
    )
    forget_stopped(workspace, "without power")
    assert [path.stem for path in _records(workspace)] == ["elsewhere"]


def test_the_verdicts_of_a_night_are_in_one_line_the_worst_first() -> None:
    verdicts = {"improvement": 1, "device slower": 2, "no change": 40, "regression": 3}
    night = NightSummary(NOW.date(), ["nightly"], 8, 0, 0, verdicts)
    assert night.verdict_line == "regression: 3, device slower: 2, improvement: 1 of 46 series"


def test_late_runs_hide_no_run_of_the_server_and_a_deleted_deployment_no_late_run() -> None:
    # given a server that has one paused run, and more late ones than are read
    def runs(name: str, kind: StateType, count: int) -> list[FlowRun]:
        about = {"flow_id": uuid4(), "name": name, "state": State(type=kind), "deployment_id": uuid4()}
        return [FlowRun.model_validate(about | {"expected_start_time": "2026-11-28T20:00Z"}) for _ in range(count)]

    def answer(flow_run_filter: FlowRunFilter, **_: object) -> list[FlowRun]:
        wanted = set(flow_run_filter.state.type.any_)  # type: ignore[union-attr,arg-type]
        is_late = wanted == {StateType.SCHEDULED}
        return runs("late", StateType.SCHEDULED, 50) if is_late else runs("paused", StateType.PAUSED, 1)

    client = MagicMock(read_flow_runs=answer, read_artifacts=lambda **_: [])
    client.read_deployment.side_effect = ObjectNotFound(RuntimeError())
    names = [run.name for run in _read_runs(client)]
    assert names == ["paused", *["late"] * 50]


def _records(workspace: Workspace) -> list[Path]:
    return list(workspace.running.glob("[!.]*.json"))


def test_a_stopped_sweep_has_its_command_and_how_far_it_was() -> None:
    steps = [StepProgress("export", "", 1, 1, 0, ""), StepProgress("here", "", 50, 301, 0, "")]
    process = this_process("long-2026-01-28")
    for command, again in (("etfarm sweep l.yaml", " --night 2026-01-28"), ("etfarm sweep --night 2026-01-28", "")):
        sweep = RunningSweep(process, "", ["here"], steps, NOW, command)
        assert _stopped_line(sweep).endswith(f", 50 of 301 sessions: to resume: {command}{again}")
