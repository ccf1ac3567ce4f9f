"""The time by which a sweep ends: which moment it is, and which sessions would still end before it."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from tasks.measure.clock import clock_ahead_s
from tasks.measure.finish_by import FinishBy, finish_moment
from tests.fixtures.clock import set_clock
from tests.fixtures.waiting import ENOUGH_S

EVENING = datetime(2026, 1, 2, 22, 0, tzinfo=UTC)


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose local time is one hour ahead of UTC."""
    monkeypatch.setenv("TZ", "CET-1")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("07:00", datetime(2026, 1, 3, 6, 0, tzinfo=UTC)),
        ("23:30", datetime(2026, 1, 2, 22, 30, tzinfo=UTC)),
        ("23:00", datetime(2026, 1, 3, 22, 0, tzinfo=UTC)),
    ],
)
def test_a_time_is_the_next_one_that_the_clock_of_this_machine_shows(
    berlin: None, monkeypatch: pytest.MonkeyPatch, written: str, moment: datetime
) -> None:
    # given a machine whose clock shows 23:00
    set_clock(monkeypatch, EVENING)
    # then a time that has passed, or is now, is tomorrow's
    assert finish_moment(written) == moment
    assert f"{finish_moment(written):%H:%M}" == written


def test_a_session_starts_if_one_of_median_length_would_end_before(monkeypatch: pytest.MonkeyPatch) -> None:
    # given a device that must have ended in an hour
    clock = set_clock(monkeypatch, EVENING)
    finish = FinishBy(EVENING + timedelta(hours=1))
    # then its first session starts, however long it may take
    assert finish.allows_next
    # when sessions took 5, 20 and 20 minutes: 15 are left
    for minutes in (5, 20, 20):
        finish.begin()
        clock.advance(minutes=minutes)
        finish.end()
    # then none starts that takes as long as most
    assert not finish.allows_next
    # and nothing starts after the moment on a device without any session
    assert not FinishBy(clock()).allows_next


@pytest.mark.parametrize(("ahead_s", "is_allowed"), [(600.0, True), (-600.0, False)], ids=["ahead", "behind"])
def test_a_lab_whose_clock_differs_ends_when_the_farm_s_clock_shows_the_time(ahead_s: float, is_allowed: bool) -> None:
    # given a lab that knows how far its clock is ahead of the farm's, and a sweep that ends when the lab's shows now
    moment = datetime.now(UTC)
    token = clock_ahead_s.set(ahead_s)
    try:
        # then it has ten minutes left, or is ten minutes late, by the farm's clock
        assert FinishBy(moment).allows_next is is_allowed
        assert FinishBy(moment).left_s == pytest.approx(max(ahead_s, 0.0), abs=ENOUGH_S)
    finally:
        clock_ahead_s.reset(token)


def test_without_a_time_every_session_starts() -> None:
    assert finish_moment(None) is None
    assert FinishBy(None).allows_next
