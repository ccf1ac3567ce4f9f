"""Exclusion holds wherever a script or a process is paused, and however long: no two holders, no valid lease lost."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from devices.device import Device
from devices.errors import DeviceBusy, DeviceLost, LeaseLost
from devices.local import LocalDevice
from devices.ondevice import lease as leases
from devices.ondevice.lease import Lease, acquire, current_holder
from devices.shell import call, run_script, script_text
from tests.fixtures.jobs import in_background
from tests.fixtures.leases import BOOT, held_file, now_s
from tests.fixtures.waiting import ENOUGH_S, wait_for

pytestmark = pytest.mark.fault

# A lease that has expired before its holder is told of it, and one that has when it is renewed to EXPIRED_S.
EXPIRED_S, LONG_EXPIRED_S = -1.0, -9.0

# The first call whose words match pauses: before the program, or after it.
_WRAPPER = """#!/bin/sh
PATH=${{PATH#*:}}
case "$*" in
{pattern})
    if mkdir '{folder}/claimed' 2>/dev/null; then
        {first}
        : >'{folder}/reached'
        until [ -e '{folder}/resumed' ]; do sleep 0.01; done
        {then}
    fi ;;
esac
exec {program} "$@"
"""


class ScriptPause:
    """Pauses the next script that runs `program` with words that match `pattern` of the shell, `after` it or before."""

    def __init__(
        self, folder: Path, patch: pytest.MonkeyPatch, program: str, pattern: str = "*lease-*", *, after: bool = False
    ) -> None:
        self._folder = folder / f"pause of {program}"
        programs = self._folder / "programs"
        programs.mkdir(parents=True)
        call = f'{program} "$@"; status=$?'
        text = _WRAPPER.format(
            folder=self._folder,
            program=program,
            pattern=pattern,
            first=call if after else ":",
            then='exit "$status"' if after else ":",
        )
        (programs / program).write_text(text, encoding="utf-8")
        (programs / program).chmod(0o755)
        patch.setenv("PATH", f"{programs}:{os.environ['PATH']}")

    def wait(self) -> None:
        wait_for((self._folder / "reached").exists, "the script to pause")

    def resume(self) -> None:
        (self._folder / "resumed").touch()


@pytest.fixture
def others(local_device: Device) -> tuple[Device, Device]:
    """Two more entries of this process's inventory for the same machine."""
    return LocalDevice("second", local_device.root), LocalDevice("third", local_device.root)


@pytest.fixture
def pause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., ScriptPause]:
    """Pauses the next script at a program that it runs."""
    return lambda program, **options: ScriptPause(tmp_path, monkeypatch, program, **options)


def acquire_after(first: Device, second: Device) -> Lease:
    """Let a device take over and release the machine, so that the next one's lease has the number of the lost one."""
    acquire(first, "in between").release()
    return acquire(second, "next holder", ttl_s=600)


