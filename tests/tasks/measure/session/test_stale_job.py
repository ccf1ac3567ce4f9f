"""A job that ended without its controller is judged by itself: its request, its conditions and its times.

The machine reports the temperature in a file: stand-ins for an Android phone's tools come first in PATH.
"""

import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from devices.local import LocalDevice
from devices.ondevice.job import Job, run_job
from devices.start_limits import Limits
from tasks.bundle.record import BundleError, SessionRecord
from tasks.measure.plan import PlannedSession
from tasks.measure.session.context import SessionContext
from tasks.measure.session.measure import clear_stale_jobs, measure
from tasks.store.folder import read_records
from tasks.store.local_store import LocalStore
from tests.fixtures.paths import ROOT
from tests.fixtures.plans import NIGHT
from tests.fixtures.stand_in import GOOD, a_context, a_session, put_on_path
from tests.fixtures.waiting import ENOUGH_S, SCALE, wait_for

COOL = Limits(max_temperature_c=45)
_CONTROLLER = """
import sys
from dataclasses import replace
from pathlib import Path
from devices.start_limits import Limits
from tests.fixtures.stand_in import LocalStore, a_context, a_session, measure
folder = Path(sys.argv[1])
context = replace(a_context(folder, sys.argv[2]), limits=Limits(max_temperature_c=45))
measure(a_session(), context, LocalStore(folder / "bundles"))
"""


