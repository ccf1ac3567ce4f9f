"""What a sweep takes over from the runs of a lab, and what it refuses."""

import itertools
from collections.abc import Callable
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from prefect.client.schemas.objects import State
from prefect.states import Crashed, Pending, Running

from devices.inventory import DeviceSpec
from devices.ondevice.facts import Facts
from flows.device.job import DeviceJob, DeviceTally, SweepTerms
from flows.dispatch import DeviceDispatcher
from flows.export_queue import ExportQueue
from flows.labs import farm_side
from flows.labs.messages import Admitted, Ended, Mailbox, Order, Probed
from flows.labs.sharing import Sharing
from flows.progress import board
from tasks.bundle.record import DeviceRecord
from tasks.measure.health import Health
from tasks.measure.prepare import Probe, Runners
from tasks.store.files import scratch_folder
from tasks.store.store import LocalStore
from tasks.store.var import Var
from tests.fixtures.lab_workers import put_in_place
from tests.fixtures.plans import NIGHT, a_spec, ended, planned

SESSION_IDS = (f"{number:016x}" for number in itertools.count())


class AtOnce(DeviceDispatcher):
    """Lets each device start at once, without a runner."""

    def job(self, probe: Probe) -> DeviceJob:
        return self.terms.job(probe, Runners())


class Runs:
    """Stand-in for the runs of a lab: the state that each has from the start on, and the tallies that it reports.

    The bundles of what succeeded are in the store. `lie` writes messages before these.
    """

    def __init__(
        self,
        store: LocalStore,
        *planned: tuple[State, list[DeviceTally]],
        lie: Callable[[Mailbox], object] = lambda _: None,
    ) -> None:
        self.store, self.planned, self.lie = store, list(planned), lie
        self.states: dict[UUID, State] = {}
        self.cancelled: list[UUID] = []
        self.ordered: list[list[str]] = []
        self.orders: list[str] = []

    def start(self, site: str, order: str, bundles: str) -> UUID:
        run = uuid4()
        self.states[run], tallies = self.planned.pop(0)
        messages = Mailbox(self.store.shelf, f"labs/{order}")
        read = messages.read("order", Order)
        assert read is not None
        self.ordered.append([device.name for device in read.devices])
        for name in self.ordered[-1]:
            messages.write(f"probes/{name}", Probed(facts=Facts()))
        self.lie(messages)
        for tally in tallies:
            for _ in range(tally.succeeded):
                self.publish(tally.device)
            messages.write(f"ended/{tally.device}", Ended(tally=tally, health=Health()))
        self.orders.append(order)
        return run

    def publish(self, name: str) -> None:
        """Put a session of a device that succeeded into the store."""
        device = DeviceRecord(name=name, transport="local", emulated=False)
        record = ended(planned(a_spec())[1], "succeeded")
        with scratch_folder() as nothing:
            self.store.publish(record.model_copy(update={"session_id": next(SESSION_IDS), "device": device}), nothing)

    def admitted(self, number: int) -> list[str]:
        """The devices that the farm has admitted to a run."""
        return self.store.shelf.names(f"labs/{self.orders[number]}/admitted")

    def cancel(self, run: UUID, _why: str) -> None:
        self.cancelled.append(run)

    def measure(self, monkeypatch: pytest.MonkeyPatch, *names: str) -> farm_side.Lab:
        """Let a lab of these devices measure with the runs."""
        put_in_place(self, monkeypatch)
        lab = farm_side.Lab("berlin", [DeviceSpec(name=name, transport="local", site="berlin") for name in names])
        terms = SweepTerms(a_spec(), NIGHT, self.store, Var(self.store.root), ExportQueue())
        order = Order(run=uuid4(), spec=a_spec(), sweep=NIGHT, devices=lab.devices)
        lab.measure(order, Sharing(AtOnce(terms)))
        return lab


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
    lab = runs.measure(monkeypatch, "first", "second")
    # then the second run measures the other one, which is admitted again, and nothing that was reported is lost
    assert runs.ordered == [["first", "second"], ["second"]]
    assert runs.admitted(1) == ["second.json"]
    assert (lab.lost, lab.tallies["first"].succeeded, lab.tallies["second"].succeeded) == (None, 4, 4)


@pytest.mark.fault(
    stage="plan",
    done="kill -9 of a lab's worker between taking a sweep's run and starting it",
    holds="the sweep gives the lab another run, which its new worker takes",
)
def test_a_lab_whose_worker_is_killed_before_it_starts_the_run_gets_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a lab whose first run stays pending, and a second one that measures
    monkeypatch.setattr(farm_side, "TAKEN_S", 0.05)
    runs = Runs(LocalStore(tmp_path), (Pending(), []), (Running(), [DeviceTally("first")]))
    # when it measures
    lab = runs.measure(monkeypatch, "first")
    # then the first run is cancelled, and the second one has measured
    assert runs.cancelled == list(runs.states)[:1]
    assert (lab.lost, list(lab.tallies)) == (None, ["first"])


def test_a_claim_of_a_lab_is_taken_over_as_far_as_the_store_and_the_plan_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a lab that reports what it measured, left out, and had measured before
    tally = DeviceTally("first", succeeded=2, not_needed=3, already_done=4, replaced={"0" * 16}, first_reason="a\nb")
    lab = Runs(LocalStore(tmp_path), (Running(), [tally])).measure(monkeypatch, "first")
    # then all of it counts, in one line and without bundles that nobody knows
    assert lab.tallies["first"] == DeviceTally("first", succeeded=2, not_needed=3, already_done=4, first_reason="a b")
    assert lab.health["first"] == Health()


