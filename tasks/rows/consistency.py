"""What a runner states about its session in several places must fit together: its ETDump, its stats.json and its job.

Otherwise wrong times of a faulty or dishonest runner would go unnoticed. The limits come from 278 sessions of etfarm's
runner on x86-64, with executions of 10 us to 80 ms. Its time around an execution was longer than the ETDump's by 0.2 us
or more in each execution, and by 8.5 us or less in the middle of a session. All that it timed was shorter than its job,
whose clock has steps of 10 ms.

Times may be copied and not measured: an execution's from another one, or a session's from another session. Equal times
show a copy only where the clock is so fine that chance would not give them. The scatter of the times is estimated from
the session itself, so a coarse clock or a very short model is never taken for a copy.
"""

import hashlib
import math
import zlib

import numpy as np
from numpy.typing import NDArray

from tasks.bundle.claims import Claims, contradiction_in
from tasks.bundle.runner_stats import Stats
from tasks.etdump.tree import Runs

_CLOCK_STEP_NS = 100
"""An execution may be longer in the ETDump than around it by this: both are of one clock, whose ticks are rounded."""
_MIN_COVERED_SHARE = 0.8
"""Share of the time around an execution that the ETDump must show, in the execution where both differ the least."""
_MAX_OVERHEAD_NS = 50_000
"""A smaller share is accepted up to this difference: recording takes longer than a tiny model."""
_MIN_COMPARED = 3
"""With fewer executions, the share is not checked: another process may have run between the clock readings."""
_WALL_SLACK_S = 0.1
_Times = NDArray[np.int64]
_MIN_EXECUTIONS = 5
"""In fewer executions, how much they differ by chance is unknown."""
_MAX_EQUAL_STEPS = 1_000
"""From this on, not all executions may be equal; a tiny model lasts fewer steps, and often the same number."""
_MIN_EQUAL = 10
"""Equal executions beside others, such as a warm-up, are refused from this on, if they are half of the session"""
_MIN_EQUAL_STEPS = 10_000
"""and each lasts this many steps: the times of a machine then differ from each other."""
_ROUNDED_STEP_NS = 42
"""Least step of that limit: ticks of 24 MHz, rounded to nanoseconds, look like a clock of 1 ns."""
_MAX_COMPARED = 64
"""Different executions, of which all pairs are compared."""
_MAX_ALIKE_SHARE = 0.5
"""Share of equal parts in two executions that are not copies; with more, a coarse clock explains equal ones."""
_PAIR_BITS = 20
"""Bits of chance, plus one for each doubling of the pairs: one honest session in a million would be refused."""
_SESSION_BITS = 40
"""The same for whole sessions, of which a warehouse has millions."""


def contradiction_between(runs: Runs, claims: Claims) -> str | None:
    """Return how the parts of a successful session contradict each other, a sentence; None if they do not."""
    cause = (
        contradiction_in(claims)
        or _executions_overlap(runs)
        or identical_executions(runs)
        or copied_execution(runs)
        or _longer_than_the_job(runs, claims)
    )
    return cause or (_other_execution_times(runs, claims.stats) if claims.stats else None)


def checksum_contradiction(etdump: bytes, stats: Stats | None) -> str | None:
    """Return a sentence if the CRC-32 of an ETDump is not that in stats.json; None if it is, or none is stated."""
    computed, reported = zlib.crc32(etdump), stats.etdump_crc32 if stats else None
    if reported is None or reported == computed:
        return None
    return f"model.etdump has CRC-32 {computed:08x}, and stats.json states {reported:08x}"


def copied_etdump(etdump: bytes, runs: Runs, session_id: str, seen: dict[str, str]) -> str | None:
    """Return that an ETDump, or the times in it, are those of another session of the device; None if they are not.

    `seen` has the sessions of a device by the hashes of their ETDumps and times; this session is added.
    """
    sha256 = hashlib.sha256(etdump).hexdigest()
    if (other := seen.setdefault(sha256, session_id)) != session_id:
        return f"its ETDump is that of session {other}: both have SHA-256 {sha256}"
    key = times_key(runs)
    if key is None or (other := seen.setdefault(key, session_id)) == session_id:
        return None
    return copied_times(runs, other)


def copied_times(runs: Runs, other: str) -> str:
    """Return the sentence about a session with the times of another one."""
    first, last = runs.execute_ns[0], runs.execute_ns[-1]
    count = len(runs.execute_ns)
    return f"its {count} executions, from {first} ns to {last} ns, last exactly as long as those of session {other}"


def _executions_overlap(runs: Runs) -> str | None:
    """Return a sentence if an execution begins before the end of the one before it; else None."""
    ends, following = runs.run_start_ns[:-1] + runs.execute_ns[:-1], runs.run_start_ns[1:]
    early = np.flatnonzero(following < ends)
    if not len(early):
        return None
    at = int(early[0])
    lead_ns = int(ends[at] - following[at])
    return f"in the ETDump, execution {at + 1} begins {lead_ns} ns before the end of execution {at}"


def _longer_than_the_job(runs: Runs, claims: Claims) -> str | None:
    """Return a sentence if loading, set-up and executions together exceed the job's wall time; else None."""
    stats, wall_s = claims.stats, claims.wall_s
    if wall_s is None:  # nothing that the farm has run
        return None
    stats = stats or Stats()
    timed = (stats.execution_ns or []) + (stats.untraced_execution_ns or [])
    other_ns = (stats.first_load_ns or 0) + (stats.load_ns or 0) + (stats.setup_ns or 0)
    total_s = (max(int(runs.execute_ns.sum()), sum(timed)) + other_ns) / 1e9
    if total_s <= wall_s + _WALL_SLACK_S:
        return None
    return f"the runner states {total_s:.3f} s of loading and executions, but its job lasted {wall_s:.3f} s"


