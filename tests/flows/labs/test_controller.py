"""What a sweep accepts from the runs of a lab, and what it refuses."""

import itertools
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID, uuid4

import pytest
from prefect.client.schemas.objects import State
from prefect.states import Crashed, Pending, Running

from devices.inventory import DeviceSpec
from devices.ondevice.facts import Facts
from flows.device.job import DeviceJob, DeviceTally, SweepJob
from flows.dispatch import DeviceDispatcher
from flows.export_queue import ExportQueue
from flows.labs import controller
from flows.labs.artifacts import LabArtifacts
from flows.labs.protocol import Order, Result, read_shared, write_shared
from flows.progress import board
from tasks.bundle.record import BundleError, DeviceRecord
from tasks.measure.health import Health, Registry
from tasks.measure.prepare import Probe, Runners
from tasks.store.blob_store import BlobStore
from tasks.store.files import scratch_folder
from tasks.store.local_store import LocalStore
from tasks.store.workspace import Workspace
from tests.fixtures.lab_farm import put_labs_in_place
from tests.fixtures.plans import NIGHT, a_spec, ended, planned

SESSION_IDS = (f"{number:016x}" for number in itertools.count())


class Ready(DeviceDispatcher):
    """Starts each device at once."""

    def job(self, probe: Probe) -> DeviceJob:
        return self.common.on(probe, Runners())


class Runs:
    """Stand-in for the runs of a lab: all devices are probed; then the state that each run has, and its tallies.

    The bundles of what succeeded are in the store. `forged` writes results of a run before these, below its name.
    """

    def __init__(
        self,
        store: LocalStore,
        *planned: tuple[State, list[DeviceTally]],
        forged: Callable[[str], object] = lambda _: None,
    ) -> None:
        self.store, self.planned, self.forged = store, list(planned), forged
        self.states: dict[UUID, State] = {}
        self.cancelled: list[UUID] = []
        self.ordered: list[list[str]] = []

    def start(self, site: str, name: str, title: str, bundles: str) -> UUID:
        run, shared_files = uuid4(), self.store.shared_files
        order = read_shared(shared_files, f"{name}/order", Order)
        assert order is not None
        self.forged(name)
        if order.starts is None:
            self.states[run] = Running()
            for device in order.devices:
                if f"{device.name}.json" not in shared_files.names(f"labs/{name}/results"):
                    write_shared(shared_files, f"{name}/results/{device.name}", Result(health=Health()))
            return run
        self.states[run], tallies = self.planned.pop(0)
        self.ordered.append([device.name for device in order.devices])
        for tally in tallies:
            for _ in range(tally.succeeded):
                self.publish(tally.device)
            write_shared(shared_files, f"{name}/results/{tally.device}", Result(tally=tally, health=Health()))
        return run

    def publish(self, name: str) -> None:
        """Put a session of a device that succeeded into the store."""
        device = DeviceRecord(name=name, transport="local", emulated=False)
        record = ended(planned(a_spec())[1], "succeeded")
        with scratch_folder() as nothing:
            self.store.publish(record.model_copy(update={"session_id": next(SESSION_IDS), "device": device}), nothing)

    def cancel(self, run: UUID, _why: str) -> None:
        self.cancelled.append(run)

    def measure(self, monkeypatch: pytest.MonkeyPatch, *names: str) -> tuple[dict[str, DeviceTally], Registry]:
        """Let a lab of these devices measure with the runs; return how they ended, and their health."""
        put_labs_in_place(self, monkeypatch)
        monkeypatch.setattr(controller, "runtime", SimpleNamespace(flow_run=SimpleNamespace(id=str(uuid4()))))
        devices = [DeviceSpec(name=name, transport="local", site="berlin") for name in names]
        workspace = Workspace(self.store.root, bundles_location=str(self.store.root))
        dispatcher = Ready(SweepJob(a_spec(), NIGHT, workspace, ExportQueue()))
        lab = controller.LabController("berlin", devices, dispatcher, LabArtifacts(dispatcher))
        return {tally.device: tally for tally in lab.measure()}, Registry(workspace.registry)


