"""What is measured later of stored nights: which of them, with which runners, and in which order."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from devices.inventory import DeviceSpec
from devices.ondevice.facts import Facts
from tasks.measure import backfill
from tasks.measure.backfill import LaterNight, StoredNight, batch_of_nights, plan_later
from tasks.measure.plan import DISCARDED_REPETITION
from tasks.measure.prepare import ExportSnapshot, ExportStatus, Probe
from tests.fixtures.plans import a_spec, an_export

FACTS: dict[str, Any] = {"serial": "s", "build": "b1", "os_version": "1", "soc": "x"}
SAME = FACTS | {"device_model": "m", "launcher": None, "sme": False, "sme2": False}
PROBE = Probe(
    DeviceSpec(name="here", transport="local"), Facts(os="linux", model="m", platform="linux-x86_64", **FACTS)
)
SPEC = a_spec(models=["conv"], precisions=["fp32"], variants=["sme2_off"], sessions=3)
EXPORT = an_export("conv")
EXPORT.precision = "fp32"
EXPORTS = ExportSnapshot({("conv", "fp32"): ExportStatus("ready", (EXPORT,))})


def runner(sha256: str, version: str) -> Any:
    about = {"variants": ["sme2_off"], "modes": ["timing"], "kind": "wheel", "versions": {"executorch": version}}
    return SimpleNamespace(runner_sha256=sha256, backends=None, **about)


@pytest.fixture(autouse=True)
def _stored_runners(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.runner.manifest.installed_version", lambda: "1.5.1")
    monkeypatch.setattr(backfill, "installed_version", lambda: "1.5.1")
    every = [runner("r1", "1.5.1"), runner("r2", "1.5.1"), runner("old", "1.5.0")]
    monkeypatch.setattr(backfill, "list_runners", lambda *_: every)


def stored(day: int, *runners: str, **facts: Any) -> StoredNight:
    return StoredNight(date(2026, 11, day), "here", SAME | facts, runners)


def plan(*nights: StoredNight, probe: Probe = PROBE) -> list[LaterNight]:
    return plan_later(SPEC, nights, probe, EXPORTS, Path("var/runners"), None)


def test_each_night_is_measured_with_its_newest_runner_and_is_a_sweep_of_its_own() -> None:
    nights = plan(stored(18, "r1"), stored(19, "r2", "r1"))
    assert [(each.sweep.sweep_id, each.sweep.measured_later, each.skipped) for each in nights] == [
        (f"smoke-2026-11-{day}.later", True, None) for day in (18, 19)
    ]
    assert [[each.runner_sha256 for each in night.sessions] for night in nights] == [["r1"] * 3, ["r2"] * 3]


NO_NIGHT: Mapping[str, tuple[StoredNight, str]] = {
    "runner gone": (stored(18, "f00dbeef99"), "no runner of that night: f00dbeef not in var/runners/linux-x86_64"),
    "other version": (stored(18, "old"), "that night is of executorch 1.5.0, and models are exported with 1.5.1"),
    "other build": (stored(18, "r1", build="b0"), "the device changed: build was b0 in that night and is b1 now"),
    "other start": (stored(18, "r1", launcher="nice"), "launcher was nice in that night and is none now"),
}


@pytest.mark.parametrize(("night", "reason"), NO_NIGHT.values(), ids=NO_NIGHT)
def test_a_night_that_cannot_be_measured_as_it_was_is_skipped_with_the_reason(night: StoredNight, reason: str) -> None:
    skipped, other = plan(night, stored(19, "r1"))
    assert skipped.sessions == []
    assert reason in str(skipped.skipped)
    assert other.sessions


def test_a_device_that_does_not_answer_skips_its_nights() -> None:
    (night,) = plan(stored(18, "r1"), probe=replace(PROBE, unusable="here is away"))
    assert (night.skipped, night.sessions) == ("here is away", [])


def test_a_cell_that_a_night_measured_is_left_alone() -> None:
    measured = replace(stored(18, "r1"), cells=[("conv", "fp32", "sme2_off", "timing", 1)])
    has, lacks = plan(measured, stored(19, "r1"))
    assert (has.sessions, len(has.measured), has.skipped) == ([], 1, "the night has all of it")
    assert len(lacks.sessions) == 3


def test_nights_take_turns_so_that_a_drift_of_the_device_is_no_trend() -> None:
    batch = batch_of_nights(plan(stored(18, "r1"), stored(19, "r2"), stored(20, "r1")), EXPORTS, seed=0)
    # the first session is discarded
    assert [each.repetition for each in batch.sessions] == [DISCARDED_REPETITION, 0, 0, 0, 1, 1, 1, 2, 2, 2]
    first, second, third = ([each.sweep.night[-2:] for each in batch.sessions[at : at + 3]] for at in (1, 4, 7))
    assert sorted(first) == ["18", "19", "20"]
    assert (second, third) == (first[::-1], first)
    assert set(batch.runners) == {"r1", "r2"}
    assert set(batch.exports) == {("p", "i")}
