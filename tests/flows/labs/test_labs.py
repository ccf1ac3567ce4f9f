"""Devices of a lab are measured by its worker, or refused; what happens to a lab never stops the others."""

import errno
import itertools
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from io import StringIO
from pathlib import Path
from uuid import uuid4

import pytest
from prefect.states import Crashed, Running
from rich.console import Console

from devices.inventory import DeviceSpec
from devices.ondevice.facts import Facts, read_facts
from flows.device.job import DeviceJob
from flows.labs import artifacts, controller, lab_run
from flows.labs.lab_run import lab
from flows.labs.protocol import Order, Start, write_shared
from flows.progress import Board
from flows.server import connection
from flows.status.expected_time import StepProgress
from flows.sweep_dispatch import BatchDispatcher
from tasks.bundle.cell import Cell, Use
from tasks.export.export import fetch_export
from tasks.export.exported import Export
from tasks.measure.health import Registry
from tasks.measure.interleaved import Side, plan_batch
from tasks.store.blob_store import BlobStore
from tasks.store.workspace import Workspace
from tests.fixtures.lab_farm import BROKEN, LATE, QUICK, SITE, SPEC, WHY_BROKEN, LabFarm, LateExports, Workers, a_flow
from tests.fixtures.plans import NIGHT
from tests.fixtures.waiting import ENOUGH_S, wait_for
from tests.lab.loopback import free_port

FILES = ("order", "results/far")


@pytest.fixture
def farm(farm_with_labs: LabFarm) -> LabFarm:
    return farm_with_labs


