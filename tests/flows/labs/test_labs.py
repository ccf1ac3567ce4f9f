"""Devices of a lab are measured by its worker; what happens to a lab never stops the others."""

import errno
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from io import StringIO
from pathlib import Path
from uuid import uuid4

import pytest
from prefect.states import Crashed, Running, Scheduled
from rich.console import Console

from devices.inventory import DeviceSpec
from devices.ondevice.facts import Facts
from flows.device.job import DeviceJob
from flows.labs import artifacts, controller, lab_run
from flows.labs.lab_run import lab
from flows.labs.protocol import Order, Start, write_shared
from flows.progress import Board
from flows.sweep_dispatch import BatchDispatcher
from tasks.bundle.cell import Cell
from tasks.export.export import fetch_export
from tasks.export.exported import Export
from tasks.measure.health import Registry
from tasks.measure.interleaved import Side, plan_batch
from tasks.store.blob_store import BlobStore
from tasks.store.workspace import Workspace
from tests.fixtures.lab_farm import LATE, QUICK, SITE, SPEC, WHY_BROKEN, LabFarm, LateExports, Workers, a_flow
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
    devices = [farm.device("here", None), farm.device("far")]
    write, written = BlobStore.write, list[str]()

    def noted(shared_files: BlobStore, name: str, content: bytes) -> None:
        written.append(name)
        write(shared_files, name, content)

    monkeypatch.setattr(BlobStore, "write", noted)
    terminal, of_farm = StringIO(), Board()  # the lab of this test is in the same process, and shows its own
    monkeypatch.setattr(artifacts, "board", of_farm)
    # when a sweep measures both
    with of_farm.display(Console(file=terminal, width=200)):
        jobs, tallies = farm.sweep(*devices)
        table = {row["step"]: row for row in of_farm.steps()}
    # then both have the same results, in the bundles of the sweep
    for name in ("here", "far"):
        assert (tallies[name].succeeded, tallies[name].failed, tallies[name].discarded) == (4, 2, 1)
        ended = farm.records(name)
        assert sorted(each.status for each in ended) == ["failed"] * 2 + ["invalid"] + ["succeeded"] * 4
        failures = {(each.reason_code, each.reason) for each in ended if each.status == "failed"}
        assert failures == {("export_failed", WHY_BROKEN)}
    # and each knows what the device is, which the lab found out
    assert [job.probe.facts.platform for job in jobs] == ["linux-x86_64"] * 2
    # and the lab has nothing but what was shared with it
    assert (farm.folder / "lab" / "exports" / "key-of-conv" / "model.pte").is_file()
    # and the terminal of the sweep shows the sessions of the lab that ran: the export has reported its failure
    lines = [line for line in terminal.getvalue().splitlines() if line.startswith("far: ")]
    assert (lines[0], len(lines)) == ("far: 7 to do", 1 + 5)
    assert f"far: {QUICK} fp32 sme2_off t1 #1 on far: succeeded" in lines
    # and its table shows the lab, and how many of them failed
    assert table["far"] == {"step": "far", "lab": SITE, "done": 7, "of": 7, "failed": 2, "doing": ""}
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
        assert tally.summary == f"2 failed, {dropped}; {WHY_BROKEN}"


@pytest.mark.thorough
def test_a_lab_measures_what_is_exported_while_other_exports_are_pending(
    farm: LabFarm, late_exports: LateExports
) -> None:
    # given an export that takes long
    late_exports.late_may_end.clear()
    with ThreadPoolExecutor(1) as pool:
        sweeping = pool.submit(copy_context().run, farm.sweep, farm.device("far"))
        # when the other one is there
        wait_for(lambda: len(farm.succeeded("far")) == 2 or sweeping.done(), "the lab to measure it")
        # then the lab has measured it before the late one is there
        assert {each.model.name for each in farm.succeeded("far")} == {QUICK}
        late_exports.late_may_end.set()
        # and the late one afterwards
        _, tallies = sweeping.result(ENOUGH_S)
    assert tallies["far"].succeeded == 4


