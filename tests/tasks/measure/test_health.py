"""Health: strikes, quarantine with an end, and people's decisions."""

import multiprocessing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tasks.measure.clock import clock_ahead_s
from tasks.measure.health import QUARANTINE, Health, HealthError, Registry
from tests.fixtures.clock import Clock
from tests.fixtures.waiting import ENOUGH_S


@pytest.fixture
def clock() -> Clock:
    return Clock(datetime(2026, 11, 20, 3, 0, tzinfo=UTC))


@pytest.fixture
def registry(tmp_path: Path, clock: Clock) -> Registry:
    return Registry(tmp_path / "devices", lambda: clock().astimezone(UTC))


def test_the_third_strike_in_a_row_quarantines(registry: Registry) -> None:
    # given a device without an entry, which is good
    assert registry.health("phone") == Health()
    # when it fails, succeeds, and fails again and again
    registry.strike("phone", "none")
    registry.succeed("phone")
    for count, reason in enumerate(("one", "two"), 1):
        registry.strike("phone", reason)
        health = registry.health("phone")
        # then it is suspect, and its strikes since the success count
        assert (health.state, health.reason, health.strikes, health.usable) == ("suspect", reason, count, True)
    registry.strike("phone", "three")
    health = registry.health("phone")
    assert not health.usable
    assert str(health) == "quarantined until 2026-11-20T15:00:00+00:00: three"


def test_a_quarantine_ends_by_itself_and_the_next_strike_begins_another(registry: Registry, clock: Clock) -> None:
    for _ in range(3):
        registry.strike("phone", "lost")
    clock.advance(minutes=QUARANTINE.total_seconds() / 60)
    assert registry.health("phone").state == "suspect"
    registry.strike("phone", "lost again")
    assert registry.health("phone").state == "quarantined"
    # and a success after it makes the device good
    clock.advance(minutes=QUARANTINE.total_seconds() / 60)
    registry.succeed("phone")
    assert registry.health("phone") == Health()


def test_sweeps_change_nothing_about_what_people_decided(registry: Registry) -> None:
    for decide in (registry.quarantine, registry.retire):
        decided = decide("phone", "battery swollen")
        registry.succeed("phone")
        registry.strike("phone", "lost")
        assert registry.health("phone") == decided


def test_a_retired_device_is_not_quarantined_and_a_release_forgets_everything(registry: Registry) -> None:
    registry.retire("phone", "given away")
    with pytest.raises(HealthError, match="phone: the device is retired; release it first"):
        registry.quarantine("phone", "hot")
    registry.release("phone")
    assert registry.health("phone") == Health()


def test_strikes_of_several_processes_at_once_are_all_counted(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_strike, args=(tmp_path,)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert Registry(tmp_path).health("phone").strikes == 2


def _strike(folder: Path) -> None:
    Registry(folder).strike("phone", "lost")


def test_a_damaged_file_is_reported_with_the_way_to_reset_it_and_reset_by_a_release(tmp_path: Path) -> None:
    (tmp_path / "phone.json").write_bytes(b"{")
    for use in (Registry(tmp_path).health, Registry(tmp_path).succeed):
        with pytest.raises(HealthError, match=f"^{tmp_path}/phone.json: the file is damaged .*; remove it to reset"):
            use("phone")
    assert Registry(tmp_path).release("phone") == Health()
    assert Registry(tmp_path).health("phone") == Health()


def test_a_quarantine_in_a_lab_whose_clock_is_ahead_ends_by_the_farm_s_clock(tmp_path: Path) -> None:
    # given a lab that knows that its clock is an hour ahead of the farm's
    token = clock_ahead_s.set(3600.0)
    try:
        quarantined = Registry(tmp_path).quarantine("phone", "hot")
    finally:
        clock_ahead_s.reset(token)
    # then its end is twelve hours from now by the farm's clock, which shows an hour less
    assert quarantined.until is not None
    left = datetime.fromisoformat(quarantined.until) - datetime.now(UTC)
    assert QUARANTINE - timedelta(hours=1, seconds=ENOUGH_S) < left <= QUARANTINE - timedelta(hours=1)
