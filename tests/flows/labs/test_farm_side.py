"""What a sweep takes over from the reports of a lab."""

from pathlib import Path
from uuid import UUID, uuid4

import pytest
from prefect.client.schemas.objects import State
from prefect.states import Crashed, Pending, Running

from devices.inventory import DeviceSpec
from devices.ondevice.facts import Facts
from flows.device.job import DeviceTally
from flows.labs import deployment, farm_side
from flows.labs.mailbox import Mailbox
from flows.labs.messages import Order, ProbeReport, Report
from tasks.store.store import LocalStore
from tests.fixtures.plans import NIGHT, a_spec


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> dict[UUID, State]:
    """The states of a lab's runs at the server, asked for all the time."""
    known: dict[UUID, State] = {}
    monkeypatch.setattr(farm_side, "POLL_S", 0.01)
    monkeypatch.setattr(deployment, "state_of", known.get)
    monkeypatch.setattr(deployment, "end_below", lambda *_: None)
    return known


def a_lab(*names: str) -> farm_side.Lab:
    return farm_side.Lab("berlin", [DeviceSpec(name=name, transport="local", site="berlin") for name in names])


def measure(lab: farm_side.Lab, store: LocalStore) -> None:
    def order(beat: int) -> Order:
        return Order(beat=beat, site="berlin", spec=a_spec(), sweep=NIGHT, devices=lab.devices)

    lab.measure(store, order, lambda _: None)


def report(store: LocalStore, order: str, *tallies: DeviceTally) -> None:
    """Write the report of a run that measured on these devices."""
    probes = {tally.device: ProbeReport(facts=Facts()) for tally in tallies}
    written = Report(probes=probes, tallies={tally.device: tally for tally in tallies})
    Mailbox(store.shelf, order).write_report(written)


def test_what_a_killed_run_measured_is_not_counted_as_already_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, states: dict[UUID, State]
) -> None:
    # given a lab whose first run is killed when one device has ended, and a second run that finds that done
    store = LocalStore(tmp_path)
    again = [DeviceTally("first", already_done=4), DeviceTally("second", succeeded=4)]
    reports = [[DeviceTally("first", succeeded=4)], again]

    def start(site: str, order: str, bundles: str) -> UUID:
        report(store, order, *reports.pop(0))
        run = uuid4()
        states[run] = Crashed(message="killed") if reports else Running()
        return run

    monkeypatch.setattr(deployment, "start", start)
    # when it measures
    lab = a_lab("first", "second")
    measure(lab, store)
    # then each device has the counts of the run that measured it
    assert (lab.lost, lab.tallies["first"].succeeded, lab.tallies["second"].succeeded) == (None, 4, 4)


@pytest.mark.fault(
    stage="plan",
    done="kill -9 of a lab's worker between taking a sweep's run and starting it",
    holds="the sweep gives the lab another run, which its new worker takes",
)
def test_a_lab_whose_worker_is_killed_before_it_starts_the_run_gets_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, states: dict[UUID, State]
) -> None:
    # given a lab whose first run stays pending, and a second one that measures
    store = LocalStore(tmp_path)
    cancelled: list[UUID] = []

    def start(site: str, order: str, bundles: str) -> UUID:
        run = uuid4()
        states[run] = Running() if states else Pending()
        if states[run].is_running():
            report(store, order, DeviceTally("first"))
        return run

    monkeypatch.setattr(farm_side, "TAKEN_S", 0.05)
    monkeypatch.setattr(deployment, "start", start)
    monkeypatch.setattr(deployment, "cancel", lambda run, _: cancelled.append(run))
    # when it measures
    lab = a_lab("first")
    measure(lab, store)
    # then the first run is cancelled, and the second one has measured
    assert cancelled == list(states)[:1]
    assert (lab.lost, list(lab.tallies)) == (None, ["first"])
