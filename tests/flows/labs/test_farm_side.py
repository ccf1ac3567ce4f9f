"""What a sweep takes over from the reports of a lab."""

from pathlib import Path
from uuid import UUID, uuid4

import pytest
from prefect.client.schemas.objects import State
from prefect.states import Crashed, Pending, Running

from devices.inventory import DeviceSpec
from devices.ondevice.facts import Facts
from flows.device.job import DeviceTally
from flows.labs import farm_side
from flows.labs.mailbox import Mailbox
from flows.labs.messages import Order, ProbeReport, Report
from tasks.store.store import LocalStore
from tests.fixtures.lab_workers import put_in_place
from tests.fixtures.plans import NIGHT, a_spec


class Runs:
    """Stand-in for the runs of a lab: the state that each has from the start on, and the tallies that it reports."""

    def __init__(self, store: LocalStore, *planned: tuple[State, list[DeviceTally]]) -> None:
        self.store, self.planned = store, list(planned)
        self.states: dict[UUID, State] = {}
        self.cancelled: list[UUID] = []

    def start(self, site: str, order: str, bundles: str) -> UUID:
        run = uuid4()
        self.states[run], tallies = self.planned.pop(0)
        if tallies:
            probes = {tally.device: ProbeReport(facts=Facts()) for tally in tallies}
            report = Report(probes=probes, tallies={tally.device: tally for tally in tallies})
            Mailbox(self.store.shelf, order).write_report(report)
        return run

    def cancel(self, run: UUID, _why: str) -> None:
        self.cancelled.append(run)

    def measure(self, monkeypatch: pytest.MonkeyPatch, *names: str) -> farm_side.Lab:
        """Let a lab of these devices measure with the runs."""
        put_in_place(self, monkeypatch)
        lab = farm_side.Lab("berlin", [DeviceSpec(name=name, transport="local", site="berlin") for name in names])

        def order(beat: int) -> Order:
            return Order(beat=beat, site="berlin", spec=a_spec(), sweep=NIGHT, devices=lab.devices)

        lab.measure(self.store, order, lambda _: None)
        return lab


def test_what_a_killed_run_measured_is_not_counted_as_already_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a lab whose first run is killed when one device has ended, and a second run that finds that done
    runs = Runs(
        LocalStore(tmp_path),
        (Crashed(message="killed"), [DeviceTally("first", succeeded=4)]),
        (Running(), [DeviceTally("first", already_done=4), DeviceTally("second", succeeded=4)]),
    )
    # when it measures
    lab = runs.measure(monkeypatch, "first", "second")
    # then each device has the counts of the run that measured it
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