def test_a_device_is_measured_the_same_whether_a_lab_or_this_machine_reaches_it(
    farm: LabFarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a device here, one in a lab, and a model that cannot be exported
    write, written = BlobStore.write, list[str]()

    def noted(shared_files: BlobStore, name: str, content: bytes) -> None:
        written.append(name)
        write(shared_files, name, content)

    monkeypatch.setattr(BlobStore, "write", noted)
    terminal, of_farm = StringIO(), Board()  # the lab of this test is in the same process, and shows its own
    monkeypatch.setattr(artifacts, "board", of_farm)
    # when a sweep measures both
    with of_farm.display(Console(file=terminal, width=200)):
        jobs, tallies = farm.sweep(farm.device("here", None), farm.device("far"))
        table = {row.step: row for row in of_farm.steps()}
    # then both have the same results, in the bundles of the sweep
    for name in ("here", "far"):
        assert (tallies[name].succeeded, tallies[name].failed, tallies[name].discarded) == (4, 2, 1)
        ended = sorted((each.status, each.reason_code or "", each.reason or "") for each in farm.records(name))
        assert [status for status, *_ in ended] == ["failed"] * 2 + ["invalid"] + ["succeeded"] * 4
        assert ended[:2] == [("failed", "export_failed", WHY_BROKEN)] * 2
    # and each knows what the device is, which the lab found out, with nothing but what was shared with it
    assert [job.probe.facts.platform for job in jobs] == ["linux-x86_64"] * 2
    assert (farm.folder / "lab" / "exports" / "key-of-conv" / "model.pte").is_file()
    # and the terminal shows the sessions of the lab that ran, and its table how many of them failed
    lines = [line for line in terminal.getvalue().splitlines() if line.startswith("far: ")]
    assert (lines[0], len(lines)) == ("far: 7 to do", 1 + 5)
    assert f"far: {QUICK} fp32 SME2 off t1 #1: succeeded" in [line.split(",")[0] for line in lines]
    assert table["far"] == StepProgress("far", SITE, done=7, of=7, failed=2, doing="", has_ended=True)
    # and each order and result was written once, and nothing of them is left
    once = [name.split("/", 3)[-1] for name in written if not name.endswith("exports.json")]
    assert sorted(once) == [f"berlin-{run}-1/{file}.json" for run in ("measure", "probe") for file in FILES]
    assert not list((farm.folder / "bundles" / ".shared" / "labs").rglob("*.json"))


@pytest.mark.thorough
def test_a_lab_drops_what_would_not_end_in_time_as_this_machine_does(farm: LabFarm) -> None:
    # given a sweep that must have ended now, by the clock of another time zone
    finish_by = datetime.now(timezone(timedelta(hours=-8)))
    # when it measures here and in a lab
    _, tallies = farm.sweep(farm.device("here", None), farm.device("far"), finish_by=finish_by)
    # then both tell why nothing was measured, in the farm's time, and which model has no export
    for tally in tallies.values():
        dropped = f"5 dropped (would not have ended by {finish_by:%H:%M})"
        assert tally.summary == f"2 failed, {dropped}; no program, export failed: {BROKEN} fp32"
        assert tally.first_reason == WHY_BROKEN


@pytest.mark.thorough
def test_a_lab_measures_what_is_exported_and_this_machine_waits_for_all_exports(
    farm: LabFarm, late_exports: LateExports
) -> None:
    # given an export that takes long
    late_exports.late_may_end.clear()
    with ThreadPoolExecutor(1) as pool:
        sweeping = pool.submit(copy_context().run, farm.sweep, farm.device("here", None), farm.device("far"))
        # when the other one is there
        wait_for(lambda: len(farm.succeeded("far")) == 2 or sweeping.done(), "the lab to measure it")
        # then the lab has measured it before the late one is there, and this machine nothing
        assert {each.model.name for each in farm.succeeded("far")} == {QUICK}
        assert farm.succeeded("here") == []
        late_exports.late_may_end.set()
        # and in the end both have measured both
        _, tallies = sweeping.result(ENOUGH_S)
    assert (tallies["far"].succeeded, tallies["here"].succeeded) == (4, 4)


@pytest.mark.thorough
@pytest.mark.parametrize("is_reported", [True, False], ids=["ended", "silent"])
def test_a_lab_whose_farm_was_killed_waits_for_no_export_any_more(
    farm: LabFarm, workers: Workers, monkeypatch: pytest.MonkeyPatch, is_reported: bool
) -> None:
    # given an order whose exports will never come, of a sweep that the server shows as ended, or as running for ever
    run = uuid4()
    workers.states[run] = Crashed() if is_reported else Running()
    monkeypatch.setattr(lab_run, "MAX_SILENCE_S", 3600.0 if is_reported else 0.1)
    starts = {"far": Start(facts=Facts())}
    pairs = [(model.name, precision) for model, precision in SPEC.pairs]
    order = Order(run=run, spec=SPEC, sweep=NIGHT, devices=[farm.device("far")], starts=starts, pairs=pairs)
    store = Workspace(farm.folder, bundles_location=farm.bundles).store
    write_shared(store.shared_files, "night/0/berlin-measure-1/order", order)
    # when the lab works on it
    state = lab("night/0/berlin-measure-1", farm.bundles, return_state=True)
    # then it ends, and says why
    why = "the farm that started this sweep stopped answering; run the same command to resume"
    assert (state.is_failed(), state.message) == (True, f"far: 6 failed; {why}")
    assert {each.reason for each in farm.records("far")} == {why}


@pytest.mark.thorough
def test_the_farm_keeps_the_health_of_a_lab_s_devices_and_gets_their_strikes(farm: LabFarm) -> None:
    # given a device that the farm has quarantined, one that cannot be reached, and one that the lab once retired
    farm_health, lab_health = Registry(farm.folder / "farm" / "devices"), Registry(farm.folder / "lab" / "devices")
    farm_health.quarantine("out", "swollen battery")
    lab_health.retire("far", "of an earlier farm")
    gone = DeviceSpec(name="gone", transport="ssh", address="127.0.0.1", port=free_port(), user="nobody", site=SITE)
    # when a sweep measures them
    _, tallies = farm.sweep(farm.device("far"), farm.device("out"), gone)
    # then the farm's opinion counted, and the farm knows of the strike
    assert tallies["far"].succeeded == 4
    assert str(tallies["out"].unusable).startswith("out is quarantined")
    assert (farm_health.health("gone").state, farm_health.health("gone").strikes) == ("suspect", 1)
    assert farm_health.health("out").state == "quarantined"


@pytest.mark.fault
@pytest.mark.thorough
def test_a_model_that_a_lab_cannot_keep_fails_its_sessions_and_those_of_the_comparison(
    farm: LabFarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a lab whose disk is full when it fetches the second model, and the job that compares it with the first
    full = {"keys": f"key-of-{LATE}"}

    def fetched(shared_files: BlobStore, key: str, exports_dir: Path) -> tuple[Export, ...]:
        if key.startswith(full["keys"]):
            raise OSError(errno.ENOSPC, "No space left on device")
        return fetch_export(shared_files, key, exports_dir)

    monkeypatch.setattr(lab_run, "fetch_export", fetched)
    # when a sweep measures there, then the other model is measured
    [job], tallies = farm.sweep(farm.device("far"))
    assert (tallies["far"].succeeded, tallies["far"].failed) == (2, 4)
    # and a comparison fails for that reason, and no other session is planned in its place
    full["keys"] = ""
    before = len(farm.records("far"))
    [tally] = a_flow(BatchDispatcher([comparing(job)], [SITE]).measure)
    compared = [each for each in farm.records("far") if each.arm]
    assert (tally.succeeded, tally.failed) == (0, len(compared))
    assert len(compared) == len(farm.records("far")) - before > 0
    assert all("No space left on device" in str(each.reason) for each in compared)


def comparing(job: DeviceJob) -> DeviceJob:
    """Return the job that compares two models in four sessions and a discarded one."""
    runner = job.runners.by_use[Use("sme2_off", "timing")]
    sides = [
        Side(Cell("far", name, "fp32", 1, "sme2_off", "timing", 3, 1), job.case(name, "fp32"), runner)  # type: ignore[arg-type]
        for name in (LATE, QUICK)
    ]
    return replace(job, batch=plan_batch(NIGHT, [(sides[0], sides[1])], "same_night", 2))


@pytest.mark.thorough
def test_suspected_series_of_a_lab_are_measured_again_by_the_lab(farm: LabFarm) -> None:
    [job], _ = farm.sweep(farm.device("far"))
    [tally] = a_flow(BatchDispatcher([comparing(job)], [SITE]).measure)
    # then the lab has measured both sides, alternately
    assert (tally.succeeded, tally.discarded) == (4, 1)
    arms = sorted((each.ended_at, each.arm.side) for each in farm.records("far") if each.arm and each.repetition >= 0)
    assert [side for _, side in arms] == ["a", "b", "b", "a"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"version": 1, "etfarm": "0.0.1"}, "the order was written by etfarm 0.0.1 and read by etfarm "),
        ({"clock_ahead_s": -7200.0}, "this lab's clock is 7200 s ahead of the sweep's; set both clocks"),
    ],
    ids=["version", "clock"],
)
def test_a_lab_that_cannot_execute_an_order_measures_nothing_and_the_sweep_reports_why(
    farm: LabFarm, monkeypatch: pytest.MonkeyPatch, changes: dict[str, object], reason: str
) -> None:
    # given a farm of another version, or one whose clock differs by hours
    monkeypatch.setattr(connection, "clock_difference_s", lambda: 0.0)
    monkeypatch.setattr(controller, "Order", lambda **fields: Order.model_construct(**fields | changes))
    # when it measures
    jobs, tallies = farm.sweep(farm.device("far"))
    # then the device was not touched, and its sessions failed with the lab's reason
    assert reason in str(tallies["far"].unusable)
    assert (tallies["far"].failed, jobs[0].probe.facts.os) == (7, None)