def test_a_killed_run_is_started_again_for_the_devices_that_have_not_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a lab whose first run is killed when one device has ended
    runs = Runs(
        LocalStore(tmp_path),
        (Crashed(message="killed"), [DeviceTally("first", succeeded=4)]),
        (Running(), [DeviceTally("second", succeeded=4)]),
    )
    # when it measures
    tallies, _ = runs.measure(monkeypatch, "first", "second")
    # then the second run measures the other one, and nothing that was reported is lost
    assert runs.ordered == [["first", "second"], ["second"]]
    assert (tallies["first"].succeeded, tallies["second"].succeeded) == (4, 4)


@pytest.mark.fault
def test_a_lab_whose_worker_is_killed_before_it_starts_the_run_gets_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a lab whose first run stays pending, and a second one that measures
    monkeypatch.setattr(controller, "TAKEN_S", 0.05)
    runs = Runs(LocalStore(tmp_path), (Pending(), []), (Running(), [DeviceTally("first")]))
    # when it measures
    tallies, _ = runs.measure(monkeypatch, "first")
    # then the first run is cancelled, and the second one has measured
    assert runs.cancelled == list(runs.states)[1:2]
    assert tallies == {"first": DeviceTally("first")}


@pytest.mark.parametrize(
    ("state", "limit", "reason"),
    [
        (Crashed(message="killed"), None, "its run ended as Crashed: killed"),
        (Running(), "OFFLINE_S", "its worker has been offline for 0.1 s"),
        (Running(), "MAX_SILENCE_S", "nothing came from it for 0.1 s"),
        (None, "MAX_SILENCE_S", "nothing came from it for 0.1 s"),
    ],
    ids=["killed twice", "offline", "silent", "silent beside a silent server"],
)
def test_a_lab_that_is_lost_is_named_and_its_run_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: State | None, limit: str | None, reason: str
) -> None:
    # given a lab whose runs end, or whose worker is not seen and writes nothing
    monkeypatch.setattr(controller, "online_labs", lambda: {"paris"})
    if limit:
        monkeypatch.setattr(controller, limit, 0.1)
    runs = Runs(LocalStore(tmp_path), *[(cast(State, state), [])] * 2)
    # when it measures
    tallies, _ = runs.measure(monkeypatch, "first")
    # then its device ends with the reason, its sessions are recorded as failed, and no run goes on
    assert str(tallies["first"].unusable).startswith(f"first: lab berlin: {reason}")
    assert (tallies["first"].succeeded, tallies["first"].failed) == (0, len(list(runs.store.records(NIGHT.sweep_id))))
    assert len(runs.cancelled) == (0 if limit is None else 1)


@pytest.mark.fault
def test_results_are_taken_when_the_store_answers_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # given a store that cannot be append_first three times, nor read twice and written once
    failures = {"names": 3, "read": 2, "write": 1}

    def failing(method: str) -> Callable[..., Any]:
        does = getattr(BlobStore, method)

        def call(shared_files: BlobStore, *words: Any) -> Any:
            if failures[method]:
                failures[method] -= 1
                raise BundleError("the store does not answer")
            return does(shared_files, *words)

        return call

    runs = Runs(LocalStore(tmp_path), (Running(), [DeviceTally("first", succeeded=4)]))
    start = runs.start

    def start_with_a_store(*words: str) -> UUID:
        with pytest.MonkeyPatch.context() as well:
            for method in failures:
                well.setattr(BlobStore, method, methods[method])
            return start(*words)

    methods = {method: getattr(BlobStore, method) for method in failures}
    monkeypatch.setattr(runs, "start", start_with_a_store)
    for method in failures:
        monkeypatch.setattr(BlobStore, method, failing(method))
    # when it measures, then nothing is missing
    tallies, _ = runs.measure(monkeypatch, "first")
    assert (tallies, set(failures.values())) == ({"first": DeviceTally("first", succeeded=4)}, {0})


def test_a_claim_of_a_lab_is_taken_over_as_far_as_the_store_and_the_plan_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a lab that reports what it measured, left out, and had measured before
    tally = DeviceTally("first", succeeded=2, not_needed=3, already_done=4, replaced={"0" * 16}, first_reason="a\nb")
    tallies, health = Runs(LocalStore(tmp_path), (Running(), [tally])).measure(monkeypatch, "first")
    # then all of it counts, in one line and without bundles that nobody knows
    assert tallies["first"] == DeviceTally("first", succeeded=2, not_needed=3, already_done=4, first_reason="a b")
    assert health.health("first") == Health()


