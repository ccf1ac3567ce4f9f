"""Devices of a lab are measured by its worker; what happens to a lab never stops the others."""

import errno
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Crashed, Running, Scheduled
from prefect.task_runners import ThreadPoolTaskRunner

from devices.inventory import DeviceSpec
from flows.device.job import DeviceJob, DeviceTally
from flows.labs import farm_side, work
from flows.labs.lab import lab
from flows.labs.mailbox import Mailbox
from flows.labs.messages import Order
from flows.side_by_side import measure_all, measure_as_ready
from tasks.bundle.cell import Cell
from tasks.bundle.record import SessionRecord
from tasks.measure.alternate import Side, plan_round
from tasks.measure.health import Registry
from tasks.prepare.export.exported import Export
from tasks.prepare.export.shared import fetch_export
from tasks.store.shelf import Shelf
from tasks.store.store import LocalStore, open_store
from tasks.store.var import Var
from tests.fixtures.lab_workers import Workers
from tests.fixtures.late_exports import LATE, QUICK, SPEC, WHY_BROKEN, LateExports, put_in_place
from tests.fixtures.plans import NIGHT
from tests.fixtures.waiting import ENOUGH_S, wait_for
from tests.lab.loopback import free_port

SITE = "berlin"


def a_flow(measure: Callable[[], Any]) -> Any:
    """Run it inside a flow, as a sweep does."""
    return flow(task_runner=ThreadPoolTaskRunner[Any](max_workers=64))(measure)()  # type: ignore[arg-type]


@dataclass(frozen=True)
class LabFarm:
    """A farm and its labs, which share the folder of the bundles."""

    folder: Path

    @property
    def bundles(self) -> str:
        return str(self.folder / "bundles")

    def device(self, name: str, site: str | None = SITE) -> DeviceSpec:
        root = str(self.folder / name)
        return DeviceSpec(name=name, transport="local", root=root, site=site, platform="linux-x86_64")

    def sweep(
        self, *devices: DeviceSpec, labs: tuple[str, ...] = (SITE,), finish_by: datetime | None = None
    ) -> tuple[list[DeviceJob], dict[str, DeviceTally]]:
        places = Var(self.folder / "farm")
        store = open_store(self.bundles, places)
        jobs, tallies, _ = a_flow(
            lambda: measure_as_ready(SPEC, NIGHT, list(devices), store, places, {}, labs, finish_by)
        )
        return jobs, {tally.device: tally for tally in tallies}

    def records(self, name: str) -> list[SessionRecord]:
        """The sessions of a device."""
        store = LocalStore(self.folder / "bundles")
        return [each for each in store.records(NIGHT.sweep_id) if each.device.name == name]

    def succeeded(self, name: str) -> list[SessionRecord]:
        return [each for each in self.records(name) if each.status == "succeeded"]


@pytest.fixture
def exports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LateExports:
    """Exports, of which the late one may end unless a test wants it to wait."""
    made = put_in_place(monkeypatch, tmp_path / "farm")
    made.late_may_end.set()
    return made


@pytest.fixture
def farm(workers: Workers, exports: LateExports, tmp_path: Path) -> LabFarm:
    return LabFarm(tmp_path)


def test_a_device_is_measured_the_same_whether_a_lab_or_this_machine_reaches_it(farm: LabFarm) -> None:
    # given a device here, one in a lab, and a model that cannot be exported
    devices = [farm.device("here", None), farm.device("far")]
    # when a sweep measures both
    jobs, tallies = farm.sweep(*devices)
    # then both have the same results, in the bundles of the sweep
    for name in ("here", "far"):
        assert (tallies[name].succeeded, tallies[name].failed, tallies[name].discarded) == (4, 2, 1)
        ended = farm.records(name)
        assert sorted(each.status for each in ended) == ["failed"] * 2 + ["invalid"] + ["succeeded"] * 4
        failures = {(each.reason_code, each.reason) for each in ended if each.status == "failed"}
        assert failures == {("export_failed", WHY_BROKEN)}
    # and each knows what the device is, which the lab found out
    assert [job.facts.platform for job in jobs] == ["linux-x86_64"] * 2
    # and the lab has nothing but what was shared with it
    assert (farm.folder / "lab" / "exports" / "key-of-conv" / "model.pte").is_file()
    # and nothing of the messages is left
    assert not list((farm.folder / "bundles" / ".shared" / "labs").rglob("*.json"))