@pytest.mark.thorough
def test_the_times_of_a_lab_whose_clock_differs_are_corrected_and_marked(
    farm: LabFarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a farm whose clock is 7 s ahead of the server's, and a lab that is 600 s behind the farm
    ahead_s = -600.0
    differences = itertools.chain([7.0], itertools.repeat(7.0 + ahead_s))  # then both runs of the lab
    monkeypatch.setattr(connection, "clock_difference_s", lambda: next(differences))
    # when a session is measured there
    begun = datetime.now().astimezone()
    farm.sweep(farm.device("far"))
    # then its times are those of the farm's clock, and its record has the difference
    for each in farm.succeeded("far"):
        assert each.clock_ahead_s == ahead_s
        corrected_s = (datetime.fromisoformat(each.started_at) - begun).total_seconds()
        assert -ahead_s - 1 < corrected_s < -ahead_s + ENOUGH_S
        # and so are those of its conditions
        before = each.conditions["before"]
        assert before and before.taken_at  # noqa: PT018
        assert abs(before.taken_at - datetime.fromisoformat(each.started_at)) < timedelta(milliseconds=1)


@pytest.mark.thorough
def test_a_phone_that_has_a_name_in_two_labs_is_measured_under_the_first(
    farm: LabFarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given two devices with one serial number: one here, one in a lab
    read = lambda device: read_facts(device).model_copy(update={"serial": "8A1X"})  # noqa: E731
    monkeypatch.setattr("tasks.measure.prepare.read_facts", read)
    # when both are measured
    _, tallies = farm.sweep(farm.device("here", None), farm.device("far"))
    # then one is, and the other names both
    second, first = sorted(tallies.values(), key=lambda tally: tally.succeeded)
    assert (first.succeeded, second.succeeded) == (4, 0)
    names = {"here": "here (no site)", "far": "far (berlin)"}
    both = f"{names[first.device]} and {names[second.device]}"
    assert second.unusable == f"{both} are the same device, serial 8A1X; remove one of them from the inventory"


@pytest.mark.thorough
def test_an_order_that_is_in_another_store_is_refused_in_one_sentence(farm: LabFarm) -> None:
    state = lab("night/0/berlin-1", str(farm.folder / "elsewhere"), return_state=True)
    assert state.is_failed()
    assert "the order night/0/berlin-1 is not in the store that this lab uses" in str(state.message)


@pytest.mark.parametrize(("ahead_s", "correction_s"), [(4.9, 0.0), (-4.9, 0.0), (5.0, 5.0), (-3600.0, -3600.0)])
def test_a_difference_of_clocks_below_5_s_is_not_corrected(
    monkeypatch: pytest.MonkeyPatch, ahead_s: float, correction_s: float
) -> None:
    monkeypatch.setattr(connection, "clock_difference_s", lambda: ahead_s)
    assert lab_run.clock_correction_s(farm_ahead_s=0.0) == correction_s
