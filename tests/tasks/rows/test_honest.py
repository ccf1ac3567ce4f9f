"""Honest sessions are believed: 10,000 with the spread of real ones, on clocks of every kind and devices that sleep.

The spread is that of 278 sessions of the farm's runner: see tasks/rows/consistency.py.
"""

import numpy as np
import pytest

from devices.ondevice.facts import Facts
from tasks.bundle.claims import Claims
from tasks.bundle.runner_stats import Stats
from tasks.etdump.event_names import OperatorName
from tasks.etdump.tree import Runs, TreeNode
from tasks.rows.consistency import contradiction_between, copied_etdump, copied_execution

STEPS_NS = (1, 42, 100, 1_000)
"""Of the runtime's clock: Linux, Apple's timer, Windows' timer, a virtual machine."""
METHOD = TreeNode(-1, "method", "Method::execute", -1, -1, OperatorName("Method::execute"))


def on_clock(times_ns: np.ndarray, step_ns: int) -> np.ndarray:
    return (times_ns // step_ns * step_ns).astype(np.int64)


def executions(chance: np.random.Generator, step_ns: int, begin: np.ndarray, inside: np.ndarray) -> Runs:
    """Executions of one to twelve operators, of which each takes its share of the time, give or take some."""
    count, operators = len(inside), int(chance.integers(1, 13))
    shares = chance.dirichlet(np.ones(operators + 1)) * np.exp(
        chance.normal(0, chance.uniform(0, 0.1), (count, operators + 1))
    )
    ends = np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)[:, :-1] * inside[:, None] + begin[:, None]
    moments = on_clock(np.hstack([begin[:, None], ends]), step_ns)
    start, end = on_clock(begin, step_ns), on_clock(begin + inside, step_ns)
    starts = np.hstack([moments[:, :-1] - start[:, None], np.zeros((count, 1), np.int64)])
    lasted = np.hstack([np.diff(moments, axis=1), (end - start)[:, None]])
    calls = [
        TreeNode(0, "operator_call", "OPERATOR_CALL", 0, at, OperatorName("OPERATOR_CALL")) for at in range(operators)
    ]
    run, node = np.repeat(np.arange(count), operators + 1), np.tile([*range(1, operators + 1), 0], count)
    return Runs(end - start, start, (METHOD, *calls), run, node, starts.ravel(), lasted.ravel(), lasted.ravel())


def session(chance: np.random.Generator) -> tuple[Runs, Claims]:
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
    around = on_clock(begin + inside + behind, step_ns) - on_clock(begin - before, step_ns)
    untraced = on_clock(inside[: count // 2], step_ns)
    load_ns = int(10 ** chance.uniform(5, 9))
    has_sme2 = bool(chance.random() < 0.5)
    stats = Stats(
        load_ns=load_ns,
        execution_ns=around.tolist(),
        untraced_execution_ns=untraced.tolist(),
        peak_memory_bytes=int(10 ** chance.uniform(6, 9.5)),
        exit_reason="ok",
        sme_hardware=has_sme2,
        sme2_hardware=has_sme2,
    )
    lasted_s = (load_ns + around.sum() + untraced.sum()) / 1e9 + chance.exponential(0.05)
    asleep_s = chance.exponential(600) if chance.random() < 0.1 else 0.0
    wall_s = np.floor((lasted_s + asleep_s) * 100) / 100
    of_device = Facts(sme=has_sme2, sme2=has_sme2, platform="linux-aarch64", memory_bytes=4 << 30)
    facts = of_device if chance.random() < 0.8 else Facts()
    variant = "sme2_on" if has_sme2 else "sme2_off"
    claims = Claims(variant, count, min(count, 3), "linux-aarch64", facts, stats, float(wall_s))  # type: ignore[arg-type]
    return executions(chance, step_ns, begin, inside), claims


@pytest.mark.parametrize("sessions", [1_000, pytest.param(10_000, marks=pytest.mark.thorough)])
def test_no_honest_session_is_refused(sessions: int) -> None:
    chance = np.random.default_rng(20261123)
    seen: dict[str, str] = {}
    refused = []
    for number in range(sessions):
        runs, claims = session(chance)
        refused.append(contradiction_between(runs, claims) or copied_etdump(b"%d" % number, runs, str(number), seen))
    assert [cause for cause in refused if cause] == []


def test_a_slow_execution_that_became_a_copy_of_the_fastest_one_is_recognized() -> None:
    # given an honest session of twenty executions of a few operators, on a clock of 1 ns
    chance = np.random.default_rng(1)
    inside = 5e6 * np.exp(chance.normal(0, 0.05, 20))
    begin = np.cumsum(np.full(20, 20e6))
    while len((runs := executions(chance, 1, begin, inside)).tree) < 6:
        pass
    assert copied_execution(runs) is None
    # when the slowest gets the times of the fastest
    slow, fast = int(runs.execute_ns.argmax()), int(runs.execute_ns.argmin())

    def copy(of: Runs) -> None:
        for column in (of.start_ns, of.dur_ns):
            column[of.run == slow] = column[of.run == fast]
        of.execute_ns[slow] = of.execute_ns[fast]

    copy(runs)
    first, second = sorted((slow, fast))
    reported = f"in the ETDump, execution {second} is a copy of execution {first}: both last {runs.execute_ns[fast]} ns"
    assert str(copied_execution(runs)).startswith(reported)
    # and on a clock of 10 us it may be chance
    coarse = executions(chance, 1_000_000, begin, inside)
    copy(coarse)
    assert copied_execution(coarse) is None
