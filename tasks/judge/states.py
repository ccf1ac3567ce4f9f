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

import numpy as np
from numpy.typing import NDArray

from tasks.judge.figures import LATENCY, percent_change

REMEMBERED = 60
"""How many of the last nights states are searched in."""

_LEAST_IN_STATE = 2  # sessions; a single one may be hot
# Of 8 normal sessions 7 in 100 nights have such a gap, of exponential ones 12; with two states 15 % apart 65.
_CLEAR_GAP = 3.0  # standard deviations inside the clusters
_LEAST_NIGHTS = 4
_LEAST_SHARE = 1 / 3  # of the nights; slow sessions that are rarer lie outside the middle half
_AGREEMENT = 1 / 4  # of the distance: by how much nights may differ in it
_LEAST_SEPARATION = 5.0  # standard deviations inside the clusters of a typical night
_SAME_OFFSET = 1 / 10  # of the distance: an estimate that moves by less is kept
_LEAST_ODDS = 20.0  # 19 of 20
_NEAR = 1 / 4  # of the distance: sessions that are nearer to a state are in it
_MAD_TO_SD = 1.4826

Positions = NDArray[np.float64]


@dataclass(frozen=True)
class Clusters:
    """The sessions of one night, cut at their widest gap."""

    positions: Positions
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
class Placed:
    positions: Positions
    """As if each was in the fast one."""
    is_slow: NDArray[np.bool_]

    @property
    def slow(self) -> int:
        """Number of sessions in the slow state."""
        return int(self.is_slow.sum())

    def __str__(self) -> str:
        return f"{len(self.positions) - self.slow} fast and {self.slow} slow"


def clusters(positions: Positions) -> Clusters | None:
    """Cut sessions at the widest gap that leaves two on each side; None if there are fewer than four."""
    ordered = np.sort(positions)
    if len(ordered) < 2 * _LEAST_IN_STATE:
        return None
    gaps = np.diff(ordered)[_LEAST_IN_STATE - 1 : 1 - _LEAST_IN_STATE]
    cut = int(np.argmax(gaps)) + _LEAST_IN_STATE
    fast, slow = np.median(ordered[:cut]), np.median(ordered[cut:])
    inside = ordered - np.where(np.arange(len(ordered)) < cut, fast, slow)
    scatter = math.sqrt(float((inside**2).sum()) / (len(ordered) - 2))
    return Clusters(ordered, float(slow - fast), scatter, bool(gaps.max() > _CLEAR_GAP * scatter))


def recognised(
    nights: Sequence[Clusters | None], known: States | None = None, least_nights: int = _LEAST_NIGHTS
) -> States | None:
    """Return the two states that enough nights show at about the same distance; None if there are none.

    Enough are `least_nights`, and a third of the nights. `known` is returned as it is while its distance fits.
    """
    able = [night for night in nights if night is not None]
    offsets = np.array([night.offset for night in able if night.is_clear])
    if len(offsets) < max(least_nights, _LEAST_SHARE * len(able)):
        return None
    offset = float(np.median(offsets))
    differ = _MAD_TO_SD * float(np.median(np.abs(offsets - offset)))
    scatter = float(np.median([night.scatter for night in able]))
    if offset < max(LATENCY.least_change, _LEAST_SEPARATION * scatter) or differ > _AGREEMENT * offset:
        return None
    if known is not None and abs(offset - known.offset) <= _SAME_OFFSET * known.offset:
        return known
    mixed = [(slow, len(night.positions)) for night in able if (slow := _slow_sessions(night.positions, offset))]
    return States(offset, sum(slow for slow, _ in mixed) / sum(count for _, count in mixed))


def place(positions: Positions, states: States, level: float | None, *, is_same: bool = False) -> Placed | None:
    """Find the state of each session of a night; None if all are in one state and it is open in which.

    `level` is the former position of the fast state, None if unknown; `is_same` if it is of the same content.
    Sessions that are all in one state are in the usual one if that is 20 times likelier. If not, they are in the state
    whose level is near. But another content at the level of the rarer state is open: it may have changed by as much.
    """
    usual = _place_alone(positions, states)
    log_odds = len(positions) * abs(math.log(states.slow_share / (1 - states.slow_share)))
    is_likelier = log_odds >= math.log(_LEAST_ODDS)
    if level is None or is_likelier or 0 < usual.slow < len(positions):
        return usual
    moved = (float(np.median(positions)) - level) / states.offset
    is_slow = moved > 1 / 2
    if abs(moved - is_slow) > _NEAR:
        return None
    if is_slow == bool(usual.slow):
        return usual
    return _placed(positions, states, len(positions) - usual.slow) if is_same else None


