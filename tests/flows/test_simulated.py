"""Simulated devices from the command line: the whole contract, replayed recordings, and no time anywhere."""

import json
import shutil
import signal
import subprocess
from dataclasses import replace

import pytest

from tasks.bundle.record import SessionRecord
from tasks.store.find import bundles_of
from tests.fixtures.farm import SWEEP, Farm
from tests.fixtures.paths import KEPT
from tests.fixtures.simulated import SimulatedFarm
from tests.fixtures.waiting import ENOUGH_S, wait_for

pytestmark = pytest.mark.torch
pytest.importorskip("executorch", reason="exports and the runner need the export extra")

SESSIONS = 3  # of each device: one is discarded


@pytest.fixture
def simulated(farm: Farm) -> Farm:
    """The farm with two simulated devices whose sessions last 50 ms."""
    entry = {"name": "simulated", "transport": "simulated", "count": 2, "seconds": 0.05, "root": str(farm.folder)}
    farm.inventory.write_text(json.dumps({"devices": [entry]}), encoding="utf-8")
    return farm


def records_of(farm: Farm) -> list[SessionRecord]:
    """The records of all sweeps."""
    return [record for sweep in farm.var.glob("bundles/*-*") for record in bundles_of(farm.var / "bundles", sweep.name)]


def test_a_sweep_of_simulated_devices_passes_every_check_and_shows_no_time(simulated: Farm) -> None:
    # when one model is swept on both
    done = simulated.sweep(SWEEP.replace("[linear, conv]", "[linear]"))
    assert done.returncode == 0, done.stderr
    # then the terminal lists them as simulated, with counts and without a median
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("simulated-")]
    names = ["simulated-001", "simulated-002"]
    assert lines == [[name, "(simulated)", "linear", "fp32", "sme2_off", "1", "2", "8"] for name in names]
    # and every record states it, has compared outputs, and was as long as the inventory asks
    records = records_of(simulated)
    assert len(records) == 2 * SESSIONS
    for record in records:
        assert (record.device.transport, record.device.emulated) == ("simulated", True)
        assert record.runner is not None
        assert record.runner.kind == "simulated"
        assert record.accuracy
        assert (record.wall_s or 0) >= 0.04  # the clock of jobs has steps of 10 ms
    # and all are loaded, each with an ETDump that bears its session's name
    assert simulated.ask("SELECT count(*) AS sessions FROM session_overview") == [{"sessions": 2 * SESSIONS}]
    for record in records:
        etdump = simulated.var / "bundles" / record.sweep.sweep_id / record.session_id / "model.etdump"
        assert etdump.read_bytes()[-64:].strip() == f"simulated {record.session_id}".encode()
    # and the report shows no time of them
    html = (simulated.var / "reports" / records[0].sweep.sweep_id / "report.html").read_text(encoding="utf-8")
    assert "nothing was measured, and no time is shown or ranked" in html
    assert simulated.ask("SELECT verdict FROM verdict") == []


def test_the_list_of_devices_calls_them_simulated(simulated: Farm) -> None:
    listed = simulated.run("devices", "--inventory", simulated.inventory)
    rows = [line.split()[:3] for line in listed.stdout.splitlines() if line.startswith("simulated-")]
    assert rows == [[name, "simulated", "idle"] for name in ("simulated-001", "simulated-002")]


@pytest.mark.thorough
@pytest.mark.fault(
    stage="run",
    done="controller of several simulated devices killed (SIGKILL) after the first bundle",
    holds="the next start measures what is missing: every session counts once, in bundles and warehouse",
)
def test_a_killed_sweep_of_several_devices_is_completed_and_counts_every_session_once(farm: Farm) -> None:
    # given a sweep of three devices that is killed when the first bundle is complete
    many = SimulatedFarm(farm.folder / "many", devices=3, sessions=2, seconds=0.05)
    command = many.prepare(KEPT)
    process = subprocess.Popen(command, env=farm.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wait_for(lambda: process.poll() is not None or any(many.records()), "the first bundle", longest_s=240)
    process.kill()
    assert process.communicate()[0] is not None
    assert process.returncode == -signal.SIGKILL
    # when it is started again
    again = subprocess.run(command, env=farm.environment, capture_output=True, text=True, check=False)
    # then every session has one result, which is its own, and the warehouse contains the same
    assert again.returncode == 0, again.stdout + again.stderr
    assert many.faults() == []


@pytest.mark.thorough
@pytest.mark.fault(
    stage="run",
    done="controller of several devices stopped (SIGTERM) while their sessions run",
    holds="no session is recorded as failed because the sweep was stopped",
)
def test_a_sweep_that_is_stopped_records_no_failures(farm: Farm) -> None:
    # given a sweep of three devices with a running session each
    many = SimulatedFarm(farm.folder / "many", devices=3, sessions=30, seconds=0.3)
    command = many.prepare(KEPT)
    process = subprocess.Popen(command, env=farm.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wait_for(lambda: process.poll() is not None or len(many.records()) >= 6, "some bundles", longest_s=240)
    # when it is stopped
    process.terminate()
    said = process.communicate(timeout=ENOUGH_S)[0].decode()
    assert process.returncode == 128 + signal.SIGTERM, said
    # then every bundle is of a session that ended by itself
    assert {record.reason for record in many.records() if record.status == "failed"} == set()


@pytest.mark.thorough
def test_the_check_of_a_simulated_farm_finds_lost_doubled_and_false_sessions(farm: Farm) -> None:
    # given a sweep of one device, whose plan then is taken to be another one
    one = SimulatedFarm(farm.folder / "one", devices=1, sessions=2, seconds=0)
    done = subprocess.run(one.prepare(KEPT), env=farm.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert replace(one, sessions=3).faults() == ["simulated-001 #2: lost"]
    # and one bundle is doubled, with the ETDump of the other session
    (first, second) = [each for each in one.records() if each.index >= 0]
    folder = one.var.bundles / first.sweep.sweep_id
    text = (folder / first.session_id / "session.json").read_text(encoding="utf-8")
    shutil.copytree(folder / second.session_id, folder / ("f" * 16))
    copied = folder / ("f" * 16) / "session.json"
    copied.write_text(text.replace(first.session_id, "f" * 16), encoding="utf-8")
    assert one.faults() == [
        f"simulated-001 #{first.index}: 2 results",
        f"{'f' * 16}: its ETDump is of another session",
        f"{'f' * 16}: not loaded",
    ]
