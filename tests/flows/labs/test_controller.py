"""What a sweep accepts from the runs of a lab, and what it refuses."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock
from uuid import UUID

import pytest
from prefect.client.schemas.objects import State
from prefect.states import Crashed, Pending, Running, Scheduled

from devices.errors import InputError
from devices.inventory import DeviceSpec
from devices.ondevice.facts import Facts
from flows.device.job import DeviceTally
from flows.labs import controller
from flows.labs.artifacts import LabArtifacts
from flows.labs.protocol import Result, write_shared
from flows.labs.validation import validate_facts
from tasks.bundle.record import BundleError
from tasks.measure.health import Health
from tasks.store.blob_store import BlobStore
from tests.fixtures.lab_runs import Runs
from tests.fixtures.plans import NIGHT

ONE_GOOD: tuple[State, list[DeviceTally]] = (Running(), [DeviceTally("good", succeeded=1)])


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    return Runs(tmp_path, monkeypatch)


def test_a_killed_run_is_started_again_for_the_devices_that_have_not_ended(runs: Runs) -> None:
    # given a lab whose first run is killed when one device has ended
    runs.planned = [
        (Crashed(message="killed"), [DeviceTally("first", succeeded=4)]),
        (Running(), [DeviceTally("second", succeeded=4)]),
    ]
    tallies, _ = runs.measure("first", "second")
    # then the second run measures the other one, and nothing that was reported is lost
    assert runs.ordered == [["first", "second"], ["second"]]
    assert (tallies["first"].succeeded, tallies["second"].succeeded) == (4, 4)


@pytest.mark.fault
def test_a_lab_whose_worker_is_killed_before_it_starts_the_run_gets_another_one(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a lab whose first run stays pending, and a second one that measures
    monkeypatch.setattr(controller, "TAKEN_S", 0.05)
    runs.planned = [(Pending(), []), (Running(), [DeviceTally("first")])]
    tallies, _ = runs.measure("first")
    # then the first run is cancelled, and the second one has measured
    assert runs.cancelled == list(runs.states)[1:2]
    assert tallies == {"first": DeviceTally("first")}


@pytest.mark.parametrize(
    ("state", "limit", "reason"),
    [
        (Crashed(message="killed"), None, "its run ended as Crashed: killed"),
        (Running(), "OFFLINE_S", "its worker has been offline for 0.1 s"),
        (Scheduled(), "TAKEN_S", "no worker took this sweep within 0.1 s; start one there with `etfarm server lab be"),
        (None, "MAX_SILENCE_S", "nothing came from it for 0.1 s"),
    ],
    ids=["killed twice", "offline", "off", "silent beside a silent server"],
)
def test_a_lab_that_is_lost_is_named_and_its_run_is_cancelled(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, state: State | None, limit: str | None, reason: str
) -> None:
    # given a lab whose runs end, or whose worker is not seen and writes nothing
    monkeypatch.setattr(controller, "online_labs", lambda: {"paris"})
    if limit:
        monkeypatch.setattr(controller, limit, 0.1)
    runs.planned = [(cast(State, state), [])] * 2
    tallies, _ = runs.measure("first")
    # then its device ends with the reason, its sessions are recorded as failed, and no run goes on
    assert str(tallies["first"].unusable).startswith(f"first: lab berlin: {reason}")
    assert (tallies["first"].succeeded, tallies["first"].failed) == (0, len(list(runs.store.records(NIGHT.sweep_id))))
    assert len(runs.cancelled) == (0 if limit is None else 1)


@pytest.mark.fault
def test_results_are_taken_when_the_store_answers_again(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    # given a store that cannot be listed three times, nor read twice and written once
    failures, is_lab = {"names": 3, "read": 2, "write": 1}, False
    start = runs.start

    def failing(method: str) -> Callable[..., Any]:
        does = getattr(BlobStore, method)

        def call(shared_files: BlobStore, *words: Any) -> Any:
            if failures[method] and not is_lab:
                failures[method] -= 1
                raise BundleError("the store does not answer")
            return does(shared_files, *words)

        return call

    def start_with_a_store(*words: str) -> UUID:
        nonlocal is_lab
        is_lab = True
        try:
            return start(*words)
        finally:
            is_lab = False

    monkeypatch.setattr(controller, "start", start_with_a_store)
    for method in failures:
        monkeypatch.setattr(BlobStore, method, failing(method))
    # when it measures, then nothing is missing
    runs.planned = [(Running(), [DeviceTally("first", succeeded=4)])]
    tallies, _ = runs.measure("first")
    assert (tallies, set(failures.values())) == ({"first": DeviceTally("first", succeeded=4)}, {0})


def test_the_bundles_are_listed_once_for_all_results_that_come_together(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a lab of three devices, whose results are there when the sweep looks
    looks = Mock(wraps=LabArtifacts.read_new_bundles)
    monkeypatch.setattr(LabArtifacts, "read_new_bundles", lambda self: looks(self))
    names = ("first", "second", "third")
    runs.planned = [(Running(), [DeviceTally(name, succeeded=2) for name in names])]
    tallies, _ = runs.measure(*names)
    # then what they report is compared with one list of the bundles
    assert looks.call_count == 1
    assert [tallies[name].succeeded for name in names] == [2, 2, 2]


def test_a_claim_of_a_lab_is_taken_over_as_far_as_the_store_and_the_plan_agree(runs: Runs) -> None:
    # given a lab that reports what it measured, left out, and had measured before
    tally = DeviceTally("first", succeeded=2, not_needed=3, already_done=4, replaced={"0" * 16}, first_reason="a\nb")
    runs.planned = [(Running(), [tally])]
    tallies, health = runs.measure("first")
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
    ("tally", "health", "sentence"),
    [
        ({"succeeded": 10**6}, Health(), "it reported 1000000 sessions of bad as succeeded, but the store has 1; "),
        ({"not_needed": 10**6}, Health(), "it reported 1000000 sessions of bad, but at most "),
        ({}, Health("retired"), "it retired bad, which only `etfarm devices retire` does; "),
        ({"failed": -5}, Health(), "the message `result` has an impossible value (`tally.count` is -5, which is neg"),
        ({}, until_soon(), "the message `result` has an impossible value (`health.until`: 'soon' is not a time with"),
    ],
)
def test_an_end_that_cannot_be_is_refused(runs: Runs, tally: dict[str, int], health: Health, sentence: str) -> None:
    # given a lab with two devices, which measured one session on each and lies about one
    message = Result.model_construct(tally=DeviceTally("bad", **tally), health=health)  # type: ignore[arg-type]

    def forged(name: str) -> None:
        if "-measure-" in name:
            runs.publish("bad")
            write_shared(runs.store.shared_files, f"{name}/results/bad", message)

    runs.planned, runs.forged = [ONE_GOOD], forged
    tallies, registry = runs.measure("bad", "good")
    # then the honest device counts, the other one has what is in the store, and the sentence was reported once
    [line] = runs.reports
    assert line.startswith(f"lab berlin: {sentence}")
    assert tallies["bad"] == DeviceTally("bad", succeeded=1, stopped_by=f"bad: {line}")
    assert (tallies["good"].succeeded, registry.health("bad")) == (1, Health())


@pytest.mark.fault
@pytest.mark.parametrize("device", ["foreign", "a/b"])
def test_results_of_foreign_devices_are_refused(runs: Runs, device: str) -> None:
    # given a lab that reports a device of another lab
    foreign = Result(tally=DeviceTally("foreign"), health=Health())
    runs.planned = [ONE_GOOD]
    runs.forged = lambda name: write_shared(runs.store.shared_files, f"{name}/results/{device}", foreign)
    tallies, _ = runs.measure("good")
    # then that was reported once, and its own device counts
    why = f"it sent a result of {device}, which is not a device of its order"
    assert runs.reports == [f"lab berlin: {why}; check the machine of the lab"]
    assert tallies == {"good": DeviceTally("good", succeeded=1)}


def test_a_device_whose_facts_cannot_be_is_not_used(runs: Runs) -> None:
    # given a lab that reports such facts of a device
    forged = Result.model_construct(facts=Facts(cores=-8), health=Health())

    def write(name: str) -> None:
        if "-probe-" in name:
            write_shared(runs.store.shared_files, f"{name}/results/bad", forged)

    runs.planned, runs.forged = [ONE_GOOD], write
    tallies, _ = runs.measure("bad", "good")
    # then that one is not used, and the other one counts
    sentence = "the message `result` has an impossible value (`facts.cores` is -8, which is negative)"
    assert tallies["bad"].unusable == f"bad: lab berlin: {sentence}; check the machine of the lab"
    assert (runs.ordered, tallies["good"].succeeded) == ([["good"]], 1)


PHONE = DeviceSpec(name="phone", transport="adb", serial="s1")
SIMULATED = DeviceSpec(name="simulated-1", transport="simulated")


def test_a_simulated_device_of_a_lab_has_the_platform_simulated_whatever_the_lab_runs_on() -> None:
    validate_facts(SIMULATED, Facts(os="linux", platform="simulated"))


@pytest.mark.parametrize(
    ("spec", "facts", "sentence"),
    [
        (SIMULATED, {"platform": "linux-x86_64"}, "`platform` is linux-x86_64, but simulated in the inventory"),
        (PHONE, {"platform": "linux-x86_64", "sme2": True}, "`platform` is linux-x86_64, but `sme2` is true"),
        (PHONE, {"platform": "macos-arm64"}, "`platform` is macos-arm64, but `os` is linux"),
        (PHONE, {"platform": "simulated"}, "`platform` is simulated, but `os` is linux"),
        (PHONE, {"platform": "linux-../../x"}, "`platform` is 'linux-../../x', which is not a platform"),
    ],
)
def test_facts_that_contradict_each_other_or_the_inventory_are_refused_with_both(
    spec: DeviceSpec, facts: dict[str, object], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        validate_facts(spec, Facts(os="linux", **facts))  # type: ignore[arg-type]