@pytest.mark.thorough
def test_a_lab_whose_worker_is_off_delays_nobody_and_is_named(
    farm: LabFarm, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a lab without a worker
    monkeypatch.setattr(controller, "TAKEN_S", 0.1)
    workers.others["paris"] = Scheduled()
    devices = [farm.device("far"), farm.device("dead", "paris")]
    # when a sweep measures there and in another lab
    _, tallies = farm.sweep(*devices, labs=(SITE, "paris"))
    # then its device failed with the remedy, and the other lab's is measured
    remedy = "no worker took this sweep within 0.1 s; start one there with `etfarm server lab paris`"
    assert tallies["far"].succeeded == 4
    assert tallies["dead"].unusable == f"dead: lab paris: {remedy}"
    assert {each.reason for each in farm.records("dead")} == {f"dead: lab paris: {remedy}", WHY_BROKEN}
    # and its run was cancelled
    assert workers.cancelled == [remedy]


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
    write_shared(
        Workspace(farm.folder, bundles_location=farm.bundles).store.shared_files,
        "night/0/berlin-measure-1/order",
        order,
    )
    # when the lab works on it
    state = lab("night/0/berlin-measure-1", farm.bundles, return_state=True)
    # then it ends, and says why
    why = "the farm that started this sweep stopped answering; run the same command to resume"
    assert (state.is_failed(), state.message) == (True, f"far: 6 failed; {why}")
    assert {each.reason for each in farm.records("far")} == {why}


def compare_models(farm: LabFarm) -> DeviceJob:
    """Sweep in a lab; return the job that compares two models there, in four sessions and a discarded one."""
    [job], _ = farm.sweep(farm.device("far"))
    runner = job.runners.by_use["sme2_off", "timing"]
    sides = [
        Side(Cell("far", name, "fp32", 1, "sme2_off", "timing", 3, 1), job.case(name, "fp32"), runner)  # type: ignore[arg-type]
        for name in (LATE, QUICK)
    ]
    return replace(job, batch=plan_batch(NIGHT, [(sides[0], sides[1])], "same_night", 2))


@pytest.mark.thorough
def test_suspected_series_of_a_lab_are_measured_again_by_the_lab(farm: LabFarm) -> None:
    again = compare_models(farm)
    # when they are measured
    [tally] = a_flow(BatchDispatcher([again], [SITE]).measure)
    # then the lab has measured both sides, alternately
    assert (tally.succeeded, tally.discarded) == (4, 1)
    arms = sorted((each.ended_at, each.arm.side) for each in farm.records("far") if each.arm and each.repetition >= 0)
    assert [side for _, side in arms] == ["a", "b", "b", "a"]


@pytest.mark.fault
@pytest.mark.thorough
def test_a_comparison_whose_models_a_lab_cannot_fetch_fails_with_that_reason(
    farm: LabFarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = compare_models(farm)
    before = len(farm.records("far"))

    # given a lab whose disk is full when it fetches a model of the comparison
    def fetched(*_: object) -> tuple[Export, ...]:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(lab_run, "fetch_export", fetched)
    # when they are measured
    [tally] = a_flow(BatchDispatcher([again], [SITE]).measure)
    # then the sessions of the comparison fail for that reason, and no other session is planned in their place
    compared = [each for each in farm.records("far") if each.arm]
    assert (tally.succeeded, tally.failed, len(compared)) == (0, len(compared), len(farm.records("far")) - before)
    assert compared
    assert all("No space left on device" in str(each.reason) for each in compared)


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


@pytest.mark.thorough
def test_an_export_that_a_lab_cannot_keep_fails_its_sessions_and_nothing_waits_for_it(
    farm: LabFarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a lab whose disk is full when it fetches the second model
    def fetched(shared_files: BlobStore, key: str, exports_dir: Path) -> tuple[Export, ...]:
        if key == f"key-of-{LATE}":
            raise OSError(errno.ENOSPC, "No space left on device")
        return fetch_export(shared_files, key, exports_dir)

    monkeypatch.setattr(lab_run, "fetch_export", fetched)
    # when a sweep measures there
    _, tallies = farm.sweep(farm.device("far"))
    # then the other model is measured
    assert (tallies["far"].succeeded, tallies["far"].failed) == (2, 4)
    assert any("No space left on device" in str(each.reason) for each in farm.records("far"))