@pytest.mark.thorough
def test_a_lab_drops_what_would_not_end_in_time_as_this_machine_does(farm: LabFarm) -> None:
    # given a sweep that must have ended now, by the clock of another time zone
    finish_by = datetime.now(timezone(timedelta(hours=-8)))
    # when it measures here and in a lab
    _, tallies = farm.sweep(farm.device("here", None), farm.device("far"), finish_by=finish_by)
    # then neither fails, and both tell why nothing was measured, in the farm's time
    for tally in tallies.values():
        assert tally.in_words() == f"7 dropped (would not have ended by {finish_by:%H:%M})"
        assert not tally.is_bad


@pytest.mark.thorough
def test_a_lab_measures_what_is_exported_while_other_exports_are_pending(farm: LabFarm, exports: LateExports) -> None:
    # given an export that takes long
    exports.late_may_end.clear()
    with ThreadPoolExecutor(1) as pool:
        sweeping = pool.submit(copy_context().run, farm.sweep, farm.device("far"))
        # when the other one is there
        wait_for(lambda: len(farm.succeeded("far")) == 2 or sweeping.done(), "the lab to measure it")
        # then the lab has measured it before the late one is there
        assert {each.model.name for each in farm.succeeded("far")} == {QUICK}
        exports.late_may_end.set()
        # and the late one afterwards
        _, tallies = sweeping.result(ENOUGH_S)
    assert tallies["far"].succeeded == 4


@pytest.mark.thorough
def test_a_lab_whose_worker_is_off_delays_nobody_and_is_named(
    farm: LabFarm, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a lab without a worker
    monkeypatch.setattr(farm_side, "TAKEN_S", 0.1)
    workers.others["paris"] = Scheduled()
    devices = [farm.device("far"), farm.device("dead", "paris")]
    # when a sweep measures there and in another lab
    _, tallies = farm.sweep(*devices, labs=(SITE, "paris"))
    # then its device failed with what to do, and the other lab's is measured
    way_on = "no worker took this sweep within 0.1 s; start one there with `etfarm lab paris`"
    assert tallies["far"].succeeded == 4
    assert tallies["dead"].unusable == f"dead: lab paris: {way_on}"
    assert {each.reason for each in farm.records("dead")} == {f"dead: lab paris: {way_on}"}
    # and its run was taken back
    assert workers.cancelled == [way_on]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (Crashed(message="killed"), "its run ended as Crashed: killed"),
        (Running(), "it has not reported for 0.1 s"),
    ],
    ids=["killed", "silent"],
)
def test_a_lab_that_is_lost_is_named_and_measured_at_the_next_start(
    farm: LabFarm, workers: Workers, monkeypatch: pytest.MonkeyPatch, state: State[Any], reason: str
) -> None:
    # given a lab whose run ends, or never says a word
    with monkeypatch.context() as lost:
        lost.setattr(farm_side, "SILENT_S", 0.1)
        workers.others[SITE] = state
        # when a sweep measures there
        _, tallies = farm.sweep(farm.device("far"))
        # then it ends with the reason
        assert str(tallies["far"].unusable).startswith(f"far: lab {SITE}: {reason}")
        assert (tallies["far"].succeeded, tallies["far"].failed) == (0, 7)
    # and when the lab is back, the next start measures everything
    del workers.others[SITE]
    _, tallies = farm.sweep(farm.device("far"))
    assert (tallies["far"].succeeded, tallies["far"].discarded) == (4, 1)


