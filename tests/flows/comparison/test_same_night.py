"""What is measured again of a suspected night: a comparison with the last good night, or more sessions, or nothing."""

from dataclasses import replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from devices.errors import FarmError
from flows.comparison import same_night
from flows.comparison.same_night import MAX_SERIES, Suspected, same_night_job
from flows.device.job import DeviceJob
from tasks.bundle.cell import Cell
from tasks.bundle.robust_statistics import ALERT_SESSIONS
from tasks.measure.interleaved import SESSIONS_PER_SIDE, Side
from tasks.measure.plan import DISCARDED_REPETITION
from tests.fixtures.plans import a_spec
from tests.fixtures.stand_in_job import stand_in_job

ROW = Suspected(
    *("phone", "linear", "fp32", "sme2_off", 1, 20, 3, 1.1, date(2026, 11, 20)),
    *("key", "p1", "r1", "p2", "r1"),
    sessions=3,
)


def a_side(pte: str) -> Side:
    export: Any = SimpleNamespace(model="linear", pte_sha256=pte, inputs_sha256="i", content=(pte, "i"), seed=0)
    runner: Any = SimpleNamespace(runner_sha256="r1")
    return Side(Cell("phone", "linear", "fp32", 1, "sme2_off", "timing", 20, 3), export, runner)


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DeviceJob:
    """A device of a sweep of 3 sessions; the former files of models that are called `gone` are not kept."""

    def former(_: DeviceJob, row: Suspected) -> Side:
        if row.model == "gone":
            raise FarmError("its .pte file is not in var/exports any more")
        return a_side("p1")

    monkeypatch.setattr(same_night, "_baseline_side", former)
    monkeypatch.setattr(same_night, "_present_side", lambda _job, _row: a_side("p2"))
    return replace(stand_in_job(tmp_path), spec=a_spec(sessions=3))


def planned(job: DeviceJob, *rows: Suspected) -> list[tuple[int, str | None]]:
    """Return the number and the side of each session that is planned, of the night's own sessions None."""
    made = same_night_job(job, list(rows)).batch
    assert made is not None
    return [(each.repetition, each.cell.arm.side if each.cell.arm else None) for each in made.sessions]


def test_a_night_whose_former_files_are_kept_is_compared_with_them(job: DeviceJob) -> None:
    sides = [side for index, side in planned(job, ROW) if index != DISCARDED_REPETITION]
    assert [sides.count(name) for name in ("a", "b", None)] == [SESSIONS_PER_SIDE, SESSIONS_PER_SIDE, 0]


@pytest.mark.parametrize(("sessions", "more"), [(3, 5), (7, 1), (8, 0)])
def test_a_night_of_few_sessions_without_the_former_files_gets_those_that_it_lacks(
    job: DeviceJob, caplog: pytest.LogCaptureFixture, sessions: int, more: int
) -> None:
    added = planned(job, replace(ROW, model="gone", sessions=sessions))
    # then they are the next ones of the night's own cell
    assert [each for each in added if each[0] != DISCARDED_REPETITION] == [(3 + number, None) for number in range(more)]
    assert "gone fp32 sme2_off t1 on phone: not compared with 2026-11-20 the same night: its .pte file" in caplog.text
    assert (f"it is measured in {more} more sessions instead" in caplog.text) == bool(more)


def test_only_the_largest_changes_are_measured_again(job: DeviceJob, caplog: pytest.LogCaptureFixture) -> None:
    rows = [ROW] * (MAX_SERIES - 1) + [replace(ROW, model="gone")] * 2
    assert [side for _, side in planned(job, *rows)].count(None) == ALERT_SESSIONS - ROW.sessions
    assert f"only the {MAX_SERIES} series of a device with the largest change are" in caplog.text
