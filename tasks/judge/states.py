"""Devices whose sessions have two states: recognised by a gap that recurs, and compared within each.

A state is anything that slows a session by the same ratio: cores of another cluster, another frequency, other pages.
Chance decides how many sessions of a night are in it, and the time of the night moves with that number. Positions are
logarithms of times, so the distance of both states is the same for every content.

Simulated, 60 nights of 8 sessions with a CV of 2 %: two states are recognised in none of 60 series with one state
(normal, heavy tails, AR(1), hot sessions), in 78 % of those with 30 % of the sessions 10 % slower, in all with 15 %.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np
from numpy.typing import NDArray

from tasks.bundle.robust_statistics import MAD_TO_SD
from tasks.judge.figures import LATENCY, percent_change

REMEMBERED = 60
"""How many of the last nights states are searched in."""

_MIN_STATE_SESSIONS = 2  # sessions; a single one may be hot
# Of 8 normal sessions 7 in 100 nights have such a gap, of exponential ones 12; with two states 15 % apart 65.
_CLEAR_GAP = 3.0  # standard deviations inside the clusters
_MIN_NIGHTS = 4
_MIN_SHARE = 1 / 3  # of the nights; slow sessions that are rarer lie outside the middle half
_AGREEMENT = 1 / 4  # of the distance: by how much nights may differ in it
_MIN_SEPARATION = 5.0  # standard deviations inside the clusters of a typical night
_SAME_OFFSET = 1 / 10  # of the distance: an estimate that moves by less is kept
_MIN_ODDS = 20.0  # 19 of 20
_NEAR = 1 / 4  # of the distance: sessions that are nearer to a state are in it

Positions = NDArray[np.float64]


class HistoryNeeded(Exception):
    """What was kept of earlier nights is not enough to judge the next one: the first night must come first again."""


@dataclass(frozen=True)
class Clusters:
    """The sessions of one night, cut at their widest gap."""

    positions: Positions
    """Empty if only the other figures were kept."""
    offset: float
    """How far the medians of both clusters are apart."""
    scatter: float
    """Standard deviation inside the clusters."""
    is_clear: bool
    """Whether the gap is wide beside that."""


@dataclass(frozen=True)
class States:
    offset: float
    """How far the slow one is from the fast one, in positions."""
    slow_share: float
    """Of the sessions of nights with both states."""

    def __str__(self) -> str:
        return f"sessions of this device have two states, {100 * math.expm1(self.offset):.1f} % apart"


@dataclass(frozen=True)
class AssignedSessions:
    """The sessions of a night, each in one of two states."""

    positions: Positions
    """As if each session was in the fast state."""
    is_slow: NDArray[np.bool_]

    @property
    def slow(self) -> int:
        return int(self.is_slow.sum())

    def __str__(self) -> str:
        return f"{len(self.positions) - self.slow} fast and {self.slow} slow"


def cluster_sessions(positions: Positions) -> Clusters | None:
    """Cut sessions at the widest gap that leaves two on each side; None if there are fewer than four."""
    ordered: list[float] = sorted(positions.tolist())
    if len(ordered) < 2 * _MIN_STATE_SESSIONS:
        return None
    gaps = [after - before for before, after in pairwise(ordered)][_MIN_STATE_SESSIONS - 1 : 1 - _MIN_STATE_SESSIONS]
    cut = gaps.index(max(gaps)) + _MIN_STATE_SESSIONS
    groups = [ordered[:cut], ordered[cut:]]
    fast, slow = map(median, groups)
    inside = math.fsum(
        (each - center) ** 2 for group, center in zip(groups, (fast, slow), strict=True) for each in group
    )
    scatter = math.sqrt(inside / (len(ordered) - 2))
    return Clusters(np.array(ordered), slow - fast, scatter, max(gaps) > _CLEAR_GAP * scatter)


def recognize_states(
    nights: Sequence[Clusters | None], current: States | None = None, min_nights: int = _MIN_NIGHTS
) -> States | None:
    """Return the two states that enough nights show at about the same distance; None if there are none.

    Enough are `min_nights`, and a third of the nights. `current` is returned as it is while its distance fits. Other
    states need the positions of all sessions; raises HistoryNeeded where they were not kept.
    """
    clustered = [night for night in nights if night is not None]
    offsets = [night.offset for night in clustered if night.is_clear]
    if len(offsets) < max(min_nights, _MIN_SHARE * len(clustered)):
        return None
    offset = median(offsets)
    spread = MAD_TO_SD * median([abs(each - offset) for each in offsets])
    scatter = median([night.scatter for night in clustered])
    if offset < max(LATENCY.min_change, _MIN_SEPARATION * scatter) or spread > _AGREEMENT * offset:
        return None
    if current is not None and abs(offset - current.offset) <= _SAME_OFFSET * current.offset:
        return current
    if not all(len(night.positions) for night in clustered):
        raise HistoryNeeded
    mixed = [(slow, len(night.positions)) for night in clustered if (slow := _slow_sessions(night.positions, offset))]
    return States(offset, sum(slow for slow, _ in mixed) / sum(count for _, count in mixed))


def assign_states(
    positions: Positions, states: States, level: float | None, *, is_same_content: bool = False
) -> AssignedSessions | None:
    """Return the sessions of a night with their states; None if all are in one state and it is open in which.

    `level` is the former position of the fast state, None if unknown; `is_same_content` if it is of the same content.
    Sessions that are all in one state are in the usual one if that is 20 times likelier. If not, they are in the state
    whose level is near. But another content at the level of the rarer state is open: it may have changed by as much.
    """
    usual = _assign_alone(positions, states)
    log_odds = len(positions) * abs(math.log(states.slow_share / (1 - states.slow_share)))
    is_likelier = log_odds >= math.log(_MIN_ODDS)
    if level is None or is_likelier or 0 < usual.slow < len(positions):
        return usual
    moved = (float(np.median(positions)) - level) / states.offset
    is_slow = moved > 1 / 2
    if abs(moved - is_slow) > _NEAR:
        return None
    if is_slow == bool(usual.slow):
        return usual
    return _assign_slowest(positions, states, len(positions) - usual.slow) if is_same_content else None


def _assign_alone(positions: Positions, states: States) -> AssignedSessions:
    """Return the sessions with their states by their gap alone; if all are in one state, it is the usual one."""
    slow = _slow_sessions(positions, states.offset)
    return _assign_slowest(positions, states, slow or len(positions) * (states.slow_share > 1 / 2))


def _assign_slowest(positions: Positions, states: States, slow: int) -> AssignedSessions:
    """Put the slowest sessions, `slow` of them, into the slow state, and all others into the fast one."""
    is_slow = np.argsort(np.argsort(positions, kind="stable"), kind="stable") >= len(positions) - slow
    return AssignedSessions(positions - states.offset * is_slow, is_slow)


def _slow_sessions(positions: Positions, offset: float) -> int:
    """Return how many of the slowest sessions lie nearer to the others without this offset; 0 for a single state."""
    ordered, count = np.sort(positions), np.arange(len(positions))
    moved = ordered - offset * (count >= len(ordered) - count[:, None])  # a row for each number of slow sessions
    return int(np.argmin(np.abs(moved - np.median(moved, axis=1, keepdims=True)).sum(axis=1)))


def states_from_times(nights: Sequence[Sequence[float]]) -> States | None:
    """Return the two states that the last nights of a series show; each night is the times of its sessions."""
    return recognize_states([cluster_sessions(np.log(times)) for times in nights[-REMEMBERED:] if min(times) > 0])


def assign_sides(
    a: Positions, b: Positions, states: States | None
) -> tuple[tuple[Positions, Positions] | None, str] | None:
    """Move both sides of a comparison into the fast one of these states, or of those that both show.

    Return their positions and a note; no positions if the sessions of a side are all in one state and it is open in
    which. Return None if there are no states, and if each side is in one state: these are compared as they are, unless
    they lie more than half of the distance apart.
    """
    states = states or recognize_states([cluster_sessions(a), cluster_sessions(b)], min_nights=2)
    if states is None:
        return None
    is_mixed_a, is_mixed_b = (_slow_sessions(side, states.offset) > 0 for side in (a, b))
    if not is_mixed_a and not is_mixed_b:
        moved = float(np.median(b) - np.median(a))
        if abs(moved) < states.offset / 2:
            return None
        change = percent_change(math.exp(moved))
        return None, f"{states}: A is all in one, and B is in the other or changed by {change}"
    # Sessions in both states show where each is.
    mixed, other = (a, b) if is_mixed_a else (b, a)
    reference = _assign_alone(mixed, states)
    level = float(np.median(reference.positions))
    assigned = assign_states(other, states, level)
    if assigned is None:
        return None, describe_open_state(other, states, level)
    of_a, of_b = (reference, assigned) if is_mixed_a else (assigned, reference)
    note = f"{states}: A {of_a}, B {of_b}, compared within each, so the ratio is not that of the times"
    return (of_a.positions, of_b.positions), note


def describe_assignment(assigned: AssignedSessions, states: States, frequencies_mhz: Sequence[float | None]) -> str:
    """Return the sentence about a night compared within the states: counts, clocks if known, and its baseline."""
    clocks, fast = [clock for clock in frequencies_mhz if clock], len(assigned.positions) - assigned.slow
    text = f"{states}: {assigned} in this night"
    if len(clocks) == fast + assigned.slow and min(fast, assigned.slow) >= _MIN_STATE_SESSIONS:
        fast_mhz, slow_mhz = np.min(np.array(clocks)[~assigned.is_slow]), np.max(np.array(clocks)[assigned.is_slow])
        if math.log(fast_mhz / slow_mhz) >= states.offset / 2:  # clocks explain at least half of the offset
            text += f" (clock after fast ones {fast_mhz:g} MHz or more, after slow ones {slow_mhz:g} MHz or less)"
    return f"{text}, compared within each; the baseline shown has as many of each"


def describe_open_state(positions: Positions, states: States, level: float | None) -> str:
    """Return why sessions cannot be compared, with their change in either state."""
    distance = float(np.median(positions)) - (level or 0.0)
    fast, slow = (percent_change(math.exp(distance - offset)) for offset in (0.0, states.offset))
    return f"{states}: all {len(positions)} are in one, {fast} if it is the fast one and {slow} if it is the slow one"