def test_a_second_device_of_a_process_is_refused_before_the_first_one_has_read_its_answer(
    local_device: Device, others: tuple[Device, Device], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(device: Device, script: str, *words: str) -> str:
        printed = run_script(device, script, *words)
        if device is local_device and script == "lease_acquire":
            with pytest.raises(DeviceBusy, match="is held by first"):
                acquire(others[0], "second")
        return printed

    monkeypatch.setattr(leases, "run_script", ask)
    with acquire(local_device, "first") as lease:
        lease.check()


def test_a_process_that_waited_and_lost_the_answer_gets_the_device_with_the_next(
    local_device: Device, others: tuple[Device, Device], monkeypatch: pytest.MonkeyPatch
) -> None:
    reported, losses = [], [DeviceLost("second", "closed the connection")]

    def run_or_lose(device: Device, script: str, *words: str) -> str:
        printed = run_script(device, script, *words)
        if losses and printed.startswith("won") and device is others[0]:
            raise losses.pop()
        return printed

    holder = acquire(local_device, "holder", ttl_s=600)

    def tell(cause: str) -> None:
        reported.append(cause)
        holder.release()

    monkeypatch.setattr(leases, "run_script", run_or_lose)
    with acquire(others[0], "waits", ttl_s=600, wait_s=ENOUGH_S, on_wait=tell) as lease:
        lease.renew()
        with pytest.raises(DeviceBusy):
            acquire(local_device, "holder again")
    assert (len(reported), losses, current_holder(local_device)) == (1, [], None)


def test_a_winner_that_was_paused_removes_no_newer_lease(
    local_device: Device, others: tuple[Device, Device], pause: Callable[..., ScriptPause]
) -> None:
    acquire(others[0], "expired", ttl_s=EXPIRED_S)
    at = pause("head")  # it prints whose lease it took over
    acquiring = in_background(lambda: acquire(local_device, "paused", ttl_s=EXPIRED_S))
    at.wait()
    with acquire(others[1], "next holder", ttl_s=600) as lease:
        at.resume()
        acquiring.result(ENOUGH_S)
        lease.check()


@pytest.mark.parametrize("renews", [True, False], ids=["renewal", "release"])
def test_a_renewal_or_release_that_was_paused_is_not_of_the_next_lease_of_the_same_number(
    local_device: Device, others: tuple[Device, Device], pause: Callable[..., ScriptPause], renews: bool
) -> None:
    late = acquire(local_device, "paused", ttl_s=LONG_EXPIRED_S if renews else EXPIRED_S)
    at = pause("mv", after=True) if renews else pause("rm")
    call = in_background(lambda: late.renew(EXPIRED_S) if renews else late.release())
    at.wait()
    with acquire_after(*others) as lease:
        at.resume()
        assert isinstance(call.exception(ENOUGH_S), LeaseLost if renews else type(None))
        lease.check()


def test_a_lease_that_is_completed_in_the_next_lease_of_the_same_number_does_not_count(
    local_device: Device, others: tuple[Device, Device], machine: Path, pause: Callable[..., ScriptPause]
) -> None:
    acquire(local_device, "this farm").release()
    at = pause("mkdir", after=True)
    acquiring = in_background(lambda: acquire(local_device, "paused", ttl_s=600))
    at.wait()
    os.utime(machine / "lease-1", (time.time() - 120, time.time() - 120))
    with acquire_after(*others) as lease:
        at.resume()
        assert isinstance(acquiring.exception(ENOUGH_S), DeviceBusy)
        lease.check()


def test_a_valid_lease_does_not_give_way_to_one_that_is_being_made(local_device: Device, machine: Path) -> None:
    with acquire(local_device, "holder", ttl_s=600) as lease:
        # given the folder of another lease, without and with the lease in it
        (machine / "lease-9").mkdir()
        lease.renew()
        boot = BOOT.read_text(encoding="utf-8").strip()
        (machine / f"lease-9/token.{boot}.{now_s() + 60}").write_text("{}", encoding="utf-8")
        lease.renew()
        lease.check()


def test_leases_of_several_processes_that_have_ended_are_taken_over(local_device: Device, machine: Path) -> None:
    # given two leases that have not expired, of processes that have ended
    acquire(local_device, "killed", ttl_s=600)
    first = held_file(local_device)
    first.write_text(first.read_text("utf-8").replace('"started": "', '"started": "9'), encoding="utf-8")
    (machine / "lease-2").mkdir()
    (machine / "lease-2" / first.name.replace(first.name[:32], "f" * 32)).write_bytes(first.read_bytes())
    # then both are passed over, and removed
    with acquire(local_device, "this farm"):
        assert held_file(local_device).parent.name == "lease-3"


def in_script(device: Device, text: str) -> str:
    """Run lines of shell after those that the scripts of a lease share."""
    script = script_text("lease_common") + 'start_lease "$1" ""\n' + text
    return call(device, ["sh", "-c", script, "sh", device.machine_folder])


def test_a_lease_that_appears_while_a_script_looks_how_old_its_folder_is_counts(local_device: Device) -> None:
    appears = 'find() { : >"lease-1/token.$boot.$((now + 60))"; echo lease-1; }; mkdir lease-1; valid 1 && echo valid'
    assert in_script(local_device, appears) == "valid\n"
    # and a folder without a lease in it does not count when it is old
    assert in_script(local_device, "find() { echo lease-2; }; mkdir lease-2; valid 2 || echo free") == "free\n"