def until_soon() -> Health:
    """Return a health as only another program would write it."""
    health = Health("quarantined")
    object.__setattr__(health, "until", "soon")
    return health


@pytest.mark.fault
@pytest.mark.parametrize(
    ("case", "message", "sentence"),
    [
        (
            "more than it can have measured",
            Result(tally=DeviceTally("bad", succeeded=1_000_000), health=Health()),
            "it reported 1000000 sessions of bad as succeeded, but the store has 1; ",
        ),
        (
            "more than was planned",
            Result(tally=DeviceTally("bad", not_needed=1_000_000), health=Health()),
            "it reported 1000000 sessions of bad, but at most ",
        ),
        (
            "a retired device",
            Result(tally=DeviceTally("bad"), health=Health("retired")),
            "it retired bad, which only `etfarm devices retire` does; ",
        ),
        (
            "a negative count",
            Result.model_construct(tally=DeviceTally("bad", failed=-5), health=Health()),
            "the message `result` has an impossible value (`tally.count` is -5, which is negative); ",
        ),
        (
            "a health without a time",
            Result.model_construct(tally=DeviceTally("bad"), health=until_soon()),
            "the message `result` has an impossible value (`health.until`: 'soon' is not a time with its UTC offset",
        ),
    ],
)
def test_an_end_that_cannot_be_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str, message: Result, sentence: str
) -> None:
    # given a lab with two devices, which measured one session on each and lies about one
    store, reports = LocalStore(tmp_path), list[str]()
    runs = Runs(store, (Running(), [DeviceTally("good", succeeded=1)]))

    def forged(name: str) -> None:
        if "-measure-" in name:
            runs.publish("bad")
            write_shared(store.shared_files, f"{name}/results/bad", message)

    runs.forged = forged
    monkeypatch.setattr(board, "report", reports.append)
    # when it measures
    tallies, health = runs.measure(monkeypatch, "bad", "good")
    # then the honest device counts, the other one has what is in the store, and the sentence was reports once
    [line] = reports
    assert line.startswith(f"lab berlin: {sentence}")
    assert tallies["bad"] == DeviceTally("bad", succeeded=1, stopped_by=f"bad: {line}")
    assert (tallies["good"].succeeded, health.health("bad")) == (1, Health())


@pytest.mark.fault
@pytest.mark.parametrize("device", ["foreign", "a/b", "x y"])
def test_results_of_foreign_devices_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    # given a lab that reports a device of another lab
    foreign = Result(tally=DeviceTally("foreign"), health=Health())
    runs = Runs(LocalStore(tmp_path), (Running(), [DeviceTally("good", succeeded=1)]))
    runs.forged = lambda name: write_shared(runs.store.shared_files, f"{name}/results/{device}", foreign)
    reports: list[str] = []
    monkeypatch.setattr(board, "report", reports.append)
    # when it measures
    tallies, _ = runs.measure(monkeypatch, "good")
    # then that was reports once, and its own device counts
    why = f"it sent a result of {device}, which is not a device of its order"
    assert reports == [f"lab berlin: {why}; check the machine of the lab"]
    assert tallies == {"good": DeviceTally("good", succeeded=1)}


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({"os": "linux", "platform": "macos-arm64"}, "`platform` is macos-arm64, but `os` is linux"),
        ({"cores": -8}, "the message `result` has an impossible value (`facts.cores` is -8, which is negative)"),
    ],
)
def test_facts_that_contradict_each_other_make_a_device_unusable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, facts: dict[str, object], sentence: str
) -> None:
    # given a lab that reports such facts of a device
    runs = Runs(LocalStore(tmp_path), (Running(), [DeviceTally("good", succeeded=1)]))
    forged = Result.model_construct(facts=Facts(**facts), health=Health())  # type: ignore[arg-type]

    def write(name: str) -> None:
        if "-probe-" in name:
            write_shared(runs.store.shared_files, f"{name}/results/bad", forged)

    runs.forged = write
    # when it measures
    tallies, _ = runs.measure(monkeypatch, "bad", "good")
    # then that one is not used, and the other one counts
    assert tallies["bad"].unusable == f"bad: lab berlin: {sentence}; check the machine of the lab"
    assert (runs.ordered, tallies["good"].succeeded) == ([["good"]], 1)
