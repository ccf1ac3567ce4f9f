"""Which sessions a sweep with `interval_percent` leaves out: those behind a clear answer."""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product

import numpy as np
import pytest

from tasks.bundle.record import SessionRecord
from tasks.bundle.robust_statistics import ALERT_SESSIONS
from tasks.bundle.runner_stats import Stats
from tasks.judge.comparison import compare
from tasks.measure.clock import FinishBy, clock_ahead_s, finish_moment
from tasks.measure.early_stopping import EarlyStopping, median_interval_percent
from tasks.measure.plan import DISCARDED_REPETITION, FIRST_SESSION, PlannedSession, planned_session, remaining_sessions
from tasks.measure.sweep_file import SweepSpec
from tests.fixtures.clock import set_clock
from tests.fixtures.plans import a_spec, ended, planned
from tests.fixtures.waiting import ENOUGH_S

MOST = 20
PERCENT = 2.0
Noise = Callable[[PlannedSession], float]


def a_sweep(**changes: object) -> SweepSpec:
    two = {"precisions": ["fp32"], "variants": ["sme2_on", "sme2_off"]}
    return a_spec(**{"sessions": MOST, "interval_percent": PERCENT, **two, **changes})


def steady(session: PlannedSession) -> float:
    return 0.001


def linear_is_noisy(session: PlannedSession) -> float:
    return 0.1 if session.cell.model == "linear" and session.cell.variant == "sme2_on" else 0.001


def measured(session: PlannedSession, noise: Noise = steady) -> SessionRecord:
    """A session that succeeded, with the same figure whenever it is measured."""
    if session.repetition == DISCARDED_REPETITION:
        return ended(session, "invalid", FIRST_SESSION)
    move = math.sin(session.repetition * 2.4 + (session.cell.variant == "sme2_on"))
    latency_ns = round(1e6 * (1 + noise(session) * move))
    stats = Stats(execution_ns=[9_000_000, *[latency_ns] * 5])
    return ended(session, "succeeded").model_copy(update={"stats": stats})


def run(spec: SweepSpec, records: Iterable[SessionRecord] = (), noise: Noise = steady) -> list[SessionRecord]:
    """Measure what a sweep still needs, as the device's flow does."""
    before = list(records)
    sessions = planned(spec)
    enough = EarlyStopping(sessions, before, spec.interval_percent)
    new = []
    left = enough.needed(remaining_sessions(sessions, before))
    while left:
        new.append(measured(left.pop(0), noise))
        enough.add(new[-1])
        needed = enough.needed(left)
        assert enough.ends_group(planned_session(new[-1]), left) == (needed != left)
        left = needed
    return new


def sessions_of(records: Iterable[SessionRecord]) -> dict[tuple[str, str], int]:
    return dict(Counter((record.model.name, record.variant) for record in records if record.status == "succeeded"))


def test_a_clear_answer_ends_after_eight_sessions_and_an_unclear_one_after_all() -> None:
    # given a model without noise and one whose sessions scatter by several percent with SME2
    records = run(a_sweep(), noise=linear_is_noisy)
    # then the first one has the fewest sessions that can confirm a verdict, and on and off have as many
    expected = {("conv", variant): ALERT_SESSIONS for variant in ("sme2_on", "sme2_off")}
    assert sessions_of(records) == {**expected, ("linear", "sme2_on"): MOST, ("linear", "sme2_off"): MOST}


def test_a_sweep_that_was_killed_ends_at_the_same_session() -> None:
    # given a model that ends somewhere between the first and the last possible session
    spec = a_sweep(models=["linear"])
    uninterrupted = run(spec, noise=lambda session: 0.02)
    assert ALERT_SESSIONS < sessions_of(uninterrupted)["linear", "sme2_on"] < MOST
    # when it is killed after any number of sessions and started again
    for number in range(0, len(uninterrupted), 3):
        before = uninterrupted[:number]
        after = run(spec, before, noise=lambda session: 0.02)
        assert [*before, *after] == uninterrupted
    # and a third start measures nothing
    assert run(spec, uninterrupted, noise=lambda session: 0.02) == []


