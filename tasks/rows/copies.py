"""Times that were copied and not measured: an execution's from another one, or a session's from another session.

Equal times show a copy only where the clock is fine enough that chance would not give them. How much chance each time
has is estimated from the session itself, so a coarse clock or a very short model is never accused.
"""

import hashlib
import math

import numpy as np
from numpy.typing import NDArray

from tasks.etdump.tree import Runs

Times = NDArray[np.int64]
_FEW = 5
"""In fewer executions nothing shows how much they differ by chance."""
_MOST_EQUAL_STEPS = 1_000
"""A tiny model lasts few steps of a coarse clock, and often the same number."""
_MANY = 10
"""Equal executions beside others, such as a warm-up: half of a session or more,"""
_MANY_EQUAL_STEPS = 10_000
"""each of so many steps, as the times of a machine then differ from each other."""
_ROUNDED_STEP_NS = 42
"""Ticks of 24 MHz, rounded to nanoseconds, look like a clock of 1 ns."""
_MOST_COMPARED = 64
"""Executions, of which all pairs are compared."""
_MOST_ALIKE = 0.5
"""Of the parts of two executions that nobody copied: those of one phase of a coarse clock have more in common."""
_PAIR_BITS = 20
"""Beyond one bit for each doubling of the pairs: one honest session in a million would be refused."""
_SESSION_BITS = 40
"""The same for whole sessions, of which a warehouse has millions."""


def identical_executions(runs: Runs) -> str | None:
    """Return a sentence if many long executions last equally long to the clock's step, as those of no machine do."""
    times, counts = np.unique(runs.execute_ns, return_counts=True)
    time_ns, equal, count = int(times[counts.argmax()]), int(counts.max()), len(runs.execute_ns)
    step_ns = _step_ns(runs) if equal >= _FEW else 1
    are_all = equal == count >= _FEW and time_ns >= _MOST_EQUAL_STEPS * step_ns
    are_most = equal >= max(_MANY, count / 2) and time_ns >= _MANY_EQUAL_STEPS * max(step_ns, _ROUNDED_STEP_NS)
    if not (are_all or are_most):
        return None
    return f"{equal} of {count} executions in the ETDump last {time_ns} ns, on a clock of {step_ns} ns"


def copied_execution(runs: Runs) -> str | None:
    """Return which execution has all the times of another one; None if none has, or if it may be by chance."""
    pair = _equal_executions(runs)
    parts = None if pair is None else _parts_ns(runs)
    if pair is None or parts is None:
        return None
    others, firsts = np.unique(parts, axis=0, return_index=True)
    if len(others) < _FEW:
        return None
    others = parts[np.sort(firsts)[:_MOST_COMPARED]]
    count = len(runs.execute_ns)
    wanted_bits = _PAIR_BITS + math.log2(count * (count - 1) / 2)
    bits = _bits(others)
    is_chance = bits >= 1
    if bits[is_chance].sum() < wanted_bits or _most_alike(others[:, is_chance]) > _MOST_ALIKE:
        return None
    first, second = pair
    return (
        f"in the ETDump, execution {second} is a copy of execution {first}: both last {runs.execute_ns[first]} ns, and "
        f"all their {parts.shape[1]} parts are equal to the nanosecond"
    )


def times_key(runs: Runs) -> str | None:
    """Return what two sessions share if the executions of one are the other's at another time.

    None if two honest sessions could have it: the closest executions then differ by few steps of the clock.
    """
    times = runs.execute_ns
    if len(times) < _FEW:
        return None
    closest_ns = float(np.percentile(np.diff(np.sort(times)), 25))
    bits = len(times) * math.log2(max(closest_ns / _step_ns(runs), 1))
    return hashlib.sha256(times.tobytes()).hexdigest() if bits >= _SESSION_BITS else None


def _equal_executions(runs: Runs) -> tuple[int, int] | None:
    """Return two executions whose parts last equally long."""
    times, counts = np.unique(runs.execute_ns, return_counts=True)
    if not (counts > 1).any() or (parts := _parts_ns(runs)) is None:
        return None
    seen: dict[bytes, int] = {}
    for at in np.flatnonzero(np.isin(runs.execute_ns, times[counts > 1])).tolist():
        first = seen.setdefault(parts[at].tobytes(), at)
        if first != at:
            return first, at
    return None


def _parts_ns(runs: Runs) -> Times | None:
    """Return the parts of each execution, a row for each: the time between two moments, and of delegated operators.

    Delegates may use other clocks, so what is between their operators is not compared. None if the executions do not
    consist of the same events.
    """
    count = len(runs.execute_ns)
    each = len(runs.node) // max(count, 1)
    if not each or not np.array_equal(runs.run, np.repeat(np.arange(count), each)):
        return None
    node = runs.node.reshape(count, each)
    if (node != node[0]).any():
        return None
    is_delegated = np.array([each.kind == "delegated" for each in runs.tree])[node[0]]
    start, lasted = runs.start_ns.reshape(count, each), runs.dur_ns.reshape(count, each)
    of_runtime = [start[:, ~is_delegated], (start + lasted)[:, ~is_delegated]]
    moments = np.hstack([np.zeros((count, 1), np.int64), *of_runtime, runs.execute_ns[:, None]])
    return np.hstack([np.diff(np.sort(moments, axis=1), axis=1), lasted[:, is_delegated]])


def _bits(parts: Times) -> NDArray[np.float64]:
    """Return how much chance is in each part, by how often two executions have the same."""
    pairs = len(parts) * (len(parts) - 1) / 2
    return -np.log2([max(_equal_pairs(column), 1 / pairs) for column in parts.T])


def _equal_pairs(times: Times) -> float:
    """Return the share of the pairs of times that are equal."""
    counts = np.unique(times, return_counts=True)[1]
    return float((counts * (counts - 1)).sum() / (len(times) * (len(times) - 1)))


def _most_alike(parts: Times) -> float:
    """Return the share of parts in which two different executions agree the most: those of one phase of the clock."""
    alike = (parts[:, None] == parts[None]).mean(axis=2)
    np.fill_diagonal(alike, 0)
    return float(alike.max())


def _step_ns(runs: Runs) -> int:
    """Return the step of the clock, by the events that the runtime itself timed."""
    nodes = [index for index, node in enumerate(runs.tree) if node.kind != "delegated"]
    return max(int(np.gcd.reduce(np.concatenate([runs.execute_ns, runs.dur_ns[np.isin(runs.node, nodes)]]))), 1)
