"""How well verdicts on operators find what happened: on simulated farms, and on this machine where nothing happened.

Run: python -m tests.benchmarks.operators
"""

import os
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sql.warehouse import open_read_only
from tasks.analyse.verdict.operators import compare_operators, judge_operators
from tasks.analyse.verdict.operators_common import Adjusted, Group, Operator
from tasks.analyse.verdict.operators_table import group_of, operators_of, sessions_to_judge
from tasks.prepare.export.export import export_model
from tasks.prepare.runner.build import build_runner
from tasks.prepare.runner.bundle import Runner
from tasks.prepare.runner.toolchain import host_platform
from tasks.store.var import Var
from tests.fixtures.warehouse import BundleMaker

Array = NDArray[np.float64]
SERIES, SESSIONS, NIGHTS, FIRST_NIGHT, CHANGE_NIGHT = 60, 8, 40, 5, 25
# What all operators share: as in tests/benchmarks/verdicts.py.
SESSION_CV, NIGHT_CV, HOT_NIGHTS, HOT_SESSIONS = 0.02, 0.012, 0.04, 0.03
# What each operator does beside that, from session to session and from night to night. The first is a third of what
# they share, as measured below; how much an operator moves from night to night is not known.
OPERATOR_NOISE = ((0.007, 0.003), (0.007, 0.006), (0.015, 0.006))
SHARES = np.array([0.40, 0.17, 0.10, 0.09, 0.07, 0.06, 0.04, 0.03, 0.02, 0.02])
CHANGED = 2
OPERATORS = [Operator(f"operator {index}", f"category {index % 4}") for index in range(len(SHARES))]
MODELS, REAL_NIGHTS, EXECUTIONS, WARMUPS, SPLITS = ("mobilenet_v2", "mobilevit_xs"), 6, 25, 5, 200


def make_nights(generator: np.random.Generator, noise: tuple[float, float], change: float, nights: int) -> list[Group]:
    """Make the nights of a series; the operator with 10 % of the time takes `change` times as long from one on."""

    def scatter(cv: float, *size: int) -> Array:
        return np.exp(cv * generator.standard_normal(size))

    made = []
    for night in range(nights):
        shared = scatter(SESSION_CV, SESSIONS, 1) * scatter(NIGHT_CV, 1)
        shared *= 1 + (generator.random() < HOT_NIGHTS) * generator.uniform(0.04, 0.15)
        shared *= 1 + (generator.random((SESSIONS, 1)) < HOT_SESSIONS) * generator.uniform(0.1, 0.3, (SESSIONS, 1))
        times_ns = 1e7 * SHARES * shared * scatter(noise[0], SESSIONS, len(SHARES)) * scatter(noise[1], len(SHARES))
        times_ns[:, CHANGED] *= change if night >= CHANGE_NIGHT else 1.0
        made.append(Group(f"{night:02}", times_ns))
    return made


def words(nights: list[Group]) -> dict[str, str]:
    """Return the verdict on each operator and category in the last night."""
    found = judge_operators(OPERATORS, nights)
    return {each.name: each.verdict for each in found.operators} if found else {}


def simulate(noise: tuple[float, float]) -> None:
    """Print how often 3 % on an operator with 10 % of the time is found, and how often what did not happen."""
    generator = np.random.default_rng(1)
    alarms = suspected = nights_judged = found = 0
    for _ in range(SERIES):
        steady = make_nights(generator, noise, 1.0, NIGHTS)
        for night in range(FIRST_NIGHT, NIGHTS):
            verdicts = set(words(steady[: night + 1]).values())
            alarms += bool(verdicts & {"regression", "improvement"})
            suspected += "suspected" in verdicts
            nights_judged += 1
        slower = make_nights(generator, noise, 1.03, CHANGE_NIGHT + 3)
        ends = range(CHANGE_NIGHT + 1, CHANGE_NIGHT + 4)
        found += any(words(slower[:end]).get(OPERATORS[CHANGED].name) == "regression" for end in ends)
    print(
        f"  {noise[0]:.1%} between sessions, {noise[1]:.1%} between nights: found {found / SERIES:4.0%},"
        f" false alarms {100 * alarms / nights_judged:.2f}, suspected {100 * suspected / nights_judged:.2f}",
        flush=True,
    )


