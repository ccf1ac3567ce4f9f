"""What is measured again of a suspected night: a comparison with the last good night, or more sessions, or nothing."""

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from devices.errors import FarmError
from flows.comparison import same_night
from flows.comparison.same_night import MAX_SERIES, Suspected, same_night_job, same_night_jobs
from flows.device.job import DeviceJob
from flows.warehouse.publish import load_store
from tasks.bundle.cell import Cell
from tasks.bundle.robust_statistics import ALERT_SESSIONS
from tasks.measure.interleaved import SESSIONS_PER_SIDE, Side
from tasks.measure.plan import DISCARDED_REPETITION
from tasks.pages.site.site import Site
from tasks.results.reader import open_reader
from tests.fixtures.command import Command, DataFolder
from tests.fixtures.documented import assert_documented
from tests.fixtures.nights import night_of, week_of
from tests.fixtures.pages import Pages
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
    made = same_night_job(job, list(rows))[0].batch
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
    assert (
        "gone fp32 on phone, SME2 off, one thread: not compared with 2026-11-20 the same night: its .pte file"
        in caplog.text
    )
    assert (f"it is measured in {more} more sessions instead" in caplog.text) == bool(more)


def test_only_the_largest_changes_are_measured_again(job: DeviceJob, caplog: pytest.LogCaptureFixture) -> None:
    rows = [ROW] * (MAX_SERIES - 1) + [replace(ROW, model="gone")] * 2
    assert [side for _, side in planned(job, *rows)].count(None) == ALERT_SESSIONS - ROW.sessions
    assert f"only the {MAX_SERIES} series of a device with the largest change are" in caplog.text


def test_a_former_file_that_is_gone_is_recorded_once_and_stated_wherever_the_change_is_shown(
    data: DataFolder, job: DeviceJob, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    # given a model that is slower since its change, whose former file was removed from the store
    monkeypatch.undo()
    monkeypatch.setattr(same_night, "_present_side", lambda _job, _row: a_side("p2"))
    week_of(data, device__name="here", model__pte_sha256="p1")
    night_of(data, 8, 1.1, device__name="here", model__pte_sha256="p2")
    load_store(data.workspace)
    job = replace(job, workspace=data.workspace)
    # when the sweep of that night is ended twice
    for _ in range(2):
        assert same_night_jobs([job], "nightly-2026-11-08", data.workspace) == []
    assert len(list((data.bundles / "decisions").iterdir())) == 1
    # then each place states it, and none advises a comparison that cannot be made
    missing, text = ".pte file of 2026-11-07", "the .pte file of 2026-11-07 is no longer stored"
    place = ("--data-dir", data.workspace.root)
    printed = command("verdicts", *place, "--output", data.workspace.root / "night.json")
    document = json.loads((data.workspace.root / "night.json").read_text(encoding="utf-8"))
    assert_documented("verdicts", document)
    assert [row["missing"] for name in ("verdicts", "incidents") for row in document[name]] == [missing] * 2
    (incident,) = document["incidents"]
    explained = json.loads(command("explain", "toy", "--format", "json", *place).out)["facts"]
    assert any(f"decisions accept {incident['incident']}" in step for step in explained["Next step"])
    with open_reader(data.warehouse) as reader:
        pages = Pages(Site(reader, "x"))
        night = pages.history(pages.read("devices/here.html"), document["verdicts"][0]["series_id"])[-1]
        of_night, card = (pages.read(name).words for name in ("nights/2026-11-08.html", "index.html"))
    shown = [*(printed.out, *explained["Incident"], *of_night.values(), night["reason"])]
    assert [place for place, words in of_night.items() if text in words] == ["changed"]
    assert sum(text in words for words in shown) == 4
    assert not any("compare it with" in words for words in shown)
    assert f"etfarm decisions accept {incident['incident']}" in card["incidents"]
    # and so does a warehouse that is built again
    before = data.ask("FROM metric_verdict ORDER BY ALL")
    data.warehouse.unlink()
    load_store(data.workspace)
    assert data.ask("FROM metric_verdict ORDER BY ALL") == before
