"""Leases: one holder at a time, over processes that race, die and come late; how long they last, what they leave."""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from devices.device import Device
from devices.errors import DeviceBusy, DeviceLost, LeaseLost
from devices.ondevice import lease as leases
from devices.ondevice.job import MAX_FOLDERS
from devices.ondevice.lease import acquire, current_holder, has_ended, lease_ttl_s
from devices.shell import run_script
from tests.fixtures.leases import expire, held_file
from tests.fixtures.paths import ROOT
from tests.fixtures.waiting import wait_for, wait_for_line

HOLD = """
import sys
from devices.local import LocalDevice
from devices.ondevice.job import Job, run_job
from devices.ondevice.lease import acquire
lease = acquire(LocalDevice("local", sys.argv[1]), "the other farm", ttl_s=600)
run_job(lease.device, Job(f"{sys.argv[1]}/session", ["sleep", "600"], 600))
"""
RACE = """
import sys
from devices.errors import DeviceBusy
from devices.local import LocalDevice
from devices.ondevice.lease import acquire
print("ready", flush=True)
sys.stdin.readline()
try:
    lease = acquire(LocalDevice("local", sys.argv[1]), "racer", ttl_s=600)
    print("won", flush=True)
    sys.stdin.read()
except DeviceBusy:
    print("busy", flush=True)
"""


def start(script: str, device: Device) -> subprocess.Popen[str]:
    """Start a process that holds or wants the device."""
    command, pipe = [sys.executable, "-c", script, device.root], subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)


def expiry_s(device: Device) -> int:
    """Return when the lease on the device expires, in seconds of its clock."""
    return int(held_file(device).suffix[1:])


def test_a_device_has_one_holder_at_a_time_with_any_name_and_an_error_frees_it(device: Device) -> None:
    name = "größe \\n \"quoted\" 'it''s' $(id) %s"
    with contextlib.suppress(ZeroDivisionError), acquire(device, name):
        holder = current_holder(device)
        assert holder is not None
        assert holder.holder == name
        with pytest.raises(DeviceBusy, match=rf"^{device.name}: is held by größe .* \(process \d+ on "):
            acquire(device, "second farm")
        _ = 1 / 0
    assert current_holder(device) is None
    # and a released device can be held again
    with acquire(device, "second farm") as lease:
        lease.check()
        assert lease.took_over is None


