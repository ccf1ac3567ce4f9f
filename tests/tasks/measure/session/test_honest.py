"""Honest sessions are believed: 10,000 with the spread of real ones, on clocks of every kind and devices that sleep.

The spread is that of 278 sessions of the farm's runner: see tasks/measure/session/story.py.
"""

import numpy as np

from devices.ondevice.facts import Facts
from tasks.bundle.runner_stats import Stats
from tasks.etdump.operators import OperatorName
from tasks.etdump.tree import Runs, TreeNode
from tasks.measure.session.story import Known, contradiction_between

SESSIONS = 10_000
STEPS_NS = (1, 42, 100, 1_000)
"""Of the runtime's clock: Linux, Apple's timer, Windows' timer, a virtual machine."""
CALL = TreeNode(0, "operator_call", "OPERATOR_CALL", 0, 1, OperatorName("OPERATOR_CALL"))
METHOD = TreeNode(-1, "method", "Method::execute", -1, -1, OperatorName("Method::execute"))


def on_clock(times_ns: np.ndarray, step_ns: int) -> np.ndarray:
    return (times_ns // step_ns * step_ns).astype(np.int64)


def session(chance: np.random.Generator) -> tuple[Runs, Stats, Known]:
    """What an honest runner leaves of a model of 1 us to 100 ms, and what the farm knows of it."""
    count, step_ns = int(chance.integers(1, 60)), int(chance.choice(STEPS_NS))
    middle_ns = 10 ** chance.uniform(3, 8)
    inside = middle_ns * np.exp(chance.normal(0, chance.uniform(0, 0.2), count))
    inside[0] *= chance.uniform(1, 20)  # cold
    inside += (chance.random(count) < 0.02) * chance.exponential(20e6, count)  # another process ran
    before, behind = chance.uniform(100, 4_000, (2, count))
    behind += (chance.random(count) < 0.02) * chance.exponential(5e6, count)
    whole = before + inside + behind + chance.uniform(0, 1e6, count)
    begin = np.cumsum(whole) - whole + before
    start, end = on_clock(begin, step_ns), on_clock(begin + inside, step_ns)
    around = on_clock(begin + inside + behind, step_ns) - on_clock(begin - before, step_ns)
    untraced = on_clock(inside[: count // 2], step_ns)
    load_ns = int(10 ** chance.uniform(5, 9))
    has_sme2 = bool(chance.random() < 0.5)
    node, run = np.ones(count, np.int64), np.arange(count)
    called = on_clock(inside * 0.9, step_ns)
    runs = Runs(end - start, start, (METHOD, CALL), run, node, np.zeros(count, np.int64), called, called)
    stats = Stats(
        load_ns=load_ns,
        execution_ns=around.tolist(),
        untraced_execution_ns=untraced.tolist(),
        exit_reason="ok",
        sme_hardware=has_sme2,
        sme2_hardware=has_sme2,
    )
    lasted_s = (load_ns + around.sum() + untraced.sum()) / 1e9 + chance.exponential(0.05)
    asleep_s = chance.exponential(600) if chance.random() < 0.1 else 0.0
    wall_s = np.floor((lasted_s + asleep_s) * 100) / 100
    facts = Facts(sme=has_sme2, sme2=has_sme2) if chance.random() < 0.8 else Facts()
    return runs, stats, Known(float(wall_s), "linux-aarch64", facts)


def test_none_of_ten_thousand_honest_sessions_is_refused() -> None:
    chance = np.random.default_rng(20261123)
    refused = [cause for _ in range(SESSIONS) if (cause := contradiction_between(*session(chance)))]
    assert refused == []
