"""One plan: what the dry run lists is what the flow executes, and the plan of the next start is complete."""

import random
from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.ondevice.facts import Facts
from flows.device.job import DeviceJob, DeviceTally
from flows.device.sessions import SessionQueue
from flows.device_selection import SweepRequest, match_devices
from flows.export_queue import ExportQueue
from flows.sweep_preview import SweepPreview, preview_sweep
from tasks.bundle.record import SessionRecord
from tasks.export.exported import Export
from tasks.measure.plan import DISCARDED_REPETITION, FIRST_SESSION, PlannedSession
from tasks.measure.prepare import ExportStatus, Runners
from tasks.measure.sweep_file import SweepSpec, read_sweep
from tasks.measure.sweep_night import sweep_night
from tasks.measure.sweep_plan import DeviceResults
from tasks.store.workspace import Workspace
from tests.fixtures.plans import a_spec, ended
from tests.fixtures.stand_in import write_export
from tests.fixtures.stand_in_farm import StandInFarm
from tests.fixtures.stand_in_job import stand_in_job

FACTS = Facts(sme=True, sme2=True, cores=4)


def planned_by_dry_run(farm: StandInFarm, monkeypatch: pytest.MonkeyPatch) -> SweepPreview:
    """The dry run of today's sweep, with the stand-ins for its export and its runner."""
    status = ExportStatus("ready", (replace(farm.export, model="linear"),))
    monkeypatch.setattr("flows.sweep_preview.quick_export_status", lambda *_: status)
    by_use = {("sme2_off", "timing"): farm.runner}
    monkeypatch.setattr("flows.sweep_preview.runners_without_build", lambda *_: Runners(by_use))  # type: ignore[arg-type]
    spec, workspace = read_sweep(farm.sweep_file), Workspace(farm.data_dir)
    night = sweep_night(spec.name, date.today(), workspace.store.sweep_ids(), again=False)
    return preview_sweep(SweepRequest(spec, night, match_devices(spec, str(farm.inventory)), workspace))


def test_the_flow_measures_what_the_dry_run_lists_and_leaves_nothing(
    stand_in_farm: StandInFarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    farm = stand_in_farm
    farm.write_inventory()
    # given the dry run of a sweep
    before = planned_by_dry_run(farm, monkeypatch)
    assert not before.plan.is_complete
    # when the sweep is run
    assert farm.sweep().is_completed()
    # then its bundles are those sessions, and the next dry run has nothing left
    listed = {session.session_id for session in before.plan.devices["here"].left}
    assert {path.parent.name for path in farm.data_dir.glob("bundles/*/*/session.json")} == listed
    assert planned_by_dry_run(farm, monkeypatch).plan.is_complete


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> DeviceJob:
    return stand_in_job(tmp_path_factory.mktemp("job"))


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Export:
    return write_export(tmp_path_factory.mktemp("made") / "export")


specs = st.builds(
    a_spec,
    models=st.lists(st.sampled_from(["linear", "conv", "batch_matmul"]), min_size=1, max_size=3, unique=True),
    precisions=st.sampled_from([["fp32"], ["fp16", "fp32"]]),
    variants=st.sampled_from([["sme2_on", "sme2_off"], ["sme2_off"]]),
    threads=st.sampled_from([[1], [1, "all"]]),
    modes=st.sampled_from([["timing"], ["timing", "profile"], ["profile"]]),
    sessions=st.integers(1, 4),
    noise_sessions=st.sampled_from([0, 5]),
)


@settings(max_examples=25)
@given(spec=specs, chance=st.randoms(use_true_random=False))
def test_whenever_exports_arrive_a_device_runs_the_sessions_of_the_plan(
    job: DeviceJob, sessions: Export, spec: SweepSpec, chance: random.Random
) -> None:
    # given exports that end one after the other in any order, some of them without a model
    pairs = [(entry.name, recipe) for entry, recipe in spec.pairs]
    live, arriving = ExportQueue(pairs), chance.sample(pairs, len(pairs))
    runner = next(iter(job.runners.by_use.values()))
    runners = Runners({(variant, mode): runner for variant in spec.variants for mode in spec.modes})
    job = replace(job, spec=spec, exports=live, runners=runners, probe=replace(job.probe, facts=FACTS))

    def arrive() -> None:
        if arriving:
            pair = model, recipe = arriving.pop()
            end = chance.choice(["ready", "ready", "fail", "skip"])
            if end == "ready":
                case = replace(sessions, model=model, precision=recipe, pte_sha256=f"{pairs.index(pair):064x}")
                live.end(pair, ExportStatus("ready", (case,)))
            elif end == "fail":
                live.fail(pair, "no weights here")
            else:
                live.end(pair, ExportStatus("skipped", note="no such layers"))

    # when a device runs its sessions meanwhile, of which some fail
    queue, run = SessionQueue(job, DeviceTally("here")), list[tuple[PlannedSession, SessionRecord]]()
    while session := queue.next(arrive):
        is_good = session.pte_sha256 is not None and chance.random() < 0.8
        first = ("invalid", FIRST_SESSION) if session.repetition == DISCARDED_REPETITION else ("succeeded", None)
        run.append((session, ended(session, *(first if is_good else ("failed", "device_lost")))))
        queue.end(*run[-1])
        if chance.random() < 0.3:
            arrive()
    # then they are those of the plan that has all exports, each once, and at most one is discarded
    plan = job.plan(live.now(), DeviceResults(), queue.discarded)
    assert sorted(each.session_id for each, _ in run) == sorted(each.session_id for each in plan.left)
    assert sum(session.repetition == DISCARDED_REPETITION for session, _ in run) <= 1
    # and the next start has those left that failed, under other ids
    again = job.plan(live.now(), DeviceResults([record for _, record in run]))
    assert {each.key for each in again.left} == {each.key for each, record in run if record.status == "failed"}
    assert again.is_complete == all(record.status != "failed" for _, record in run)
    assert {each.session_id for each in again.left}.isdisjoint(each.session_id for each, _ in run)