@pytest.mark.parametrize("script", ["lease_acquire", "job_kill_leftovers"])
def test_a_process_that_is_ended_while_it_acquires_a_device_frees_it(
    device: Device, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    def interrupted(on: Device, name: str, *words: str) -> str:
        printed = run_script(on, name, *words)
        if name == script:
            raise KeyboardInterrupt
        return printed

    monkeypatch.setattr("devices.ondevice.lease.run_script", interrupted)
    monkeypatch.setattr("devices.ondevice.job.run_script", interrupted)
    with pytest.raises(KeyboardInterrupt):
        acquire(device, "sweep-1", ttl_s=600)
    assert current_holder(device) is None


def of_another_boot(path: Path) -> str:
    token, _, expiry = path.name.split(".")
    return f"{token}.11111111-2222-3333-4444-555555555555.{expiry}"


@pytest.mark.fault
@pytest.mark.parametrize(
    "new_name", [of_another_boot, lambda path: f"{path.stem}.0"], ids=["of another boot", "expired"]
)
def test_a_lease_that_expired_or_is_of_another_boot_is_taken_over_and_its_holder_learns_it(
    device: Device, new_name: Callable[[Path], str]
) -> None:
    late = acquire(device, "first farm", ttl_s=600)
    path = held_file(device)
    path.rename(path.with_name(new_name(path)))
    with acquire(device, "second farm") as lease:
        assert str(lease.took_over).startswith("first farm (process ")
        for call in (late.check, late.renew):
            with pytest.raises(LeaseLost, match="our lease was taken over; the device is held by second farm"):
                call()
        late.release()
        lease.check()


def test_a_lease_lasts_as_long_as_acquired_and_is_renewed_for_as_long_again_or_longer(device: Device) -> None:
    assert lease_ttl_s(7200) >= 7200 + 60
    with acquire(device, "this farm", ttl_s=1):
        now_s = expiry_s(device) - 1
    with acquire(device, "this farm", ttl_s=1000.5) as lease:
        assert 1001 <= expiry_s(device) - now_s < 1500
        lease.renew(2000.5)
        assert 2001 <= expiry_s(device) - now_s < 2500
    # and one that expired and was not taken over is still ours
    with acquire(device, "this farm", ttl_s=1000) as lease:
        expire(device)
        lease.renew()
        assert 1000 <= expiry_s(device) - now_s < 1500
        with pytest.raises(DeviceBusy):
            acquire(device, "second farm")


@pytest.mark.fault
def test_a_deleted_lease_is_not_reported_as_taken_over(device: Device, machine: Path) -> None:
    lease = acquire(device, "us", ttl_s=600)
    shutil.rmtree(machine)
    with pytest.raises(LeaseLost, match=r"^test-local: our lease is gone, and nobody else holds the device: its files"):
        lease.renew()


@pytest.mark.fault
def test_the_lease_of_a_killed_process_on_this_host_is_taken_over_at_once_and_its_job_ended(
    device: Device, alive: Callable[[int], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a holder that lives, with a job
    with start(HOLD, device) as process:
        group = int(wait_for_line(Path(device.root) / "session" / "job" / "pid", "the job to start").split()[0])
        with pytest.raises(DeviceBusy, match="is held by the other farm"):
            acquire(device, "this farm")
        holder = current_holder(device)
        assert holder is not None
        assert not has_ended(holder)
        # when it dies by kill -9
        process.kill()
        process.wait()
    assert alive(group)
    # then it is known to have ended, and those of other hosts and boots are not
    assert has_ended(holder)
    assert not has_ended(replace(holder, pid=os.getpid()))
    assert not has_ended(replace(holder, host="elsewhere"))
    assert not has_ended(replace(holder, place="another boot"))
    # and its device is taken over, without its job
    with acquire(device, "this farm") as lease:
        assert lease.took_over == holder
        wait_for(lambda: not alive(group), "its job to end")
    # and a process that this user may not see has not ended
    monkeypatch.setattr(os, "kill", raise_permission_error)
    assert not has_ended(holder)


@pytest.mark.fault
def test_of_processes_that_race_for_the_lease_of_a_dead_holder_exactly_one_gets_it(device: Device) -> None:
    # given a holder that expired, and three processes that want its device at the same moment
    acquire(device, "late", ttl_s=600)
    expire(device)
    with contextlib.ExitStack() as stack:
        racers = [stack.enter_context(start(RACE, device)) for _ in range(3)]
        streams = [(racer.stdin, racer.stdout) for racer in racers if racer.stdin and racer.stdout]
        assert [out.readline() for _, out in streams] == ["ready\n"] * 3
        for go, _ in streams:
            go.write("\n")
            go.flush()
        # then one holds it until its standard input ends
        assert sorted(out.readline() for _, out in streams) == ["busy\n", "busy\n", "won\n"]


def raise_permission_error(_pid: int, _signal: int) -> None:
    raise PermissionError


@pytest.mark.fault
def test_a_lease_that_was_abandoned_while_it_was_made_frees_itself(device: Device) -> None:
    # given a process killed between making the folder and writing its name into it, two minutes ago
    held = Path(device.machine_folder) / "lease-1"
    held.mkdir(parents=True)
    with pytest.raises(DeviceBusy):
        acquire(device, "this farm")
    os.utime(held, (time.time() - 120,) * 2)
    acquire(device, "this farm").release()


def test_a_lease_that_could_not_be_released_is_free_for_this_process_at_once(
    device: Device, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # given a device that is lost when its lease is released
    lease = acquire(device, "this farm", ttl_s=600)

    def lose(*_: object) -> str:
        raise DeviceLost("local", "is gone", "look for it")

    with monkeypatch.context() as patch:
        patch.setattr(leases, "run_script", lose)
        lease.release()
    assert "could not be released and will expire" in caplog.text
    # then this process need not wait until it expires
    with acquire(device, "this farm") as again:
        assert str(again.took_over).startswith("this farm (process ")


def test_a_release_removes_the_folders_of_all_collected_jobs(device: Device) -> None:
    folders = [Path(device.root) / f"a job's folder {number}" for number in range(2 * MAX_FOLDERS + 1)]
    kept = Path(device.root) / "kept"
    for folder in (*folders, kept):
        folder.mkdir(parents=True)
    with acquire(device, "this farm"):
        device.collected = [str(folder) for folder in folders]
    assert list(Path(device.root).iterdir()) == [kept]
    assert device.collected == []