@pytest.fixture
def phone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make this machine look like a phone; the returned file contains its temperature in tenths of a degree."""
    temperature = tmp_path / "temperature"
    temperature.write_text("295", encoding="utf-8")
    reported = f'[ "$1" != battery ] || echo "temperature: $(cat "{temperature}")"'
    put_on_path(monkeypatch, tmp_path / "tools", getprop="", dumpsys=reported)
    return temperature


def killed_while_the_job_runs(folder: Path, script: str) -> SessionContext:
    """Kill a controller with -9 while its job waits for the file `go`; return its context when the job has ended."""
    counted = f"echo x >>'{folder}/count'; until [ -e '{folder}/go' ]; do sleep 0.02; done; {script}"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    controller = subprocess.Popen([sys.executable, "-c", _CONTROLLER, str(folder), counted], env=environment)
    wait_for((folder / "count").exists, "the job to run")
    controller.kill()
    controller.wait()
    assert list(read_records(folder / "bundles", NIGHT.sweep_id)) == []
    (folder / "go").touch()
    wait_for(lambda: list(folder.glob("root/sessions/*/job/rc")), "the job to end")
    again = folder / "again"
    again.mkdir()
    context = replace(a_context(again, counted), limits=COOL)
    return replace(context, device=type(context.device)("local", str(folder / "root")))


def record_of(folder: Path, context: SessionContext) -> SessionRecord:
    """Measure the session and return its record, of which there is one bundle."""
    measure(a_session(), context, LocalStore(folder / "bundles"))
    (record,) = read_records(folder / "bundles", NIGHT.sweep_id)
    return record


def runs(folder: Path) -> int:
    return len((folder / "count").read_text(encoding="utf-8").splitlines())


@pytest.mark.fault
def test_a_job_that_ended_hot_is_invalid_when_it_is_collected_cool(tmp_path: Path, phone: Path) -> None:
    # given a run that heats the device to 70 degrees, whose controller is killed
    context = killed_while_the_job_runs(tmp_path, f"echo 700 >'{phone}'; {GOOD}")
    # when the sweep is started again after the device has cooled
    phone.write_text("295", encoding="utf-8")
    record = record_of(tmp_path, context)
    # then the session is judged by the conditions of its run, which is not repeated
    assert (record.status, record.reason_code) == ("invalid", "thermal")
    assert [each and each.temperature_c for each in record.conditions.values()] == [29.5, 70.0]
    assert runs(tmp_path) == 1


def test_a_device_that_heats_up_between_the_wait_and_the_start_is_seen_by_the_job(tmp_path: Path, phone: Path) -> None:
    # given a device that is cool when the controller looks and after the run, and hot when the job starts
    hot_at_start = tmp_path / "tools" / "dumpsys"
    hot_at_start.write_text(
        f'#!/bin/sh\n[ "$1" = battery ] || exit 0; echo "temperature: $(cat "{phone}")"; echo 700 >"{phone}"\n',
        encoding="utf-8",
    )
    context = replace(a_context(tmp_path, f"echo 295 >'{phone}'; {GOOD}"), limits=COOL)
    record = record_of(tmp_path, context)
    assert (record.status, record.reason_code) == ("invalid", "thermal")
    assert str(record.reason).startswith("before the session, thermal: temperature_c is 70")


@pytest.mark.fault
def test_a_job_that_ended_cool_is_collected_with_its_times_while_the_device_is_hot(tmp_path: Path, phone: Path) -> None:
    began = datetime.now(UTC)
    context = killed_while_the_job_runs(tmp_path, GOOD)
    (written,) = tmp_path.glob("root/sessions/*/job/rc")
    ended = datetime.fromtimestamp(written.stat().st_mtime, UTC)
    # when the sweep is started again on a hot device, at a moment that differs measurably from the end of the run
    phone.write_text("700", encoding="utf-8")
    wait_for(lambda: datetime.now(UTC) - ended > timedelta(seconds=2 * SCALE), "the clock", pause_s=0.1)
    again = datetime.now(UTC)
    record = record_of(tmp_path, context)
    assert (record.status, record.reason) == ("succeeded", None)
    assert runs(tmp_path) == 1
    started_at, ended_at = (datetime.fromisoformat(moment) for moment in (record.started_at, record.ended_at))
    assert began <= started_at <= ended_at < again
    assert record.wall_s == pytest.approx((ended_at - started_at).total_seconds(), abs=0.02)
    after = record.conditions["after"]
    assert after
    assert after.taken_at
    assert began <= after.taken_at < again


@pytest.mark.fault
@pytest.mark.parametrize("what", ["cpu_affinity", "data folder"])
def test_a_finished_job_of_another_user_is_not_collected(tmp_path: Path, what: str) -> None:
    # given a finished job of a user with the same device
    context, store = a_context(tmp_path, f"echo x >>'{tmp_path}/count'; {GOOD}"), LocalStore(tmp_path / "bundles")
    leave_job(context, a_session(), store)
    if what == "cpu_affinity":
        context = replace(context, spec=context.spec.model_copy(update={"cpu_affinity": [0]}))
    else:
        store = LocalStore(tmp_path / "other" / "bundles")
    since = time.time()
    # when another user measures the same session
    measure(a_session(), context, store)
    # then it was run again
    (record,) = store.records(NIGHT.sweep_id)
    assert record.status == "succeeded"
    assert (record.command[:2] == ["taskset", "1"]) == (what == "cpu_affinity")
    assert datetime.fromisoformat(record.started_at).timestamp() >= since - 0.1
    assert runs(tmp_path) == 2


@pytest.mark.fault
def test_a_session_that_was_not_alone_on_the_machine_is_invalid(tmp_path: Path) -> None:
    # given the job of another farm, which ignores leases
    other = LocalDevice("other", str(tmp_path / "other root"))
    script = f"touch '{tmp_path}/other-runs'; until [ -e '{tmp_path}/end' ]; do sleep 0.02; done"
    job = Job(f"{other.root}/session", ["sh", "-c", script], ENOUGH_S)
    thread = threading.Thread(target=run_job, args=(other, job))
    thread.start()
    wait_for((tmp_path / "other-runs").exists, "the other farm's job to run")
    record = record_of(tmp_path, a_context(tmp_path, GOOD))
    (tmp_path / "end").touch()
    thread.join()
    assert (record.status, record.reason_code) == ("invalid", "not_alone")
    assert record.reason == f"another farm, with the root {other.root}, ran a job on local at the same time"


@pytest.mark.fault
def test_what_is_never_resumed_does_not_stay_on_the_device(tmp_path: Path) -> None:
    # given three finished jobs of this sweep and one of another farm that nobody collected, and one that never started
    context, store = a_context(tmp_path, f"echo x >>'{tmp_path}/count'; {GOOD}"), LocalStore(tmp_path / "bundles")
    kept, dropped, old = (a_session(repetition=index) for index in range(3))
    elsewhere = a_session(repetition=3)
    for session, bundles in ((kept, store), (dropped, store), (old, store), (elsewhere, LocalStore(tmp_path / "b"))):
        leave_job(context, session, bundles)
    sessions = tmp_path / "root" / "sessions"
    (sessions / ("f" * 16)).mkdir()
    os.utime(sessions / old.session_id, (time.time() - 8 * 86_400,) * 2)
    # when the sweep is started again and plans only two of them
    clear_stale_jobs(context.device, NIGHT, [kept, old], store)
    # then what is planned and recent stays, and so does the other farm's
    assert {path.name for path in sessions.iterdir()} == {kept.session_id, elsewhere.session_id}
    # and a finished job is collected, not run again
    measure(kept, context, store)
    assert [record.status for record in store.records(NIGHT.sweep_id)] == ["succeeded"]
    assert runs(tmp_path) == 4


def leave_job(context: SessionContext, session: PlannedSession, bundles: LocalStore) -> None:
    """Measure the session and fail to write its bundle, which leaves the job on the device."""
    blocked = bundles.root
    blocked.write_text("a file where the bundles should be", encoding="utf-8")
    with pytest.raises(BundleError, match="cannot write the bundle"):
        measure(session, context, bundles)
    blocked.unlink()
