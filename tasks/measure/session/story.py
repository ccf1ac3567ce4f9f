"""What a runner states about its session in several places must fit together: its ETDump, its stats.json, its job.

A wrong or lying runner would otherwise give times that nothing shows to be wrong. The limits come from 278 sessions of
the farm's runner on x86-64, of 10 us to 80 ms an execution: its clock around an execution was ahead of the ETDump's by
0.2 us or more in each execution, and by 8.5 us or less in the middle of a session; all that it timed was shorter than
its job, whose clock has steps of 10 ms.
"""

import numpy as np

from tasks.bundle.runner_stats import Stats
from tasks.etdump.tree import Runs

_CLOCK_STEP_NS = 1_000
_LEAST_COVERED = 0.8
"""Of the time around an execution that its ETDump shows, in the middle of a session,"""
_MOST_AROUND_NS = 50_000
"""unless it is only so much less: recording takes longer than a tiny model."""
_WALL_SLACK_S = 0.1
_NS_PER_S = 1e9


def contradiction_between(runs: Runs, stats: Stats | None, wall_s: float, platform: str) -> str | None:
    """Return how the parts of a successful session contradict each other, with both figures; None if they do not.

    `stats` are None of a registered runner; `wall_s` is how long the device ran the job; `platform` is the runner's.
    """
    return (
        _executions_overlap(runs)
        or _longer_than_the_job(runs, stats, wall_s)
        or (_other_times(runs, stats) if stats is not None else None)
        or (_impossible_end(stats, platform) if stats is not None else None)
    )


def _executions_overlap(runs: Runs) -> str | None:
    ends, following = runs.run_start_ns[:-1] + runs.execute_ns[:-1], runs.run_start_ns[1:]
    early = np.flatnonzero(following < ends)
    if not len(early):
        return None
    at = int(early[0])
    lead_ns = int(ends[at] - following[at])
    return f"in the ETDump, execution {at + 1} begins {lead_ns} ns before the end of execution {at}"


def _longer_than_the_job(runs: Runs, stats: Stats | None, wall_s: float) -> str | None:
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
    middle, middle_around = float(np.median(inside)), float(np.median(around))
    if middle >= min(_LEAST_COVERED * middle_around, middle_around - _MOST_AROUND_NS):
        return None
    return f"executions last {middle:.0f} ns in the ETDump, and {middle_around:.0f} ns in stats.json (medians)"


def _impossible_end(stats: Stats, platform: str) -> str | None:
    if stats.exit_reason not in (None, "ok"):
        return f"the runner exited with code 0, but stats.json states `exit_reason` {stats.exit_reason!r}"
    extension = "SME2" if stats.sme2_hardware else "SME" if stats.sme_hardware else None
    if extension and platform.endswith("x86_64"):
        return f"stats.json states {extension}, but the runner is one for {platform}"
    return None
