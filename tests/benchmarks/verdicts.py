"""How well the rule of the nights finds what happened on simulated farms, with and without comparisons.

Run: python -m tests.benchmarks.verdicts
"""

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tasks.analyse.verdict.comparison import compare
from tasks.analyse.verdict.nights import Night, NightVerdict, judge_all

Array = NDArray[np.float64]
SESSIONS, NIGHTS, CHANGE_NIGHT = 8, 60, 25
NIGHT_CV, HOT_NIGHTS, HOT_SESSIONS, TWO_MODES = 0.012, 0.04, 0.03, 0.25


@dataclass(frozen=True)
class Series:
    """The truth and the figures of one series: `level` is the model's and runner's part, per night."""

    level: Array  # (nights,)
    figures: Array  # (nights, sessions)
    again_a: Array  # (nights, sessions): the noise of a comparison the same night, side A
    again_b: Array
    contents: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """What a rule made of a series."""

    alarms: list[bool]  # per night
    verdicts: Sequence[NightVerdict] = ()
    compared: int = 0  # nights with a comparison in the same night


Rule = Callable[[Series], Outcome]


def make_series(generator: np.random.Generator, level: Array, session_cv: float) -> Series:
    """Make the sessions of a series: noise, hot sessions, two modes in a quarter of the series, hot nights."""
    nights = len(level)
    mode = 0.04 if generator.random() < TWO_MODES else 0.0

    def noise() -> Array:
        size = (nights, SESSIONS)
        hot = (generator.random(size) < HOT_SESSIONS) * generator.uniform(0.1, 0.3, size)
        modes = mode * (generator.random(size) < 0.3)
        return np.exp(session_cv * generator.standard_normal(size) + modes) * (1 + hot)

    night = np.exp(NIGHT_CV * generator.standard_normal(nights))
    night *= 1 + (generator.random(nights) < HOT_NIGHTS) * generator.uniform(0.04, 0.15, nights)
    contents = tuple(str(number) for number in range(nights))
    return Series(level, 10 * (level * night)[:, None] * noise(), noise(), noise(), contents)


def our_rule(series: Series) -> Outcome:
    """Judge with a comparison in each night that is suspected and has other content than the last good night."""
    nights, compared = plain_nights(series), 0
    verdicts = judge_all(nights)
    while (case := next(open_cases(nights, verdicts), None)) is not None:
        index, good = case
        a, b = (series.level[side] * noise[index] for side, noise in ((good, series.again_a), (index, series.again_b)))
        nights[index] = replace(nights[index], same_night=compare(list(a), list(b)))
        compared += 1
        verdicts = judge_all(nights)
    return Outcome([each.verdict == "regression" for each in verdicts], verdicts, compared)


def open_cases(nights: Sequence[Night], verdicts: Sequence[NightVerdict]) -> Iterator[tuple[int, int]]:
    """Yield each suspected night that can be compared the same night, and its last good night."""
    for index, (night, found) in enumerate(zip(nights, verdicts, strict=True)):
        if found.verdict == "suspected" and night.same_night is None and found.baseline_to is not None:
            good = int(found.baseline_to)
            if nights[good].content != night.content:
                yield index, good


def our_rule_with_steady_content(series: Series) -> Outcome:
    """The same for a farm that measures the same model and runner each night until a change comes."""
    return our_rule(replace(series, contents=tuple(str(level) for level in series.level)))


def our_rule_alone(series: Series) -> Outcome:
    """Judge without comparisons the same night."""
    verdicts = judge_all(plain_nights(series))
    return Outcome([each.verdict == "regression" for each in verdicts], verdicts)


def plain_nights(series: Series) -> list[Night]:
    """Make the nights of a series; a night is named by its number."""
    return [
        Night(f"{index:02}", tuple(figures), content=content)
        for index, (figures, content) in enumerate(zip(series.figures.tolist(), series.contents, strict=True))
    ]


@dataclass(frozen=True)
class Scores:
    """What one rule reached."""

    false_alarms: float
    """Per 100 nights of series without a change."""
    compared: float
    """Comparisons the same night, per 100 nights of series without a change."""
    step_5_same_night: float
    step_5_in_3: float
    step_10_in_2: float
    drift_in_30: float
    no_drift_in_30: float
    """Share of series without a change that have an alarm in those 30 nights."""
    coverage: float | None


