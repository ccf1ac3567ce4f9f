"""Which session a device runs next while exports are still being made."""

from dataclasses import replace
from pathlib import Path

import pytest

from devices.ondevice.facts import Facts
from flows.device.job import DeviceJob, DeviceTally
from flows.device.sessions import SessionQueue
from flows.export_queue import ExportQueue
from tasks.export.exported import Export
from tasks.measure.plan import FIRST_SESSION, PlannedSession
from tasks.measure.prepare import ExportStatus
from tests.fixtures.plans import ended
from tests.fixtures.stand_in import write_export
from tests.fixtures.stand_in_job import stand_in_job

WITH_SME2 = Facts(sme=True, sme2=True)

LINEAR, CONV = ("linear", "fp32"), ("conv", "fp32")


@pytest.fixture
def exports(tmp_path: Path) -> dict[str, Export]:
    return {name: replace(write_export(tmp_path / f"export-{name}"), model=name) for name in ("linear", "conv")}


def a_job(folder: Path, live: ExportQueue) -> DeviceJob:
    job = stand_in_job(folder, models=["linear", "conv"], variants=["sme2_on", "sme2_off"])
    return replace(job, exports=live, probe=replace(job.probe, facts=WITH_SME2))


def test_a_model_that_comes_later_catches_up_its_rounds_alternately(tmp_path: Path, exports: dict[str, Export]) -> None:
    # given a sweep of two models of which one is exported
    live = ExportQueue([LINEAR, CONV])
    live.end(LINEAR, ExportStatus("ready", (exports["linear"],)))
    sessions = SessionQueue(a_job(tmp_path, live), DeviceTally("here"))
    order: list[PlannedSession] = []

    def run(count: int) -> None:
        for _ in range(count):
            session = sessions.next(never)
            assert session
            order.append(session)
            sessions.end(session, ended(session, "succeeded"))

    # when the other export comes after three of its sessions, the discarded one among them
    run(3)
    live.end(CONV, ExportStatus("ready", (exports["conv"],)))
    run(14)
    # then the other model first runs the rounds that it missed, and each group is in the order ABBA
    assert sessions.next(never) is None
    assert [each.cell.model for each in order[:3]] == ["linear"] * 3
    counting = [each for each in order if each.repetition >= 0]
    assert [each.repetition for each in counting[2:]] == [0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]
    for model in ("linear", "conv"):
        variants = [each.cell.variant for each in counting if each.cell.model == model]
        assert variants == ["sme2_on", "sme2_off", "sme2_off", "sme2_on"] * 2
    # and one session was discarded
    assert [each.repetition for each in order if each.repetition < 0] == [-1]


def test_only_without_a_ready_session_a_device_waits_and_its_lease_is_renewed_meanwhile(
    tmp_path: Path, exports: dict[str, Export]
) -> None:
    # given a sweep of two models of which none is exported
    live = ExportQueue([LINEAR, CONV])
    sessions = SessionQueue(a_job(tmp_path, live), DeviceTally("here"))
    assert sessions.expected == 16
    renewed: list[str] = []

    def export_fails_then_other_is_ready() -> None:
        renewed.append("renewed")
        if len(renewed) == 1:
            live.fail(CONV, "no weights here")
        else:
            live.end(LINEAR, ExportStatus("ready", (exports["linear"],)))

    # when the first export fails
    session = sessions.next(export_fails_then_other_is_ready)
    # then its sessions are next, to be recorded as failed
    assert session
    assert (session.cell.model, session.pte_sha256, renewed) == ("conv", None, ["renewed"])


def test_a_start_after_a_crash_discards_no_second_session(tmp_path: Path, exports: dict[str, Export]) -> None:
    # given a device whose first session was of the model that was exported first
    for first in ("linear", "conv"):
        folder = tmp_path / f"first-{first}"
        live = ExportQueue([LINEAR, CONV])
        live.end((first, "fp32"), ExportStatus("ready", (exports[first],)))
        job = a_job(folder, live)
        session = SessionQueue(job, DeviceTally("here")).next(never)
        assert session
        assert (session.repetition, session.cell.model) == (-1, first)
        collected = folder / "collected"
        collected.mkdir(parents=True)
        job.workspace.store.publish(ended(session, "invalid", FIRST_SESSION), collected)
        # when the sweep is started again with both exports there
        tally = DeviceTally("here")
        both = ExportQueue(ready={LINEAR: (exports["linear"],), CONV: (exports["conv"],)})
        again = SessionQueue(replace(job, exports=both), tally)
        # then that session is done, and no other one is discarded
        assert tally.already_done == 1
        assert sorted(each.repetition for each in again.left) == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4


def never() -> None:
    """Renew a lease: what a device that does not wait never does here."""
    raise AssertionError("the device waits")
