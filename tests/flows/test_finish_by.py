"""A sweep with `finish_by`: what would not end in time is dropped, least valuable first, and measured by the next."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from devices.inventory import DeviceSpec
from devices.local import LocalDevice
from devices.ondevice.lease import acquire
from flows.device.job import DeviceTally
from flows.device.measure import measure_device
from flows.device.sessions import SessionQueue
from flows.server.states import state_data
from tasks.bundle.record import SessionRecord
from tasks.measure.prepare import Probe
from tasks.measure.session.measure import measure
from tests.fixtures.clock import Clock, set_clock
from tests.fixtures.plans import ended
from tests.fixtures.stand_in_farm import SWEEP, StandInFarm
from tests.fixtures.stand_in_job import stand_in_job
from tests.fixtures.waiting import ENOUGH_S

START = datetime(2026, 1, 2, 6, 30, tzinfo=UTC)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of the farm; it shows half past six, UTC."""
    return set_clock(monkeypatch, START)


@pytest.mark.thorough
def test_a_sweep_drops_what_would_not_end_in_time_and_the_next_start_measures_it(
    stand_in_farm: StandInFarm, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a sweep of a discarded session and four others of ten minutes each, half an hour before its end
    end = (START + timedelta(minutes=30)).astimezone()
    text = SWEEP.replace("sessions: 2", f'sessions: 4\nfinish_by: "{end:%H:%M}"')
    stand_in_farm.sweep_file.write_text(text, encoding="utf-8")

    def measure_for_ten_minutes(*positional: object, **named: object) -> SessionRecord:
        clock.advance(minutes=10)
        return measure(*positional, **named)  # type: ignore[arg-type]

    monkeypatch.setattr("flows.device.measure.measure", measure_for_ten_minutes)
    # when it is run
    first = stand_in_farm.sweep()
    # then two sessions ended before, the others are dropped and not failed, and the message and the report say so
    assert first.is_completed()
    dropped = f"3 dropped (would not have ended by {end:%H:%M})"
    assert state_data(first).message.startswith(f"sessions: 1 succeeded, 1 discarded, {dropped}; report: ")
    report = Path(state_data(first).message.rpartition("report: ")[2]).with_suffix(".md")
    assert f"Sessions: {dropped}; start the sweep again with `--night " in report.read_text(encoding="utf-8")
    counts = stand_in_farm.ask("SELECT status, count(*) FROM session GROUP BY 1 ORDER BY 1")
    assert counts == [("invalid", 1), ("succeeded", 1)]
    # when it is started again after that time, for the next one is tomorrow
    clock.advance(minutes=20)
    second = stand_in_farm.sweep()
    # then the dropped ones are measured, and the report is complete
    assert state_data(second).message.startswith("sessions: 3 succeeded, 2 already done; report: ")
    assert "Every planned session has a result." in report.read_text(encoding="utf-8")


def test_comparisons_for_noise_and_evidence_are_dropped_first_then_the_last_rounds(
    tmp_path: Path, clock: Clock
) -> None:
    # given a device with time for the discarded session and three rounds of four, ten minutes a session
    job = stand_in_job(tmp_path, variants=["sme2_on", "sme2_off"], modes=["timing", "profile"], noise_sessions=5)
    job = replace(job, finish_by=START + timedelta(minutes=71))
    tally = DeviceTally("here")
    sessions = SessionQueue(job, tally)
    # when its sessions are run
    run = []
    while session := sessions.next(lambda: None):
        run.append((session.repetition, session.cell.mode))
        clock.advance(minutes=10)
        sessions.end(session, ended(session, "succeeded"))
    sessions.drop_rest(START)
    # then those rounds of timing are measured in every cell
    assert run == [(-1, "timing"), *[(number, "timing") for number in (0, 0, 1, 1, 2, 2)]]
    # and what is left are the last round, the evidence and the comparison
    assert tally.dropped == 2 + 2 + 10


def test_a_device_that_is_in_use_until_then_fails_no_session(tmp_path: Path, server: str) -> None:
    # given a device that another farm holds
    job = replace(stand_in_job(tmp_path, lease_wait_s=ENOUGH_S), finish_by=datetime.now(UTC) + timedelta(seconds=1))
    with acquire(LocalDevice("here", str(tmp_path / "root")), "another farm"):
        # when a sweep waits for it that must have ended in a second, then its sessions are dropped
        tally = measure_device(job)
        assert (tally.dropped, tally.failed, tally.unusable, tally.is_bad) == (5, 0, None, False)
    # and after that time a device is not even opened
    gone = DeviceSpec(name="here", transport="ssh", address="127.0.0.1", port=9, user="nobody")
    tally = measure_device(replace(job, probe=Probe(gone)))
    assert (tally.dropped, tally.failed, tally.unusable) == (5, 0, None)
