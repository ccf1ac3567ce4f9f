"""The difference between the clock of this machine and the Prefect server's."""

import time
from types import SimpleNamespace

import pytest

from flows.server import connection
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
