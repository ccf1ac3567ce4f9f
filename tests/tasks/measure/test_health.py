"""Health: strikes, quarantine with an end, and people's decisions."""

import multiprocessing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tasks.measure.health import QUARANTINE, Health, HealthError, Registry


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def registry(tmp_path: Path, clock: Clock) -> Registry:
    return Registry(tmp_path / "devices", clock)


def test_a_device_without_an_entry_is_good(registry: Registry) -> None:
    assert registry.health("phone") == Health()
    assert registry.health("phone").usable


def test_a_strike_makes_a_device_suspect_and_says_why(registry: Registry) -> None:
    registry.strike("phone", "lost during a push")

    health = registry.health("phone")
    assert (health.state, health.reason, health.strikes) == ("suspect", "lost during a push", 1)
    assert health.usable


def test_the_third_strike_in_a_row_quarantines(registry: Registry, clock: Clock) -> None:
    for reason in ("one", "two", "three"):
        registry.strike("phone", reason)

    health = registry.health("phone")
    assert not health.usable
    assert str(health) == "quarantined until 2026-11-20T15:00:00+00:00: three"


def test_a_success_resets_the_count_of_strikes(registry: Registry) -> None:
    registry.strike("phone", "one")
    registry.strike("phone", "two")
    registry.succeed("phone")

    registry.strike("phone", "three")

    assert registry.health("phone").strikes == 1


def test_a_quarantine_ends_by_itself_and_the_next_strike_begins_another(registry: Registry, clock: Clock) -> None:
    for _ in range(3):
        registry.strike("phone", "lost")
    clock.now += QUARANTINE

    assert registry.health("phone").state == "suspect"

    registry.strike("phone", "lost again")
    assert registry.health("phone").state == "quarantined"


def test_a_success_after_a_quarantine_makes_the_device_good(registry: Registry, clock: Clock) -> None:
    registry.quarantine("phone", "cracked screen", timedelta(hours=1))
    clock.now += timedelta(hours=2)

    registry.succeed("phone")

    assert registry.health("phone") == Health()


@pytest.mark.parametrize("state", ["quarantined", "retired"])
def test_sweeps_change_nothing_about_what_people_decided(registry: Registry, state: str) -> None:
    decide = registry.quarantine if state == "quarantined" else registry.retire
    decided = decide("phone", "battery swollen")

    registry.succeed("phone")
    registry.strike("phone", "lost")

    assert registry.health("phone") == decided


def test_releasing_forgets_everything(registry: Registry) -> None:
    registry.retire("phone", "given away")

    registry.release("phone")

    assert registry.health("phone") == Health()


def test_a_retired_device_is_not_quarantined(registry: Registry) -> None:
    registry.retire("phone", "given away")

    with pytest.raises(HealthError, match="phone: the device is retired; release it first"):
        registry.quarantine("phone", "hot")


def test_another_process_sees_the_same(tmp_path: Path, registry: Registry) -> None:
    registry.strike("phone", "lost")

    assert Registry(tmp_path / "devices").health("phone") == registry.health("phone")


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


@pytest.mark.fault(
    stage="probe",
    done="the health file of a device is truncated, nested 100,000 deep, binary, or has values of other types",
    holds="one sentence names the file and how to reset it",
)
@pytest.mark.parametrize(
    "content",
    [
        b'{"state": ',
        b"",
        b"[" * 100_000,
        b"\xff\xfe\x00",
        b"[]",
        b'{"state": "fine"}',
        b'{"state": "suspect", "strikes": "two"}',
        b'{"state": "quarantined", "until": "soon"}',
        b'{"state": "quarantined", "until": 5}',
        b'{"state": "good", "reason": "\\ud800"}',
        b'{"state": "good", "colour": "red"}',
    ],
)
def test_a_damaged_file_is_reported_in_one_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "phone.json").write_bytes(content)

    for use in (Registry(tmp_path).health, Registry(tmp_path).succeed):
        with pytest.raises(HealthError) as damaged:
            use("phone")
        sentence = str(damaged.value)
        assert sentence.startswith(f"{tmp_path}/phone.json: the file is damaged (")
        assert sentence.endswith("); remove it to reset the health of phone")
        assert "\n" not in sentence
        assert len(sentence) < 500


def test_a_damaged_file_is_reset_by_a_release(tmp_path: Path) -> None:
    (tmp_path / "phone.json").write_bytes(b"{")

    assert Registry(tmp_path).release("phone") == Health()
    assert Registry(tmp_path).health("phone") == Health()


def test_a_file_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    (tmp_path / "phone.json").mkdir()

    with pytest.raises(HealthError, match=r"phone.json: cannot be read \(Is a directory\)"):
        Registry(tmp_path).health("phone")


def test_a_name_that_is_a_path_is_refused(registry: Registry) -> None:
    with pytest.raises(HealthError, match="not a valid device name"):
        registry.strike("../phone", "lost")