def score(rule: Rule, series_of_each_kind: int, session_cv: float) -> Scores:
    """Apply a rule to series without a change, with a step of 5 %, with one of 10 %, and with a drift."""
    generator = np.random.default_rng(1)

    def outcomes(level: Array) -> list[tuple[Series, Outcome]]:
        made = [make_series(generator, level, session_cv) for _ in range(series_of_each_kind)]
        return [(series, rule(series)) for series in made]

    nights = np.arange(NIGHTS) - CHANGE_NIGHT
    flat = outcomes(np.ones(NIGHTS))
    step_5, step_10 = (outcomes(np.where(nights >= 0, size, 1.0)[: CHANGE_NIGHT + 3]) for size in (1.05, 1.1))
    drift = outcomes(1.003 ** np.maximum(nights + 1, 0)[: CHANGE_NIGHT + 30])
    return Scores(
        false_alarms=100 * float(np.mean([outcome.alarms for _, outcome in flat])),
        compared=100 * float(np.mean([outcome.compared / NIGHTS for _, outcome in flat])),
        step_5_same_night=share_found(step_5, 1),
        step_5_in_3=share_found(step_5, 3),
        step_10_in_2=share_found(step_10, 2),
        drift_in_30=share_found(drift, 30),
        no_drift_in_30=share_found(flat, 30),
        coverage=coverage([*flat, *step_5, *step_10]),
    )


def share_found(outcomes: Sequence[tuple[Series, Outcome]], nights: int) -> float:
    """Return the share of series with an alarm in the first `nights` nights from the change on."""
    return float(np.mean([any(each.alarms[CHANGE_NIGHT : CHANGE_NIGHT + nights]) for _, each in outcomes]))


def coverage(outcomes: Sequence[tuple[Series, Outcome]]) -> float | None:
    """Return the share of the intervals that hold the true ratio of a night to its baseline."""
    held = []
    for series, outcome in outcomes:
        for index, verdict in enumerate(outcome.verdicts):
            if verdict.low is not None and verdict.high is not None:
                truth = series.level[index] / series.level[int(str(verdict.baseline_to))]
                held.append(verdict.low <= truth <= verdict.high)
    return float(np.mean(held)) if held else None


RULES: dict[str, Rule] = {
    "ours, A/B the same night": our_rule,
    "the same, content changes only at a step": our_rule_with_steady_content,
    "ours, without A/B": our_rule_alone,
}
SERIES_OF_EACH_KIND = 300


def main() -> None:
    """Print one line per rule."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--session-cv", type=float, default=0.02)
    session_cv: float = parser.parse_args().session_cv
    print(f"Sessions: CV {session_cv:.1%}, {HOT_SESSIONS:.0%} hot, {SESSIONS} a night; two modes in {TWO_MODES:.0%}.")
    print(
        f"Nights: CV {NIGHT_CV:.1%}, {HOT_NIGHTS:.0%} hot (+4 to 15 %). The change comes in night {CHANGE_NIGHT + 1}."
    )
    print("Alarms and A/B: per 100 series-nights without a change. Drift: 0.3 % a night; in brackets: without a drift.")
    print(f"{'rule':40} {'series':>6} {'alarms':>6} {'A/B':>5} {'5 % in 1':>9} {'in 3':>5} {'10 % in 2':>9}", end=" ")
    print(f"{'drift in 30':>12} {'95 % interval':>13}")
    for name, rule in RULES.items():
        got = score(rule, SERIES_OF_EACH_KIND, session_cv)
        print(
            f"{name:40} {4 * SERIES_OF_EACH_KIND:6} {got.false_alarms:6.2f} {got.compared:5.1f}"
            f" {got.step_5_same_night:9.0%} {got.step_5_in_3:5.0%} {got.step_10_in_2:9.0%}"
            f" {got.drift_in_30:5.0%} ({got.no_drift_in_30:4.0%})"
            f" {'-' if got.coverage is None else f'{got.coverage:.1%}':>13}",
            flush=True,
        )


if __name__ == "__main__":
    main()
