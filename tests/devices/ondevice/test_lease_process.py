"""Leases on this machine, within one process: whose they are, how long they last and what they leave behind."""

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from devices.device import Device
from devices.errors import DeviceBusy, DeviceLost
from devices.ondevice import lease as leases
from devices.ondevice.job import MAX_FOLDERS
from devices.ondevice.lease import Holder, acquire, current_holder, has_ended, lease_ttl_s
from tests.fixtures.leases import expire, held_file


def expiry_s(device: Device) -> int:
    """Return when the lease on the device expires, in seconds of its clock."""
    return int(held_file(device).suffix[1:])


def ours(device: Device) -> Holder:
    with acquire(device, "this farm"):
        holder = current_holder(device)
    assert holder is not None
    return holder


def test_a_lease_lasts_as_long_as_acquired_and_is_renewed_for_as_long_again_or_longer(local_device: Device) -> None:
    with acquire(local_device, "this farm", ttl_s=1):
        now_s = expiry_s(local_device) - 1
    with acquire(local_device, "this farm", ttl_s=1000.5) as lease:
        assert 1001 <= expiry_s(local_device) - now_s < 1500
        lease.renew(2000.5)
        assert 2001 <= expiry_s(local_device) - now_s < 2500
    # and a lease that is about to expire lasts as long again
    with acquire(local_device, "this farm", ttl_s=1000) as lease:
        expire(local_device)
        lease.renew()
        assert 1000 <= expiry_s(local_device) - now_s < 1500


@pytest.mark.parametrize("session_s", [0, 60, 7200])
def test_a_lease_outlasts_a_session_and_the_transfers_around_it(session_s: float) -> None:
    assert lease_ttl_s(session_s) >= session_s + 60


def test_a_holder_is_one_line_also_with_a_long_and_strange_name() -> None:
    holder = Holder("first\nfarm" + "x" * 500, "host", 7, "2026-01-02T03:04:05+00:00", "boot", "start")
    shown = str(holder)
    assert shown.startswith("first farm")
    assert shown.endswith(" (process 7 on host, since 2026-01-02T03:04:05+00:00)")
    assert "\n" not in shown
    assert len(shown) < 300


def test_a_process_has_ended_if_it_ran_here_and_is_no_more(local_device: Device) -> None:
    # given holders: this process, one that lives, one of its id before, and one that has ended
    holder = ours(local_device)
    living = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    place, started = leases._where(living.pid)
    other = replace(holder, pid=living.pid, place=place, started=started)
    try:
        assert place == holder.place
        assert not has_ended(holder)
        assert not has_ended(other)
        assert has_ended(replace(other, started="earlier"))
    finally:
        living.communicate(b"\n")
    assert has_ended(other)
    # then nothing is known about those of another host or boot
    assert not has_ended(replace(other, host="elsewhere"))
    assert not has_ended(replace(other, place="another boot"))


def test_a_process_of_another_user_that_this_one_may_not_see_has_not_ended(
    local_device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a process id that shows no start, as another user's with hidden processes
    unseen = replace(ours(local_device), pid=2**22 - 3, started="then")
    assert has_ended(unseen)

    def refuse(_pid: int, _signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert not has_ended(unseen)


def test_a_lease_that_could_not_be_released_is_free_for_this_process_at_once(
    local_device: Device, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # given a device that is lost when its lease is released
    lease = acquire(local_device, "this farm", ttl_s=600)
    with pytest.raises(DeviceBusy, match="held by this farm"):
        acquire(local_device, "this farm")

    def lose(*_: object) -> str:
        raise DeviceLost("local", "is gone", "look for it")

    with monkeypatch.context() as patch:
        patch.setattr(leases, "run_script", lose)
        lease.release()
    assert "could not be released and will expire" in caplog.text
    # then this process need not wait until it expires
    with acquire(local_device, "this farm") as again:
        assert str(again.took_over).startswith("this farm (process ")


def test_a_release_removes_the_folders_of_collected_jobs_once(local_device: Device) -> None:
    folders = [Path(local_device.root) / f"a job's folder {number}" for number in range(2 * MAX_FOLDERS + 1)]
    for folder in folders:
        folder.mkdir(parents=True)
    kept = Path(local_device.root) / "kept"
    kept.mkdir()
    with acquire(local_device, "this farm"):
        local_device.collected = [str(folder) for folder in folders]
    assert list(Path(local_device.root).iterdir()) == [kept]
    assert local_device.collected == []


def test_a_holder_that_cannot_be_read_is_another_process(local_device: Device) -> None:
    with acquire(local_device, "this farm"):
        held_file(local_device).write_text("{}")
        assert str(current_holder(local_device)) == "another process"
        with pytest.raises(DeviceBusy, match="is held by another process"):
            acquire(local_device, "second farm")


def test_a_device_whose_jobs_cannot_be_ended_is_not_kept(local_device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_device: Device) -> list[int]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(leases, "kill_leftovers", fail)
        with pytest.raises(KeyboardInterrupt):
            acquire(local_device, "this farm", ttl_s=600)
    assert current_holder(local_device) is None


def test_a_wait_is_reported_once_and_ends_when_its_time_is_over(
    local_device: Device, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # given a clock that only sleeping moves, and a held device
    now, slept = [0.0], []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    lease = acquire(local_device, "first farm")
    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(leases, "run_script", lambda *_: "held")
    # when another farm waits for a while
    with pytest.raises(DeviceBusy):
        acquire(local_device, "second farm", wait_s=19)
    # then it looked less and less often, because that disturbs the holder, and waited no longer than it was told
    assert slept == [0.5, 1, 2, 4, 5, 5, 1.5]
    assert caplog.text.count("is held by another process; waiting") == 1
    monkeypatch.undo()
    lease.release()
