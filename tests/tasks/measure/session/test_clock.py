"""A session during which the clock of this machine jumped is invalid, and says by how much."""

from pathlib import Path

import pytest

from tasks.measure.clock import ClockWatch
from tests.fixtures.stand_in import GOOD, a_context, measured


class Clocks:
    """The clocks of a machine, each of which is read twice: `passed_s` lie between, and the wall clock jumps."""

    def __init__(self, passed_s: float, jump_s: float) -> None:
        self.time = iter([1000.0, 1000.0 + passed_s + jump_s]).__next__
        self.monotonic = iter([5.0, 5.0 + passed_s]).__next__


@pytest.mark.parametrize(
    ("passed_s", "jump_s", "contradiction"),
    [
        (12.1, 3600.0, "the clock of this machine jumped 3600.0 s forward while 12.1 s passed"),
        (12.1, -3600.0, "the clock of this machine jumped 3600.0 s back while 12.1 s passed"),
        (10.0, 2.0, None),
        (10.0, 2.02, "the clock of this machine jumped 2.0 s forward while 10.0 s passed"),
        (1000.0, -2.9, None),
        (1000.0, -3.1, "the clock of this machine jumped 3.1 s back while 1000.0 s passed"),
    ],
)
def test_clocks_contradict_each_other_beyond_what_ntp_slews(
    monkeypatch: pytest.MonkeyPatch, passed_s: float, jump_s: float, contradiction: str | None
) -> None:
    monkeypatch.setattr("tasks.measure.clock.time", Clocks(passed_s, jump_s))
    assert ClockWatch().contradiction() == (contradiction and f"{contradiction}; it was set or the machine slept")


@pytest.mark.fault
@pytest.mark.parametrize("jump_s", [3600.0, -3600.0], ids=["forward", "back"])
def test_a_session_whose_clock_is_set_is_invalid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump_s: float
) -> None:
    # given a clock that is set by an hour after the session has started
    monkeypatch.setattr("tasks.measure.clock.time", Clocks(12.1, jump_s))
    # when the session is measured
    record = measured(tmp_path, a_context(tmp_path, GOOD))
    # then it does not count, and its reason tells both
    way = "forward" if jump_s > 0 else "back"
    both = f"the clock of this machine jumped 3600.0 s {way} while 12.1 s passed"
    assert (record.status, record.reason_code) == ("invalid", "clock")
    assert record.reason == f"{both}; it was set or the machine slept"