def measure(model: str, runner: Runner, var: Var) -> tuple[list[Operator], Array]:
    """Run a model in sessions that differ in nothing, one thread; return its operators and (sessions, operators) ns."""
    export = export_model(model, "fp32", var.exports)
    with tempfile.TemporaryDirectory(prefix="etfarm-operators-") as folder:
        maker, etdump = BundleMaker(Path(folder) / "store"), Path(folder) / "model.etdump"
        flags = {"num_executions": EXECUTIONS, "cpu_threads": 1, "print_output": "none", "etdump_path": etdump}
        command = [*runner.command(str(runner.folder)), f"--model_path={export.pte}"]
        for number in range(REAL_NIGHTS * SESSIONS):
            subprocess.run([*command, *(f"--{name}={value}" for name, value in flags.items())], check=True)
            night = f"2026-11-{1 + number // SESSIONS:02}"
            maker.session(
                [1] * (EXECUTIONS - 1),
                files={"model.etdump": etdump.read_bytes()},
                sweep={"sweep_id": f"same-{night}", "name": "same", "night": night},
                warmup_executions=WARMUPS,
                index=number % SESSIONS,
            )
        maker.load()
        with open_read_only(maker.warehouse) as connection:
            series = [row[0] for row in connection.execute("SELECT series_id FROM series").fetchall()]
            sessions = sessions_to_judge(connection, series)
    known = operators_of(sessions)
    return list(known.values()), group_of(sessions, known, model).times_ns


def compare_with_itself(model: str, operators: list[Operator], times_ns: Array) -> None:
    """Print what removing the common factor does to the scatter, and what is found between halves of the sessions."""
    adjusted = Adjusted(operators, [Group("all", times_ns)], 1)
    counted = [each for each in adjusted.counted() if adjusted.columns[each].level == "operator"]
    before, after = (100 * robust_cv(times[0][:, counted]) for times in (adjusted.times_ns, adjusted.own_ns))
    generator = np.random.default_rng(1)
    verdicts: Counter[str] = Counter()
    for _ in range(SPLITS):
        order = generator.permutation(len(times_ns))
        a, b = (Group("", times_ns[half]) for half in np.array_split(order, 2))
        verdicts.update(each.verdict for each in compare_operators(operators, a, b).operators)
    nights = [Group(str(number), each) for number, each in enumerate(np.array_split(times_ns, REAL_NIGHTS))]
    judged = judge_operators(operators, nights)
    changed = (
        [f"{each.name} {each.verdict}" for each in judged.operators if each.verdict != "no change"] if judged else []
    )
    print(
        f"  {model}: {len(times_ns)} sessions, total {100 * robust_cv(times_ns.sum(axis=1)):.1f} %;"
        f" {len(counted)} operators, median {np.median(before):.1f} -> {np.median(after):.1f} %,"
        f" narrower: {(after < before).sum()} of {len(counted)}, after / before {np.median(after / before):.2f}"
        f" ({(after / before).min():.2f} to {(after / before).max():.2f})"
    )
    print(f"    {SPLITS} random halves: {dict(verdicts)}; as {REAL_NIGHTS} nights: {', '.join(changed) or 'no change'}")


def robust_cv(times_ns: Array) -> Array:
    """Return the scatter of each column by its MAD, as a fraction."""
    logs = np.log(np.where(times_ns > 0, times_ns, np.nan))
    return np.asarray(1.4826 * np.nanmedian(np.abs(logs - np.nanmedian(logs, axis=0)), axis=0))


def main() -> None:
    """Print the simulated rates, then what happens on this machine."""
    print(
        f"3 % on an operator with {SHARES[CHANGED]:.0%} of the time: share of series where it is found in 3 nights, and"
    )
    print("series-nights of 100 without a change that name an operator as changed, or suspect one.")
    print(f"All operators share {SESSION_CV:.1%} between sessions and {NIGHT_CV:.1%} between nights. Each adds:")
    for noise in OPERATOR_NOISE:
        simulate(noise)
    var = Var(Path(os.environ.get("ETFARM_VAR", "var")).absolute())
    runner = build_runner(host_platform(), var.runners)
    print(
        "Scatter between sessions that differ in nothing, on this machine, without and with the common factor removed:"
    )
    for model in MODELS:
        operators, times_ns = measure(model, runner, var)
        compare_with_itself(model, operators, times_ns)
    print(f"  load of this machine: {', '.join(f'{load:.1f}' for load in os.getloadavg())} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
