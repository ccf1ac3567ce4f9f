"""What a sweep takes over from the runs of a lab."""

from pathlib import Path
from uuid import UUID, uuid4

import pytest
from prefect.client.schemas.objects import State
from prefect.states import Crashed, Pending, Running

from devices.inventory import DeviceSpec
from devices.ondevice.facts import Facts
from flows.device.job import DeviceTally
from flows.labs import farm_side
from flows.labs.messages import Ended, Mailbox, Order, Probed, parsed
from flows.labs.sharing import Sharing
from flows.live_exports import LiveExports
from flows.part import Admission, Part
from tasks.measure.health import Health
from tasks.store.store import LocalStore
from tasks.store.var import Var
from tests.fixtures.lab_workers import put_in_place
from tests.fixtures.plans import NIGHT, a_spec


class Runs:
    """Stand-in for the runs of a lab: the state that each has from the start on, and the tallies that it reports."""

    def __init__(self, store: LocalStore, *planned: tuple[State, list[DeviceTally]]) -> None:
        self.store, self.planned = store, list(planned)
        self.states: dict[UUID, State] = {}
        self.cancelled: list[UUID] = []
        self.ordered: list[list[str]] = []
        self.orders: list[str] = []

    def start(self, site: str, order: str, bundles: str) -> UUID:
        run = uuid4()
        self.states[run], tallies = self.planned.pop(0)
        messages = Mailbox(self.store.shelf, f"labs/{order}")
        text = self.store.shelf.read(f"labs/{order}/order.json")
        assert text is not None
        self.ordered.append([device.name for device in parsed(Order, text).devices])
        for name in self.ordered[-1]:
            messages.write(f"probes/{name}", Probed(facts=Facts()))
        for tally in tallies:
            messages.write(f"ended/{tally.device}", Ended(tally=tally, health=Health()))
        self.orders.append(order)
        return run

    def admitted(self, number: int) -> list[str]:
        """The devices that the farm has admitted to a run."""
        return self.store.shelf.names(f"labs/{self.orders[number]}/admitted")

    def cancel(self, run: UUID, _why: str) -> None:
        self.cancelled.append(run)

    def measure(self, monkeypatch: pytest.MonkeyPatch, *names: str) -> farm_side.Lab:
        """Let a lab of these devices measure with the runs."""
        put_in_place(self, monkeypatch)
        lab = farm_side.Lab("berlin", [DeviceSpec(name=name, transport="local", site="berlin") for name in names])
        part = Part(a_spec(), NIGHT, self.store, Var(self.store.root), {}, None, LiveExports(), lambda _: Admission())
        order = Order(run=uuid4(), spec=a_spec(), sweep=NIGHT, devices=lab.devices)
        lab.measure(order, Sharing(part))
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
