"""Who is next on a device: the highest priority, then who came first by the device's clock; not who was killed."""

import contextlib
import uuid
from concurrent.futures import Future
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from devices.device import Device
from devices.errors import DeviceBusy
from devices.local import LocalDevice
from devices.ondevice import lease as leases
from devices.ondevice.job import Job, run_job
from devices.ondevice.lease import acquire, current_holder, device_queue
from tests.fixtures.jobs import in_background
from tests.fixtures.leases import BOOT, held_file, now_s, put_waiter, waiters
from tests.fixtures.waiting import ENOUGH_S, SCALE, change_policy, wait_for


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    change_policy(monkeypatch, "LEASE", pause_s=0.02, max_pause_s=0.02)


def came_earlier(device: Device, name: str, seconds: int) -> None:
    """Let a process that waits have come so much earlier."""

    def is_moved() -> bool:
        with contextlib.suppress(FileNotFoundError):  # it was refreshed in between
            for path in waiters(device):
                if f'"{name}"' in path.read_text(encoding="utf-8"):
                    priority, since, rest = path.name.split(".", 2)
                    path.rename(path.with_name(f"{priority}.{int(since) - seconds}.{rest}"))
                    return True
        return False

    wait_for(is_moved, f"{name} to wait")


def test_the_highest_priority_gets_the_device_first_then_who_came_first_by_the_devices_clock(
    local_device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    got: list[str] = []

    def use(name: str, priority: int) -> None:
        device = LocalDevice("the same", local_device.root)
        with acquire(device, name, priority=priority, wait_s=ENOUGH_S):
            got.append(name)

    def start(name: str, priority: int, seconds: int) -> "Future[None]":
        started = in_background(lambda: use(name, priority))
        came_earlier(local_device, name, seconds)
        return started

    # given a device in use, and sweeps that wait for it; the clock of the last one's host is years behind
    with acquire(local_device, "holder"):
        started = [start("first", 0, 90), start("idle", -1, 99), start("urgent", 10, 60), start("second", 0, 50)]
        monkeypatch.setattr(leases, "datetime", SimpleNamespace(now=lambda _: datetime(2020, 1, 2, tzinfo=UTC)))
        started.append(start("third", 0, 40))
        # then they are in this order
        order = [("urgent", 10), ("first", 0), ("second", 0), ("third", 0), ("idle", -1)]
        waiting = wait_for(lambda: found if len(found := device_queue(local_device)[1]) == 5 else [], "all of them")
        assert [(each.holder, each.priority) for each in waiting] == order
        assert waiting[3].since.startswith("2020")
    # and they get the device in it
    for each in started:
        each.result(ENOUGH_S)
    assert got == [name for name, _ in order]
    # and nothing is left
    assert device_queue(local_device) == (None, [])
    assert waiters(local_device) == []


def test_a_caller_that_does_not_wait_gives_way_to_who_waits_with_the_same_or_a_higher_priority(device: Device) -> None:
    waiting = put_waiter(device, priority=3)
    for priority in (2, 3):
        with pytest.raises(DeviceBusy):
            acquire(device, "this farm", priority=priority)
    with acquire(device, "this farm", priority=4):
        assert current_holder(device) is not None
    assert waiters(device) == [waiting]


NOT_WRITTEN = [
    "wait-0.1.{token}.11111111-2222-3333-4444-555555555555.{soon}",
    *(f"wait-0.1.{{token}}.{{boot}}.{expiry}" for expiry in ("{past}", "{late}", "99999999999999999999")),
    *(f"wait-{odd}.{{token}}.{{boot}}.{{soon}}" for odd in ("9x.1", "---9.1", "0.08", "$(id).1", "a[0].1")),
    "wait-0.1.{token}.{boot}",
    "wait-0.*.{boot}.{soon}",
]


@pytest.mark.fault
def test_expired_files_and_those_that_no_process_writes_delay_nobody(local_device: Device, machine: Path) -> None:
    machine.mkdir(parents=True)
    moments = {"past": now_s() - 1, "soon": now_s() + 20, "late": now_s() + 3600}
    for name in NOT_WRITTEN:
        (machine / name.format(token=uuid.uuid4().hex, boot=BOOT.read_text("utf-8").strip(), **moments)).write_text(
            "{}"
        )
    with acquire(local_device, "this farm") as lease:
        lease.renew()
        assert local_device.waiting_priority is None
        assert device_queue(local_device)[1] == []
        assert waiters(local_device) == []


def test_the_holder_learns_of_a_higher_priority_when_it_renews_and_when_a_job_ends(device: Device) -> None:
    with acquire(device, "holder", priority=5) as lease:
        assert not lease.is_outranked()
        # given sweeps of lower and of the same priority that wait
        for priority in (-9, 5):
            put_waiter(device, priority=priority)
        lease.renew()
        assert device.waiting_priority == 5
        assert not lease.is_outranked()
        # when one of a higher priority comes
        highest = put_waiter(device, priority=6)
        # then the next job or renewal tells
        run_job(device, Job(f"{device.root}/session", ["true"], ENOUGH_S))
        assert lease.is_outranked()
        highest.unlink()
        lease.renew()
        assert not lease.is_outranked()
        highest = put_waiter(device, priority=6)
        lease.check()
        assert lease.is_outranked()
    # and who gets the device next is not
    with acquire(device, "next", priority=7):
        assert device.waiting_priority is None


def test_a_waiter_gets_the_holder_and_its_place_in_the_queue_and_leaves_it_when_it_gives_up(
    local_device: Device,
) -> None:
    device = LocalDevice("the same", local_device.root)
    reported: list[str] = []
    with acquire(local_device, "holder"):
        first = put_waiter(local_device)

        def tell(cause: str) -> None:
            reported.append(f"{cause}: {len(waiters(device))}")
            # its file delays others for half a minute only if it is killed
            assert all(int(path.suffix[1:]) <= now_s() + 30 for path in waiters(device))
            first.unlink(missing_ok=True)

        with pytest.raises(DeviceBusy):
            acquire(device, "impatient", wait_s=0.3 * SCALE, on_wait=tell)
        assert waiters(device) == []
    # then it was told again when that changed
    assert all(each.startswith("is held by holder (process ") for each in reported)
    assert [each.partition(")")[2] for each in reported] == [", 1 before this sweep in the queue: 2", ": 1"]


@pytest.mark.fault
def test_a_caller_that_sees_a_dead_holder_frees_its_device_for_the_first_in_the_queue(local_device: Device) -> None:
    # given a lease of a process of this host that has ended, and one that waits and cannot know it
    acquire(local_device, "holder", ttl_s=600)
    record = held_file(local_device)
    record.write_text(record.read_text("utf-8").replace('"started": "', '"started": "9'), encoding="utf-8")
    put_waiter(local_device)
    # when another one looks that may know
    with pytest.raises(DeviceBusy):
        acquire(local_device, "this farm")
    # then the device is free for the first
    assert current_holder(local_device) is None
