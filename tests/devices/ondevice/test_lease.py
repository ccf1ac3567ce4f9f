"""Leases: one holder at a time, over processes that race, die and come late."""

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from devices.device import Device
from devices.errors import DeviceBusy, LeaseLost
from devices.ondevice.lease import acquire, current_holder
from devices.shell import run_script
from tests.fixtures.jobs import in_background
from tests.fixtures.leases import expire, held_file
from tests.fixtures.paths import ROOT
from tests.fixtures.waiting import ENOUGH_S, SCALE, wait_for, wait_for_line

HOLD = """
import sys, time
from devices.ondevice.lease import acquire
from devices.local import LocalDevice
lease = acquire(LocalDevice("local", sys.argv[1]), "the other farm", ttl_s=600)
print("held", flush=True)
time.sleep(60)
"""

# Counts up and down in a file inside the lease, so that two holders at once would be seen.
RACE = """
import sys
from pathlib import Path
from devices.ondevice.lease import acquire
from devices.local import LocalDevice
device, inside = LocalDevice("local", sys.argv[1]), Path(sys.argv[1], "inside")
for _ in range(int(sys.argv[2])):
    with acquire(device, "racer", ttl_s=600, wait_s=600):
        inside.touch(exist_ok=False)
        inside.unlink()
"""


