"""How well verdicts on operators find what happened on simulated farms.

Run: python -m tests.benchmarks.operators
"""

import numpy as np

from tasks.judge.operators.rules import Group, Operator, judge_operators
from tests.benchmarks.verdicts import HOT_NIGHTS, HOT_SESSIONS, NIGHT_CV, Array

SERIES, SESSIONS, NIGHTS, FIRST_NIGHT, CHANGE_NIGHT = 60, 8, 40, 5, 25
SESSION_CV = 0.02
# What each operator does beside that, from session to session and from night to night. The first is a third of what
# they share, as measured on one machine; how much an operator moves from night to night is not known.
OPERATOR_NOISE = ((0.007, 0.003), (0.007, 0.006), (0.015, 0.006))
SHARES = np.array([0.40, 0.17, 0.10, 0.09, 0.07, 0.06, 0.04, 0.03, 0.02, 0.02])
CHANGED = 2
OPERATORS = [Operator(f"operator {index}", f"category {index % 4}") for index in range(len(SHARES))]


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
            suspected += bool(verdicts & {"suspected", "suspected improvement"})
            nights_judged += 1
        slower = make_nights(generator, noise, 1.03, CHANGE_NIGHT + 3)
        ends = range(CHANGE_NIGHT + 1, CHANGE_NIGHT + 4)
        found += any(words(slower[:end]).get(OPERATORS[CHANGED].name) == "regression" for end in ends)
    print(
        f"  {noise[0]:.1%} between sessions, {noise[1]:.1%} between nights: found {found / SERIES:4.0%},"
        f" false alarms {100 * alarms / nights_judged:.2f}, suspected {100 * suspected / nights_judged:.2f}",
        flush=True,
    )


def main() -> None:
    print(
        f"3 % on an operator with {SHARES[CHANGED]:.0%} of the time: share of series where it is found in 3 nights, and"
    )
    print("series-nights of 100 without a change that name an operator as changed, or suspect one.")
    print(f"All operators share {SESSION_CV:.1%} between sessions and {NIGHT_CV:.1%} between nights. Each adds:")
    for noise in OPERATOR_NOISE:
        simulate(noise)


if __name__ == "__main__":
    main()
