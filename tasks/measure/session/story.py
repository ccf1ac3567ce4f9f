"""What a runner states about its session in several places must fit together, and to what was asked of it: its ETDump,
its stats.json, its job, the program that it ran, and the device.

A wrong or lying runner would otherwise give times that nothing shows to be wrong. The limits come from 278 sessions of
the farm's runner on x86-64, of 10 us to 80 ms an execution: its clock around an execution was ahead of the ETDump's by
0.2 us or more in each execution, and by 8.5 us or less in the middle of a session; all that it timed was shorter than
its job, whose clock has steps of 10 ms.
"""

import hashlib
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from devices.ondevice.facts import Facts
from tasks.bundle.runner_stats import Stats
from tasks.etdump.tree import Runs
from tasks.prepare.export.program import Call, ProgramMethod

_CLOCK_STEP_NS = 100
"""Both are of one clock, and the outer one begins before and ends after: only the rounding of its ticks differs."""
_LEAST_COVERED = 0.8
"""Of the time around an execution that its ETDump shows, where both differ the least,"""
_MOST_AROUND_NS = 50_000
"""unless it is only so much less: recording takes longer than a tiny model."""
_FEW_AROUND = 3
"""In fewer executions, another process may have run between both clock readings each time."""
_WALL_SLACK_S = 0.1
_FEW = 5
_MOST_EQUAL_STEPS = 1_000
"""A tiny model lasts few steps of a coarse clock, and often the same number."""
_KIND_IN_WORDS = {
    "delegate_call": "a call of a delegate,",
    "operator_call": "a call of an operator,",
    "portable": "operator",
}
_NS_PER_S = 1e9


@dataclass(frozen=True)
class Known:
    """What is known of a session from elsewhere than its runner."""

    wall_s: float
    """How long the device ran the job."""
    platform: str
    """That of the runner."""
    facts: Facts
    method: ProgramMethod | None = None
    """What was to be executed; None if the program cannot be read."""


def contradiction_between(runs: Runs, stats: Stats | None, known: Known) -> str | None:
    """Return how the parts of a successful session contradict each other, with both figures; None if they do not.

    `stats` are None of a registered runner.
    """
    cause = (
        _executions_overlap(runs)
        or _identical_executions(runs)
        or _longer_than_the_job(runs, stats, known.wall_s)
        or (_other_program(runs, known.method) if known.method else None)
    )
    if cause or stats is None:
        return cause
    return _other_times(runs, stats) or _impossible_end(stats) or _other_processor(stats, known)


def etdump_of_another(etdump: Path, stats: Stats | None, session_id: str, seen: dict[str, str]) -> str | None:
    """Return why an ETDump is not the one that the runner wrote in this session; None if nothing shows that.

    `seen` has the sessions of a device by the hash of their ETDump, and gets this one.
    """
    content = etdump.read_bytes()
    found, stated = zlib.crc32(content), stats.etdump_crc32 if stats else None
    if stated is not None and stated != found:
        return f"model.etdump has CRC-32 {found:08x}, and stats.json states {stated:08x}"
    sha256 = hashlib.sha256(content).hexdigest()
    other = seen.setdefault(sha256, session_id)
    return None if other == session_id else f"its ETDump is that of session {other}: both have SHA-256 {sha256}"


def _executions_overlap(runs: Runs) -> str | None:
    ends, following = runs.run_start_ns[:-1] + runs.execute_ns[:-1], runs.run_start_ns[1:]
    early = np.flatnonzero(following < ends)
    if not len(early):
        return None
    at = int(early[0])
    lead_ns = int(ends[at] - following[at])
    return f"in the ETDump, execution {at + 1} begins {lead_ns} ns before the end of execution {at}"


def _identical_executions(runs: Runs) -> str | None:
    """Return a sentence if many long executions last equally long to the clock's step, as those of no machine do."""
    times = runs.execute_ns
    if len(times) < _FEW or times.min() != times.max():
        return None
    on_this_clock = [index for index, node in enumerate(runs.tree) if node.kind != "delegated"]
    step_ns = int(np.gcd.reduce(np.concatenate([times, runs.dur_ns[np.isin(runs.node, on_this_clock)]])))
    if times[0] < _MOST_EQUAL_STEPS * step_ns:
        return None
    return f"all {len(times)} executions in the ETDump last {times[0]} ns, on a clock of {step_ns} ns"


def _other_program(runs: Runs, method: ProgramMethod) -> str | None:
    """Return which call of the ETDump is none of the program's, or the other way round."""
    calls = {(each.chain, each.instruction): each for each in method.calls}
    shown = [node for node in runs.tree if node.kind in _KIND_IN_WORDS]
    for node in shown:
        call = calls.get((node.chain_index, node.instruction_id))
        is_it = call is not None and (node.kind == "delegate_call") == (call.delegate is not None)
        if node.kind == "portable" and call is not None:
            is_it = str(call.operator).rpartition("::")[2] == node.name.removeprefix("native_call_")
        if not is_it:
            what = f"{_KIND_IN_WORDS[node.kind]} {node.name} at {_place(node.chain_index, node.instruction_id)}"
            return f"the ETDump shows {what}, where the program calls {_in_words(call)}"
    missing = sorted(calls.keys() - {(node.chain_index, node.instruction_id) for node in shown})
    if not missing or method.has_branches:
        return None
    return (
        f"the program calls {_in_words(calls[missing[0]])} at {_place(*missing[0])}, and the ETDump shows no call there"
    )


def _place(chain: int, instruction: int) -> str:
    return f"instruction {instruction} of chain {chain}"


def _in_words(call: Call | None) -> str:
    if call is None:
        return "nothing"
    return call.operator or f"a delegate of {call.delegate}"


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
    nearest = int(np.argmin(np.array(around) - inside))
    least_ns = min(_LEAST_COVERED * around[nearest], around[nearest] - _MOST_AROUND_NS)
    if len(inside) < _FEW_AROUND or inside[nearest] >= least_ns:
        return None
    times = f"{inside[nearest]} ns in the ETDump, and {around[nearest]} ns in stats.json"
    return f"execution {nearest} lasts {times}; all others differ more"


def _impossible_end(stats: Stats) -> str | None:
    if stats.exit_reason in (None, "ok"):
        return None
    return f"the runner exited with code 0, but stats.json states `exit_reason` {stats.exit_reason!r}"


def _other_processor(stats: Stats, known: Known) -> str | None:
    extension = "SME2" if stats.sme2_hardware else "SME" if stats.sme_hardware else None
    if extension and known.platform.endswith("x86_64"):
        return f"stats.json states {extension}, but the runner is one for {known.platform}"
    for name, told, found in (
        ("SME", stats.sme_hardware, known.facts.sme),
        ("SME2", stats.sme2_hardware, known.facts.sme2),
    ):
        if told is not None and found is not None and told != found:
            return f"stats.json states {_yes(told)} {name}, but the device's facts {_yes(found)} {name}"
    return None


def _yes(has: bool) -> str:
    return "a processor with" if has else "one without"