def _other_execution_times(runs: Runs, stats: Stats) -> str | None:
    """Return a sentence if the times in stats.json are not those around the executions in the ETDump; else None.

    None may be shorter than inside the ETDump, and the ETDump must cover most of the time in at least one execution.
    """
    around, inside = stats.execution_ns, runs.execute_ns
    if around is None:
        return None
    if len(around) != len(inside):
        return f"stats.json states {len(around)} times of executions, and the ETDump {len(inside)}"
    longer = np.flatnonzero(inside > np.array(around) + _CLOCK_STEP_NS)
    if len(longer):
        at = int(longer[0])
        return f"execution {at} lasts {inside[at]} ns in the ETDump, and {around[at]} ns around it in stats.json"
    nearest = int(np.argmin(np.array(around) - inside))
    min_ns = min(_MIN_COVERED_SHARE * around[nearest], around[nearest] - _MAX_OVERHEAD_NS)
    if len(inside) < _MIN_COMPARED or inside[nearest] >= min_ns:
        return None
    times = f"{inside[nearest]} ns in the ETDump, and {around[nearest]} ns in stats.json"
    return f"execution {nearest} lasts {times}; all others differ more"


def identical_executions(runs: Runs) -> str | None:
    """Return a sentence if many long executions last equally long to the clock's step, as on no machine; else None."""
    times, counts = np.unique(runs.execute_ns, return_counts=True)
    time_ns, equal, count = int(times[counts.argmax()]), int(counts.max()), len(runs.execute_ns)
    step_ns = _step_ns(runs) if equal >= _MIN_EXECUTIONS else 1
    are_all = equal == count >= _MIN_EXECUTIONS and time_ns >= _MAX_EQUAL_STEPS * step_ns
    are_most = equal >= max(_MIN_EQUAL, count / 2) and time_ns >= _MIN_EQUAL_STEPS * max(step_ns, _ROUNDED_STEP_NS)
    if not (are_all or are_most):
        return None
    return f"{equal} of {count} executions in the ETDump last {time_ns} ns, on a clock of {step_ns} ns"


def copied_execution(runs: Runs) -> str | None:
    """Return a sentence if an execution has all the times of another one; None if none has, or by chance."""
    if len(np.unique(runs.execute_ns)) == len(runs.execute_ns) or (parts := _parts_ns(runs)) is None:
        return None
    count, firsts = len(runs.execute_ns), dict[bytes, int]()
    copies = [
        (first, each) for each in range(count) if (first := firsts.setdefault(parts[each].tobytes(), each)) != each
    ]
    if not copies or len(firsts) < _MIN_EXECUTIONS:
        return None
    first, second = copies[0]
    others = parts[list(firsts.values())[:_MAX_COMPARED]]
    required_bits = _PAIR_BITS + math.log2(count * (count - 1) / 2)
    bits = _bits(others)
    is_chance = bits >= 1
    if bits[is_chance].sum() < required_bits:
        return None
    # Executions of one phase of the clock agree in more parts than others do.
    alike = (others[:, None, is_chance] == others[None, :, is_chance]).mean(axis=2)
    np.fill_diagonal(alike, 0)
    if alike.max() > _MAX_ALIKE_SHARE:
        return None
    return (
        f"in the ETDump, execution {second} is a copy of execution {first}: both last {runs.execute_ns[first]} ns, and "
        f"all their {parts.shape[1]} parts are equal to the nanosecond"
    )


def times_key(runs: Runs) -> str | None:
    """Return a hash of the times of all executions, which two sessions share only if one has the times of the other.

    None if two honest sessions could share it: the closest executions differ by few steps of the clock, or are few.
    """
    times = runs.execute_ns
    if len(times) < _MIN_EXECUTIONS:
        return None
    closest_ns = float(np.percentile(np.diff(np.sort(times)), 25))
    bits = len(times) * math.log2(max(closest_ns / _step_ns(runs), 1))
    return hashlib.sha256(times.tobytes()).hexdigest() if bits >= _SESSION_BITS else None


def _parts_ns(runs: Runs) -> _Times | None:
    """Return a row per execution: the times between successive moments, then those of the delegated operators.

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


def _bits(parts: _Times) -> NDArray[np.float64]:
    """Return the bits of chance in each part, from how many pairs of executions are equal in it (at least one)."""
    pairs = len(parts) * (len(parts) - 1)
    counts = [np.unique(column, return_counts=True)[1] for column in parts.T]
    return -np.log2([max((count * (count - 1)).sum() / pairs, 2 / pairs) for count in counts])


def _step_ns(runs: Runs) -> int:
    """Return the step of the clock in ns: the greatest common divisor of all times that the runtime measured."""
    step_ns = int(np.gcd.reduce(runs.execute_ns))
    if step_ns > 1:
        is_of_runtime = np.array([node.kind != "delegated" for node in runs.tree], np.bool_)
        step_ns = int(np.gcd.reduce(runs.dur_ns[is_of_runtime[runs.node]], initial=step_ns))
    return max(step_ns, 1)
