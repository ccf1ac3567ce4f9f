"""What a runner states about its session in several places must fit together: its ETDump, its stats.json and its job.

A wrong or lying runner would otherwise give times that nothing shows to be wrong. The limits come from 278 sessions of
the farm's runner on x86-64, of 10 us to 80 ms an execution: its clock around an execution was ahead of the ETDump's by
0.2 us or more in each execution, and by 8.5 us or less in the middle of a session; all that it timed was shorter than
its job, whose clock has steps of 10 ms.
"""

import hashlib
import zlib

import numpy as np

from tasks.bundle.claims import Claims, contradiction_in
from tasks.bundle.runner_stats import Stats
from tasks.etdump.tree import Runs
from tasks.rows.copies import copied_execution, identical_executions, times_key

_CLOCK_STEP_NS = 100
"""Both are of one clock, and the outer one begins before and ends after: only the rounding of its ticks differs."""
_LEAST_COVERED = 0.8
"""Of the time around an execution that its ETDump shows, where both differ the least,"""
_MOST_AROUND_NS = 50_000
"""unless it is only so much less: recording takes longer than a tiny model."""
_FEW_AROUND = 3
"""In fewer executions, another process may have run between both clock readings each time."""
_WALL_SLACK_S = 0.1
_NS_PER_S = 1e9


def contradiction_between(runs: Runs, claims: Claims) -> str | None:
    """Return how the parts of a successful session contradict each other, with both figures; None if they do not."""
    cause = (
        contradiction_in(claims)
        or _executions_overlap(runs)
        or identical_executions(runs)
        or copied_execution(runs)
        or _longer_than_the_job(runs, claims)
    )
    return cause or (_other_times(runs, claims.stats) if claims.stats else None)


def other_content(etdump: bytes, stats: Stats | None) -> str | None:
    """Return why an ETDump is not the one that the runner wrote; None if nothing shows that."""
    found, stated = zlib.crc32(etdump), stats.etdump_crc32 if stats else None
    if stated is None or stated == found:
        return None
    return f"model.etdump has CRC-32 {found:08x}, and stats.json states {stated:08x}"


def etdump_of_another(etdump: bytes, runs: Runs, session_id: str, seen: dict[str, str]) -> str | None:
    """Return that an ETDump, or the times in it, are those of another session of the device; None if they are not.

    `seen` has the sessions of a device by the hashes of their ETDumps and times, and gets this one.
    """
    sha256 = hashlib.sha256(etdump).hexdigest()
    if (other := seen.setdefault(sha256, session_id)) != session_id:
        return f"its ETDump is that of session {other}: both have SHA-256 {sha256}"
    key = times_key(runs)
    if key is None or (other := seen.setdefault(key, session_id)) == session_id:
        return None
    return times_of_another(runs, other)


def times_of_another(runs: Runs, other: str) -> str:
    """Return the sentence about a session with the times of another one."""
    first, last = runs.execute_ns[0], runs.execute_ns[-1]
    count = len(runs.execute_ns)
    return f"its {count} executions, from {first} ns to {last} ns, last exactly as long as those of session {other}"


def _executions_overlap(runs: Runs) -> str | None:
    ends, following = runs.run_start_ns[:-1] + runs.execute_ns[:-1], runs.run_start_ns[1:]
    early = np.flatnonzero(following < ends)
    if not len(early):
        return None
    at = int(early[0])
    lead_ns = int(ends[at] - following[at])
    return f"in the ETDump, execution {at + 1} begins {lead_ns} ns before the end of execution {at}"


def _longer_than_the_job(runs: Runs, claims: Claims) -> str | None:
    stats, wall_s = claims.stats, claims.wall_s
    if wall_s is None:  # nothing that the farm has run
        return None
    parts = [int(runs.execute_ns.sum())]
    if stats is not None:
        timed = (stats.execution_ns or []) + (stats.untraced_execution_ns or [])
        parts = [max(parts[0], sum(timed)), stats.load_ns or 0, stats.setup_ns or 0]
    total_s = sum(parts) / _NS_PER_S
    if total_s <= wall_s + _WALL_SLACK_S:
        return None
    return f"the runner states {total_s:.3f} s of loading and executions, but its job lasted {wall_s:.3f} s"


def _other_times(runs: Runs, stats: Stats) -> str | None:
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
    least_ns = min(_LEAST_COVERED * around[nearest], around[nearest] - _MOST_AROUND_NS)
    if len(inside) < _FEW_AROUND or inside[nearest] >= least_ns:
        return None
    times = f"{inside[nearest]} ns in the ETDump, and {around[nearest]} ns in stats.json"
    return f"execution {nearest} lasts {times}; all others differ more"
