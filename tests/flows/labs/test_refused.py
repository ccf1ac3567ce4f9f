"""What a lab refuses or corrects: orders that it cannot follow, clocks that differ, devices that have two names."""

import itertools
from datetime import datetime, timedelta
from importlib.metadata import version

import pytest

from devices.ondevice.facts import read_facts
from flows.labs import controller, lab_run
from flows.labs.lab_run import lab
from flows.labs.protocol import Order
from flows.server import connection
from tests.fixtures.lab_farm import LabFarm
from tests.fixtures.waiting import ENOUGH_S


@pytest.fixture
def farm(farm_with_labs: LabFarm) -> LabFarm:
    return farm_with_labs


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"version": 1, "etfarm": "0.0.1"},
            f"the order was written by etfarm 0.0.1 and read by etfarm {version('etfarm')} ",
        ),
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
        assert before is not None
        assert before.taken_at is not None
        assert abs(before.taken_at - datetime.fromisoformat(each.started_at)) < timedelta(milliseconds=1)


@pytest.mark.thorough
def test_a_phone_that_has_a_name_in_two_labs_is_measured_under_the_first(
    farm: LabFarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given two devices with one serial number: one here, one in a lab
    monkeypatch.setattr(
        "tasks.measure.prepare.read_facts", lambda device: read_facts(device).model_copy(update={"serial": "8A1X"})
    )
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