def _place_alone(positions: Positions, states: States) -> Placed:
    """Find the state of each session; if all are in one, take the usual one."""
    slow = _slow_sessions(positions, states.offset)
    return _placed(positions, states, slow or len(positions) * (states.slow_share > 1 / 2))


def _placed(positions: Positions, states: States, slow: int) -> Placed:
    is_slow = np.argsort(np.argsort(positions, kind="stable"), kind="stable") >= len(positions) - slow
    return Placed(positions - states.offset * is_slow, is_slow)


def _slow_sessions(positions: Positions, offset: float) -> int:
    """Return how many of the slowest sessions lie nearer to the others without this offset; 0 for a single state."""
    ordered, count = np.sort(positions), np.arange(len(positions))
    moved = ordered - offset * (count >= len(ordered) - count[:, None])  # a row for each number of slow sessions
    return int(np.argmin(np.abs(moved - np.median(moved, axis=1, keepdims=True)).sum(axis=1)))


def states_of(nights: Sequence[Sequence[float]]) -> States | None:
    """Return the two states that the last nights of a series show; each night is the times of its sessions."""
    return recognised([clusters(np.log(times)) for times in nights[-REMEMBERED:] if min(times) > 0])


@dataclass(frozen=True)
class PlacedSides:
    states: States
    sides: tuple[Placed, Placed]

    def __str__(self) -> str:
        a, b = self.sides
        return f"{self.states}: A {a}, B {b}, compared within each, so the ratio is not that of the times"


def place_sides(a: Positions, b: Positions, states: States | None) -> PlacedSides | str | None:
    """Place both sides of a comparison in these states, or in those that both show; None if there are none.

    Return a text with the reason if the sessions of a side are all in one state and it is open in which. Two sides that
    are in one state each are compared as they are, unless they lie more than half of the distance apart.
    """
    states = states or recognised([clusters(a), clusters(b)], least_nights=2)
    if states is None:
        return None
    is_mixed_a, is_mixed_b = (_slow_sessions(side, states.offset) > 0 for side in (a, b))
    if not is_mixed_a and not is_mixed_b:
        moved = float(np.median(b) - np.median(a))
        if abs(moved) < states.offset / 2:
            return None
        change = percent_change(math.exp(moved))
        return f"{states}: A is all in one, and B is in the other or changed by {change}"
    is_swapped = not is_mixed_a  # sessions in both states show where each is
    first, second = (b, a) if is_swapped else (a, b)
    reference = _place_alone(first, states)
    level = float(np.median(reference.positions))
    other = place(second, states, level)
    if other is None:
        return open_state(second, states, level)
    return PlacedSides(states, (other, reference) if is_swapped else (reference, other))


def in_words(placed: Placed, states: States, frequencies_mhz: Sequence[float | None]) -> str:
    """Return the sentence about a night compared within the states: counts, clocks, and what its baseline is."""
    sessions = f"{placed} tonight{_clocks(placed, states, frequencies_mhz)}"
    return f"{states}: {sessions}, compared within each; the baseline shown has as many of each"


def _clocks(placed: Placed, states: States, frequencies_mhz: Sequence[float | None]) -> str:
    """Return the clocks of both states as text; empty if one is unknown or they explain less than half the offset."""
    clocks = [clock for clock in frequencies_mhz if clock]
    if len(clocks) < len(placed.positions) or not _LEAST_IN_STATE <= placed.slow <= len(clocks) - _LEAST_IN_STATE:
        return ""
    fast_mhz, slow_mhz = np.min(np.array(clocks)[~placed.is_slow]), np.max(np.array(clocks)[placed.is_slow])
    if math.log(fast_mhz / slow_mhz) < states.offset / 2:
        return ""
    return f" (clock after fast ones {fast_mhz:g} MHz or more, after slow ones {slow_mhz:g} MHz or less)"


def open_state(positions: Positions, states: States, level: float | None) -> str:
    """Return why sessions cannot be compared, with their change in either state."""
    distance = float(np.median(positions)) - (level or 0.0)
    fast, slow = (percent_change(math.exp(distance - offset)) for offset in (0.0, states.offset))
    return f"{states}: all {len(positions)} are in one, {fast} if it is the fast one and {slow} if it is the slow one"