def test_a_failed_session_is_repeated_also_where_there_are_enough() -> None:
    # given a group that ended early, one of whose sessions failed
    spec = a_sweep(models=["linear"])
    records = run(spec)
    failed = next(record for record in records if record.repetition == 3)
    again = [record for record in records if record is not failed]
    first_try = next(session for session in planned(spec) if session.session_id == failed.session_id)
    after = run(spec, [*again, ended(first_try, "failed", "device_lost")])
    # then that session is repeated, and no other
    assert [(record.repetition, record.variant, record.attempt) for record in after] == [(3, failed.variant, 2)]


def test_sessions_that_do_not_count_end_nothing() -> None:
    # given records without the times of executions, of failed sessions, and of another model file
    spec = a_sweep(models=["linear"])
    records = run(spec)
    useless = [
        [record.model_copy(update={"stats": Stats(load_ns=5)}) for record in records],
        [record.model_copy(update={"stats": None}) for record in records],
        [record.model_copy(update={"status": "invalid", "reason_code": "thermal"}) for record in records],
        [measured(session) for session in planned(spec, pte="other")],
    ]
    last = planned(spec)[-1]
    assert not EarlyStopping(planned(spec), records, PERCENT).needs(last)
    for each in useless:
        assert EarlyStopping(planned(spec), each, PERCENT).needs(last)
    # and forgotten sessions
    assert EarlyStopping(planned(spec), records, PERCENT, {record.session_id for record in records}).needs(last)


def test_when_the_device_is_lost_only_sessions_that_are_needed_anyway_fail() -> None:
    # given a noisy group after its tenth round, and one that ended
    spec = a_sweep()
    sessions = planned(spec)
    done = [measured(session, linear_is_noisy) for session in sessions if session.repetition < 10]
    enough = EarlyStopping(sessions, done, PERCENT)
    left = [session for session in sessions if session.repetition >= 10]
    # then the next round of the noisy one is certain
    assert [(session.cell.model, session.repetition) for session in enough.certain(left)] == [("linear", 10)] * 2
    # and before the first session, those that every group gets
    fresh = EarlyStopping(sessions, [], PERCENT).certain(sessions)
    assert sorted({session.repetition for session in fresh}) == [DISCARDED_REPETITION, *range(ALERT_SESSIONS)]
    # and a session that failed before, wherever it is
    assert enough.certain([replace(left[-1], attempt=2)]) == [replace(left[-1], attempt=2)]
    # and all of them where nothing ends early
    assert EarlyStopping(sessions, [], None).certain(sessions) == sessions


def test_the_interval_is_that_of_signed_ranks() -> None:
    # given all choices of signs of the ranks 1 to 8, which are equally likely without a shift
    sums = sorted(
        sum(rank for rank, sign in zip(range(1, 9), signs, strict=True) if sign) for signs in product((0, 1), repeat=8)
    )
    cut = next(k for k in range(37) if sum(value <= k for value in sums) > 0.025 * len(sums))
    # then the interval leaves out as many averages of pairs at each end as may lie there by chance
    figures = [1.0, 1.01, 1.03, 1.06, 1.1, 1.15, 1.21, 1.28]
    averages = sorted(math.log(a * b) / 2 for i, a in enumerate(figures) for b in figures[i:])
    width = 100 * (math.exp(averages[-cut] - averages[cut - 1]) - 1)
    assert median_interval_percent(figures) == pytest.approx(width)


def test_stopping_by_the_width_leaves_the_intervals_of_comparisons_right() -> None:
    # given two variants with a ratio of 1.05 that end together, when both medians are known to 4 %
    generator = np.random.default_rng(5)
    held = []
    for _ in range(400):
        a, b = np.exp(generator.normal(0, 0.02, (2, 40))) * [[1], [1.05]]
        enough = (n for n in range(ALERT_SESSIONS, 40) if max(map(median_interval_percent, (a[:n], b[:n]))) < 4)
        n = next(enough, 40)
        got = compare(a[:n].tolist(), b[:n].tolist())
        assert got.low is not None
        assert got.high is not None
        held.append(got.low <= 1.05 <= got.high)
    # then 95 % of the intervals hold it, give or take what 400 repetitions leave open
    assert 0.925 <= np.mean(held) <= 0.98


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