def start(script: str, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def held_by_another_process(device: Device) -> subprocess.Popen[bytes]:
    process = start(HOLD, device.root)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    return process


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def test_a_device_has_one_holder_at_a_time(device: Device) -> None:
    with acquire(device, "first farm"):
        with pytest.raises(DeviceBusy, match=rf"^{device.name}: is held by first farm \(process \d+ on "):
            acquire(device, "second farm")

        assert str(current_holder(device)).startswith("first farm (process ")

    assert current_holder(device) is None
    # and a released device can be held again
    with acquire(device, "second farm") as lease:
        lease.check()
        assert lease.took_over is None


def test_an_error_in_the_middle_frees_the_device(device: Device) -> None:
    with pytest.raises(ZeroDivisionError), acquire(device, "first farm"):
        _ = 1 / 0

    assert current_holder(device) is None


def test_a_process_that_is_ended_while_it_acquires_a_device_frees_it(
    local_device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a process that is told to end just after the device became its own
    def ended_after(device: Device, script: str, *words: str) -> str:
        printed = run_script(device, script, *words)
        if script == "lease_acquire":
            raise KeyboardInterrupt
        return printed

    monkeypatch.setattr("devices.ondevice.lease.run_script", ended_after)
    with pytest.raises(KeyboardInterrupt):
        acquire(local_device, "sweep-1")
    # then nobody holds it
    assert current_holder(local_device) is None


def test_holders_may_be_named_in_any_way(device: Device) -> None:
    name = "größe \\n \"quoted\" 'it''s' $(id) %s"

    with acquire(device, name):
        holder = current_holder(device)

    assert holder is not None
    assert holder.holder == name


@pytest.mark.fault
def test_an_expired_lease_is_taken_over_and_its_holder_learns_it(device: Device) -> None:
    late = acquire(device, "first farm")
    expire(device)

    with acquire(device, "second farm") as lease:
        assert str(lease.took_over).startswith("first farm (process ")
        for call in (late.check, late.renew):
            with pytest.raises(LeaseLost, match="our lease was taken over; the device is held by second farm"):
                call()
        late.release()
        lease.check()


def test_an_expired_lease_that_was_not_taken_over_is_still_ours(device: Device) -> None:
    with acquire(device, "first farm") as lease:
        expire(device)

        lease.renew()

        with pytest.raises(DeviceBusy):
            acquire(device, "second farm")


@pytest.mark.fault
def test_a_deleted_lease_is_not_reported_as_taken_over(local_device: Device, machine: Path) -> None:
    lease = acquire(local_device, "us", ttl_s=600)
    shutil.rmtree(machine)
    with pytest.raises(LeaseLost, match=r"^test-local: our lease is gone, and nobody else holds the device: its files"):
        lease.renew()


@pytest.mark.fault
def test_a_lease_of_another_boot_of_the_device_is_taken_over(device: Device) -> None:
    old = acquire(device, "first farm", ttl_s=600)
    name = held_file(device)
    token, _, expiry = name.name.split(".")
    name.rename(name.with_name(f"{token}.11111111-2222-3333-4444-555555555555.{expiry}"))

    with acquire(device, "second farm") as lease:
        assert lease.took_over is not None
        with pytest.raises(LeaseLost):
            old.check()


@pytest.mark.fault
def test_the_lease_of_a_killed_process_on_this_host_is_taken_over_at_once(local_device: Device) -> None:
    # Given a holder that lives, then dies by kill -9
    other = held_by_another_process(local_device)
    with pytest.raises(DeviceBusy, match="is held by the other farm"):
        acquire(local_device, "this farm")
    end(other)
    begun = time.monotonic()

    with acquire(local_device, "this farm") as lease:
        assert str(lease.took_over).startswith("the other farm (process ")

    assert time.monotonic() - begun < 2 * SCALE


@pytest.mark.fault
def test_a_taken_over_device_is_cleaned_of_running_jobs(local_device: Device, alive: Callable[[int], bool]) -> None:
    # Given a farm killed with -9 in the middle of a job
    script = HOLD.replace(
        "time.sleep(60)",
        'from devices.ondevice.job import Job, run_job; run_job(lease.device, Job(sys.argv[2], ["sleep", "60"], 60))',
    )
    folder = Path(local_device.root) / "session"
    other = start(script, local_device.root, str(folder))
    group = int(wait_for_line(folder / "job" / "pid", "the job to start").split()[0])
    end(other)
    assert alive(group)

    with acquire(local_device, "this farm"):
        assert not alive(group)


@pytest.mark.fault
def test_a_lease_that_was_abandoned_while_it_was_made_frees_itself(local_device: Device) -> None:
    # Given a process killed between making the folder and writing its name into it, two minutes ago
    held = Path(local_device.machine_folder) / "lease-1"
    held.mkdir(parents=True)
    with pytest.raises(DeviceBusy):
        acquire(local_device, "this farm")
    subprocess.run(["touch", "-d", "2 minutes ago", str(held)], check=True)

    acquire(local_device, "this farm").release()


@pytest.mark.fault
def test_waiting_gets_the_device_as_soon_as_it_is_free(local_device: Device, caplog: pytest.LogCaptureFixture) -> None:
    # Given a holder that is killed when this process has asked for the device and been refused
    other = held_by_another_process(local_device)

    def end_holder() -> None:
        wait_for(lambda: "is held by the other farm" in caplog.text, "the device to be requested")
        end(other)

    ending = in_background(end_holder)
    with acquire(local_device, "this farm", wait_s=ENOUGH_S) as lease:
        assert lease.took_over is not None
    ending.result()


@pytest.mark.thorough
def test_of_processes_that_race_exactly_one_holds_the_device(local_device: Device) -> None:
    Path(local_device.root).mkdir()
    racers = [start(RACE, local_device.root, "3") for _ in range(3)]

    assert [racer.wait(120 * SCALE) for racer in racers] == [0, 0, 0]
    for racer in racers:
        end(racer)


@pytest.mark.thorough
@pytest.mark.fault
def test_of_processes_that_race_for_a_dead_holders_lease_exactly_one_gets_it(local_device: Device) -> None:
    # Given a dead holder and three processes that all find it dead at the same moment, several times over
    script = """
import sys, time
from pathlib import Path
from devices.errors import DeviceBusy
from devices.ondevice.lease import acquire
from devices.local import LocalDevice
root = Path(sys.argv[1])
while not (root / "go").exists():
    time.sleep(0.001)
try:
    lease = acquire(LocalDevice("local", str(root)), "racer", ttl_s=600)
    print("won", flush=True)
    sys.stdin.read()
except DeviceBusy:
    print("busy", flush=True)
"""
    Path(local_device.root).mkdir()
    for _ in range(3):
        (Path(local_device.root) / "go").unlink(missing_ok=True)
        end(held_by_another_process(local_device))
        racers = [start(script, local_device.root) for _ in range(3)]
        (Path(local_device.root) / "go").touch()
        said = sorted(racer.stdout.readline() for racer in racers if racer.stdout)
        for racer in racers:
            racer.communicate()
        assert said == [b"busy\n", b"busy\n", b"won\n"]