def until_soon() -> Health:
    """Return a health as only another program would write it."""
    health = Health("quarantined")
    object.__setattr__(health, "until", "soon")
    return health


@pytest.mark.fault(
    stage="run",
    done="a lab reports {case}",
    holds="it is refused in one sentence, counts come from the store, and the other devices are measured",
)
@pytest.mark.parametrize(
    ("case", "message", "sentence"),
    [
        (
            "more than it can have measured",
            Ended(tally=DeviceTally("bad", succeeded=1_000_000), health=Health()),
            "it reported 1000000 sessions of bad as succeeded, but the store has 1; ",
        ),
        (
            "more than was planned",
            Ended(tally=DeviceTally("bad", not_needed=1_000_000), health=Health()),
            "it reported 1000000 sessions of bad, but at most ",
        ),
        (
            "a retired device",
            Ended(tally=DeviceTally("bad"), health=Health("retired")),
            "it retired bad, which only `etfarm devices retire` does; ",
        ),
        (
            "a negative count",
            Ended.model_construct(tally=DeviceTally("bad", failed=-5), health=Health()),
            "the message `ended` has an impossible value (`tally.count` is -5, which is negative); ",
        ),
        (
            "a health without a time",
            Ended.model_construct(tally=DeviceTally("bad"), health=until_soon()),
            "the message `ended` has an impossible value (`health.until`: 'soon' is not a time with its UTC offset",
        ),
    ],
)
def test_an_end_that_cannot_be_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str, message: Ended, sentence: str
) -> None:
    # given a lab with two devices, which measured one session on each and lies about one
    store, told = LocalStore(tmp_path), list[str]()
    runs = Runs(store, (Running(), [DeviceTally("good", succeeded=1)]))

    def lie(messages: Mailbox) -> None:
        runs.publish("bad")
        messages.write("ended/bad", message)

    runs.lie = lie
    monkeypatch.setattr(board, "tell", told.append)
    # when it measures
    lab = runs.measure(monkeypatch, "bad", "good")
    # then the honest device counts, the other one has what is in the store, and the sentence was told once
    [line] = told
    assert line.startswith(f"lab berlin: {sentence}")
    assert lab.tallies["bad"] == DeviceTally("bad", succeeded=1, stopped_by=f"bad: {line}")
    assert (lab.tallies["good"].succeeded, lab.lost, lab.health) == (1, None, {"good": Health()})


@pytest.mark.fault(
    stage="run",
    done="a lab sends messages about devices that are not in its order",
    holds="each is refused in one sentence, and the sweep goes on with its devices",
)
@pytest.mark.parametrize("name", ["probes/foreign", "ended/foreign", "probes/a/b", "ended/x y"])
def test_messages_about_foreign_devices_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    # given a lab that reports a device of another lab
    kind, _, device = name.partition("/")
    foreign = Probed(facts=Facts()) if kind == "probes" else Ended(tally=DeviceTally("foreign"), health=Health())
    runs = Runs(LocalStore(tmp_path), (Running(), [DeviceTally("good", succeeded=1)]))
    runs.lie = lambda messages: messages.write(name, foreign)
    told: list[str] = []
    monkeypatch.setattr(board, "tell", told.append)
    # when it measures
    lab = runs.measure(monkeypatch, "good")
    # then that was told once, and its own device counts
    why = f"it sent a message about {device}, which is not a device of its order"
    assert told == [f"lab berlin: {why}; check the machine of the lab"]
    assert (list(lab.tallies), list(lab.probes), lab.lost) == (["good"], ["good"], None)


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({"os": "linux", "platform": "macos-arm64"}, "`platform` is macos-arm64, but `os` is linux"),
        ({"os": "linux", "platform": "linux-../../x"}, "`platform` is 'linux-../../x', which is not a platform"),
        ({"cores": -8}, "the message `probed` has an impossible value (`facts.cores` is -8, which is negative)"),
    ],
)
def test_facts_that_contradict_each_other_make_a_device_unusable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, facts: dict[str, object], sentence: str
) -> None:
    # given a lab that reports such facts of a device
    runs = Runs(LocalStore(tmp_path), (Running(), [DeviceTally("bad"), DeviceTally("good", succeeded=1)]))
    lie = Probed.model_construct(facts=Facts(**facts))  # type: ignore[arg-type]
    runs.lie = lambda messages: messages.write("probes/bad", lie)
    # when it measures
    lab = runs.measure(monkeypatch, "bad", "good")
    # then that one is not used, as the lab is told, and the other one counts
    why = f"bad: lab berlin: {sentence}; check the machine of the lab"
    assert lab.probes["bad"].unusable == why
    answer = Mailbox(runs.store.shelf, f"labs/{runs.orders[0]}").read("admitted/bad", Admitted)
    assert answer is not None
    assert answer.refused == why
    assert lab.tallies["good"].succeeded == 1


def test_a_message_of_a_gigabyte_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # given a lab that writes a huge message, which needs no space on the disk of this test
    store = LocalStore(tmp_path)
    runs = Runs(store, (Running(), [DeviceTally("good", succeeded=1)]))

    def lie(messages: Mailbox) -> None:
        path = Path(store.shelf.location) / messages.folder / "ended" / "bad.json"
        path.parent.mkdir(parents=True)
        with path.open("wb") as stream:
            stream.truncate(1 << 30)

    runs.lie = lie
    # when it measures, then its device has no end but this one
    lab = runs.measure(monkeypatch, "bad", "good")
    stopped_by = str(lab.tallies["bad"].stopped_by)
    assert stopped_by.startswith("bad: lab berlin: ")
    assert "ended/bad.json: has more than 67108864 bytes, which is the limit; check the machine" in stopped_by
    assert lab.tallies["good"].succeeded == 1
