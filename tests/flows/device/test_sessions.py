"""Which session a device runs next while exports are still being made, and that all together are those of the plan."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.ondevice.facts import Facts
from flows.device.job import DeviceJob, DeviceTally, describe_end
from flows.device.measure import required_accuracy
from flows.device.sessions import SessionQueue
from flows.export_queue import ExportQueue
from tasks.bundle.cell import Use
from tasks.bundle.record import SessionRecord
from tasks.bundle.runner_stats import Stats
from tasks.export.exported import Export
from tasks.measure.plan import DISCARDED_REPETITION, FIRST_SESSION, PlannedSession
from tasks.measure.prepare import ExportStatus, Runners
from tasks.measure.sweep_file import MeasurementSettings, SweepSpec
from tasks.measure.sweep_plan import DeviceResults
from tests.fixtures.plans import a_spec, ended
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


def test_with_many_exports_a_device_plans_again_when_a_quarter_more_have_ended(
    tmp_path: Path, exports: dict[str, Export]
) -> None:
    # given a device that plans with four exports of eight
    pairs = [(f"model{number}", "fp32") for number in range(8)]
    live = ExportQueue(pairs)
    job = stand_in_job(tmp_path, models=[{"name": name, "factory": "linear"} for name, _ in pairs])

    def planned_models(count: int) -> int:
        """Let exports end until there are so many; return the number of models whose sessions are left."""
        for pair in pairs[:count]:
            live.end(pair, ExportStatus("ready", (replace(exports["linear"], model=pair[0]),)))
        assert queue.next(never)
        return len({each.cell.model for each in queue.left})

    live.end(pairs[0], ExportStatus("ready", (replace(exports["linear"], model=pairs[0][0]),)))
    queue = SessionQueue(replace(job, exports=live), DeviceTally("here"))
    # then it plans each time that a quarter more have ended, and when all have
    assert [planned_models(count) for count in range(2, 9)] == [2, 3, 4, 5, 5, 7, 8]


def test_only_without_a_ready_session_a_device_waits_and_its_lease_is_renewed_meanwhile(
    tmp_path: Path, exports: dict[str, Export]
) -> None:
    # given a sweep of two models of which none is exported
    live = ExportQueue([LINEAR, CONV])
    sessions = SessionQueue(a_job(tmp_path, live), DeviceTally("here"))
    assert sessions.expected == 16
    ends = [
        lambda: live.fail(CONV, "no weights here"),
        lambda: live.end(LINEAR, ExportStatus("ready", (exports["linear"],))),
    ]
    # when the first export fails
    session = sessions.next(lambda: ends.pop(0)())
    # then its sessions are next, to be recorded as failed
    assert session
    assert (session.cell.model, session.pte_sha256, len(ends)) == ("conv", None, 1)


def never() -> None:
    """Renew a lease: what a device that does not wait never does here."""
    raise AssertionError("the device waits")


FACTS = Facts(sme=True, sme2=True, cores=4)


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
    runners = Runners({Use(variant, mode): runner for variant in spec.variants for mode in spec.modes})
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


def test_each_case_of_an_entry_has_its_accuracy_and_no_other_model_has() -> None:
    models = [{"factory": "decoder_tiny", "accuracy": {"min_snr_db": 20, "top1": 0.99}}, "linear"]
    spec = SweepSpec.model_validate({"name": "a", "models": models})
    found = required_accuracy(spec, "decoder_tiny@decode")
    assert found is not None
    assert (found.min_snr_db, found.top1) == (20, 0.99)
    assert required_accuracy(spec, "linear") is None
    # and comparisons of two files state nothing
    assert required_accuracy(MeasurementSettings(), "decoder_tiny@decode") is None
    # and it travels to a lab with the sweep
    assert SweepSpec.model_validate_json(spec.model_dump_json()) == spec


def test_the_line_of_a_session_has_its_time_where_that_is_a_latency(tmp_path: Path) -> None:
    # given a session whose two warm-up executions took a second each, the others half a millisecond
    session = stand_in_job(tmp_path).planned(ExportQueue([]).now())[1]
    stats = Stats(execution_ns=[1_000_000_000] * 2 + [500_000] * 8)
    record = ended(session, "succeeded").model_copy(update={"stats": stats, "warmup_executions": 2})
    assert describe_end(record) == "succeeded, 0.500 ms by the runner's clock"
    # then one that profiles has none, and one that failed has its reason
    assert describe_end(record.model_copy(update={"mode": "profile"})) == "succeeded"
    assert describe_end(record.model_copy(update={"status": "failed", "reason": "it crashed"})) == "failed: it crashed"
