"""How far the clock of this machine is from the Prefect server's, and what a sweep tells about it."""

import time
from types import SimpleNamespace

import pytest

from flows import sweep as sweeps
from flows.progress import board
from flows.server import connection
from tests.fixtures.stand_in_farm import StandInFarm
from tests.fixtures.waiting import ENOUGH_S


@pytest.mark.parametrize("moved_s", [0.0, 3600.0, -3600.0])
def test_the_clock_difference_is_measured_by_the_answer_of_the_server(
    server: str, monkeypatch: pytest.MonkeyPatch, moved_s: float
) -> None:
    # given a real server, and a machine whose clock is set an hour ahead or behind
    monkeypatch.setenv("PREFECT_API_URL", server)
    monkeypatch.setattr(connection, "time", SimpleNamespace(time=lambda: time.time() + moved_s))
    # then the difference is known to a few seconds
    assert connection.clock_difference_s() == pytest.approx(moved_s, abs=ENOUGH_S)


def test_without_a_server_of_several_sweeps_no_clock_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    assert connection.clock_difference_s() is None


@pytest.mark.fault
def test_a_sweep_begins_with_a_sentence_about_a_clock_that_is_wrong(
    stand_in_farm: StandInFarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a farm whose clock is an hour ahead
    monkeypatch.setattr(sweeps, "clock_difference_s", lambda: 3600.0)
    told: list[str] = []
    monkeypatch.setattr(board, "report", told.append)
    # when a sweep is run, then it says so and measures
    assert stand_in_farm.sweep().is_completed()
    both = "this machine's clock is 3600 s ahead of the Prefect server's"
    assert told == [f"{both}; set the one that is wrong, for example with NTP"]