@pytest.mark.thorough
def test_a_lab_whose_farm_was_killed_waits_for_no_export_any_more(
    farm: LabFarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given an order whose second export will never come
    monkeypatch.setattr(work, "SILENT_S", 0.1)
    store = open_store(farm.bundles, Var(farm.folder / "farm"))
    device = farm.device("far")
    Mailbox(store.shelf, "orphan").write_order(Order(site=SITE, spec=SPEC, sweep=NIGHT, devices=[device]))
    # when the lab works on it
    state = lab("orphan", farm.bundles, return_state=True)
    # then it ends, and says why
    why = "the farm that started this sweep stopped answering; run the same command to resume"
    assert (state.is_failed(), state.message) == (True, f"far: 6 failed; {why}")
    assert {each.reason for each in farm.records("far")} == {why}


@pytest.mark.thorough
def test_suspected_series_of_a_lab_are_measured_again_by_the_lab(farm: LabFarm) -> None:
    # given a sweep that measured in a lab, and two models to compare there
    [job], _ = farm.sweep(farm.device("far"))
    runner = job.runners["sme2_off", "timing"]
    sides = [
        Side(Cell("far", name, "fp32", 1, "sme2_off", "timing", 3, 1), job.case(name, "fp32"), runner)  # type: ignore[arg-type]
        for name in (LATE, QUICK)
    ]
    again = replace(job, round=plan_round(NIGHT, [(sides[0], sides[1])], "same_night", 2))

    # when they are measured
    [tally] = a_flow(lambda: measure_all([again], (SITE,)))
    # then the lab has measured both sides, alternately
    assert (tally.succeeded, tally.discarded) == (4, 1)
    arms = sorted((each.ended_at, each.arm.side) for each in farm.records("far") if each.arm and each.index >= 0)
    assert [side for _, side in arms] == ["a", "b", "b", "a"]


@pytest.mark.thorough
def test_the_farm_decides_about_the_health_of_a_lab_s_devices_and_learns_what_happened_to_them(farm: LabFarm) -> None:
    # given a device that the farm has quarantined, one that cannot be reached, and one that the lab once retired
    known, of_lab = Registry(farm.folder / "farm" / "devices"), Registry(farm.folder / "lab" / "devices")
    known.quarantine("out", "swollen battery")
    of_lab.retire("far", "of an earlier farm")
    gone = DeviceSpec(name="gone", transport="ssh", address="127.0.0.1", port=free_port(), user="nobody", site=SITE)
    # when a sweep measures them
    _, tallies = farm.sweep(farm.device("far"), farm.device("out"), gone)
    # then the farm's opinion counted, and the farm knows of the strike
    assert tallies["far"].succeeded == 4
    assert str(tallies["out"].unusable).startswith("out is quarantined")
    assert (known.health("gone").state, known.health("gone").strikes) == ("suspect", 1)
    assert known.health("out").state == "quarantined"


@pytest.mark.thorough
def test_an_export_that_a_lab_cannot_keep_fails_its_sessions_and_nothing_waits_for_it(
    farm: LabFarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a lab whose disk is full when it fetches the second model
    def fetched(shelf: Shelf, key: str, exports_dir: Path) -> tuple[Export, ...]:
        if key == f"key-of-{LATE}":
            raise OSError(errno.ENOSPC, "No space left on device")
        return fetch_export(shelf, key, exports_dir)

    monkeypatch.setattr(work, "fetch_export", fetched)
    # when a sweep measures there
    _, tallies = farm.sweep(farm.device("far"))
    # then the other model is measured
    assert (tallies["far"].succeeded, tallies["far"].failed) == (2, 4)
    assert any("No space left on device" in str(each.reason) for each in farm.records("far"))


@pytest.mark.thorough
def test_an_order_that_is_in_another_store_is_refused_in_one_sentence(farm: LabFarm) -> None:
    state = lab("nightly/berlin-1", str(farm.folder / "elsewhere"), return_state=True)
    assert state.is_failed()
    assert "the order nightly/berlin-1 is not in the store that this lab uses" in str(state.message)
