"""How well the rule of the nights finds what happened on simulated farms, with and without comparisons.

Run: python -m tests.benchmarks.verdicts
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tasks.judge.comparison import compare_sessions
from tasks.judge.states import states_from_times
from tasks.judge.verdicts.night import Night, NightVerdict
from tests.fixtures.series import judge_all

Array = NDArray[np.float64]
SERIES, SESSIONS, NIGHTS, CHANGE_NIGHT = 100, 8, 60, 25  # series of each of four kinds
SESSION_CV = 0.02
NIGHT_CV, HOT_NIGHTS, HOT_SESSIONS, TWO_MODES = 0.012, 0.04, 0.03, 0.25


@dataclass(frozen=True)
class Series:
    """The truth and the figures of one series: `level` is the model's and runner's part, per night."""

    level: Array  # (nights,)
    figures: Array  # (nights, SESSIONS): with those that are measured only where a night is suspected
    sessions: int  # of a night that is not
    again_a: Array  # (nights, SESSIONS): the noise of a comparison the same night, side A
    again_b: Array
    contents: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    alarms: list[bool]  # per night
    verdicts: Sequence[NightVerdict] = ()
    compared: int = 0  # nights with a comparison in the same night


Rule = Callable[[Series], Outcome]


@dataclass(frozen=True)
class Noise:
    """What moves a series beside a change; shares are of nights or sessions, sizes are fractions of the time."""

    sessions: int = SESSIONS
    autocorrelation: float = 0.0
    """Of one night with the next."""
    night_states: float = 0.0
    """How much slower the second state of the device is: it stays in a state for 5 nights on average."""
    session_states: float = 0.0
    """How much slower 3 of 10 sessions of every series are."""
    weekly: float = 0.0
    """How much slower two nights of seven are."""
    heavy_tails: bool = False
    """Student's t with 3 degrees of freedom instead of a normal distribution, between nights and sessions."""
    missing: float = 0.0
    """Share of nights that were not measured."""
    change_of_state: float = 0.2
    """Probability that the device is in its other state from one night to the next."""
    uneasy_weeks: float = 1.0
    """How much more nights scatter in every other fortnight."""


NOISES = {
    "as assumed": Noise(),
    "AR(1) from night to night": Noise(autocorrelation=0.7),
    "two states of nights, +6 %": Noise(night_states=0.06),
    "two states of sessions, +15 %": Noise(session_states=0.15),
    # The rules were not tuned on the next three.
    "AR(1) of 0.9": Noise(autocorrelation=0.9),
    "calm and uneasy fortnights": Noise(uneasy_weeks=2.5),
    "two long states of nights, +9 %": Noise(night_states=0.09, change_of_state=0.1),
    "weekly, +3 %": Noise(weekly=0.03),
    "heavy tails": Noise(heavy_tails=True),
    "a quarter of the nights missing": Noise(missing=0.25),
    "3 sessions a night": Noise(sessions=3),
    "5 sessions a night": Noise(sessions=5),
}


def make_series(
    generator: np.random.Generator, level: Array, session_cv: float, noise: Noise = NOISES["as assumed"]
) -> Series:
    """Make the sessions of a series: noise, hot sessions, two modes in a quarter of the series, hot nights."""
    nights = len(level)
    mode = 0.04 if generator.random() < TWO_MODES else 0.0

    def deviates(*size: int) -> Array:
        return generator.standard_t(3, size) / 3**0.5 if noise.heavy_tails else generator.standard_normal(size)

    def of_sessions() -> Array:
        size = (nights, SESSIONS)
        hot = (generator.random(size) < HOT_SESSIONS) * generator.uniform(0.1, 0.3, size)
        modes = (mode + noise.session_states) * (generator.random(size) < 0.3)
        return np.exp(session_cv * deviates(*size) + modes) * (1 + hot)

    scatter = NIGHT_CV * np.where(np.arange(nights) % 28 < 14, 1.0, noise.uneasy_weeks)
    night = np.exp(scatter * correlated(deviates(nights), noise.autocorrelation))
    night *= 1 + (generator.random(nights) < HOT_NIGHTS) * generator.uniform(0.04, 0.15, nights)
    night *= 1 + noise.night_states * (np.cumsum(generator.random(nights) < noise.change_of_state) % 2)
    night *= 1 + noise.weekly * (np.arange(nights) % 7 > 4)
    contents = tuple(str(number) for number in range(nights))
    figures = 10 * (level * night)[:, None] * of_sessions()
    figures[generator.random(nights) < noise.missing] = np.nan
    return Series(level, figures, noise.sessions, of_sessions(), of_sessions(), contents)


def correlated(deviates: Array, correlation: float) -> Array:
    made = deviates.copy()
    for night in range(1, len(made)):
        made[night] = correlation * made[night - 1] + (1 - correlation**2) ** 0.5 * deviates[night]
    return made


def our_rule(series: Series) -> Outcome:
    """Judge with a comparison in each night that is suspected and has other content than the last good night."""
    nights, compared = plain_nights(series), 0
    verdicts = judge_all(nights)
    while (case := next(open_cases(nights, verdicts), None)) is not None:
        index, good = case
        a, b = (series.level[side] * noise[index] for side, noise in ((good, series.again_a), (index, series.again_b)))
        states = states_from_times([night.figures for night in nights[: index + 1] if night.figures])
        nights[index] = replace(nights[index], same_night=compare_sessions(list(a), list(b), states=states))
        compared += 1
        verdicts = judge_all(nights)
    return Outcome([each.verdict == "regression" for each in verdicts], verdicts, compared)


def open_cases(
    nights: Sequence[Night], verdicts: Sequence[NightVerdict], below: int = SESSIONS + 1
) -> Iterator[tuple[int, int]]:
    """Yield each suspected night of fewer sessions that was not compared the same night, and its last good night."""
    for index, (night, found) in enumerate(zip(nights, verdicts, strict=True)):
        is_open = night.same_night is None and len(night.figures) < below
        if found.verdict.startswith("suspected") and is_open and found.baseline_to is not None:
            good = int(found.baseline_to)
            if nights[good].content != night.content:
                yield index, good


def our_rule_alone(series: Series) -> Outcome:
    """Judge without comparisons the same night: a suspected night gets the sessions that it lacks."""
    nights = plain_nights(series)
    verdicts = judge_all(nights)
    while (case := next(open_cases(nights, verdicts, SESSIONS), None)) is not None:
        index, _ = case
        nights[index] = replace(nights[index], figures=tuple(series.figures[index].tolist()))
        verdicts = judge_all(nights)
    return Outcome([each.verdict == "regression" for each in verdicts], verdicts)


def naive_rule(series: Series) -> Outcome:
    """More than 3 % slower than the night before, by the medians of all sessions."""
    alarms, before = [], np.inf
    for figures in series.figures[:, : series.sessions]:
        alarms.append(bool(np.median(figures) > 1.03 * before))  # False for a night that was not measured
        before = before if np.isnan(figures).any() else float(np.median(figures))
    return Outcome(alarms)


def plain_nights(series: Series) -> list[Night]:
    """Make the nights of a series; a night is named by its number, and has no figure if it was not measured."""
    return [
        Night(f"{index:02}", tuple(ms for ms in figures[: series.sessions] if ms == ms), content=content)
        for index, (figures, content) in enumerate(zip(series.figures.tolist(), series.contents, strict=True))
    ]


@dataclass(frozen=True)
class Scores:
    false_alarms: float
    """Per 100 nights of series whose content changes every night without an effect; so are the next two."""
    compared: float
    """Comparisons the same night."""
    device: float
    """Verdicts on the device, with equal content every night."""
    equal_alarms: float
    """Alarms on the model, with equal content every night."""
    step_5_in_3: float
    step_10_in_2: float
    step_10_in_3: float
    step_15_after_1: float
    """Steps of 15 % that are found within three nights after one night, and (below) after two, with the file kept."""
    step_15_after_2: float
    coverage: float | None
    floor: float | None
    """Share of the nights without a change that move by less than the noise floor."""


def score(rule: Rule, series_of_each_kind: int, session_cv: float, noise: Noise = NOISES["as assumed"]) -> Scores:
    """Apply a rule to series without a change, with a step of 5 %, and with one of 10 %."""
    generator = np.random.default_rng(1)

    def outcomes(level: Array, *, is_equal: bool = False) -> list[tuple[Series, Outcome]]:
        made = [make_series(generator, level, session_cv, noise) for _ in range(series_of_each_kind)]
        made = [replace(each, contents=("same",) * len(level)) for each in made] if is_equal else made
        return [(series, rule(series)) for series in made]

    nights = np.arange(NIGHTS) - CHANGE_NIGHT
    flat, equal = outcomes(np.ones(NIGHTS)), outcomes(np.ones(NIGHTS), is_equal=True)
    step_5, step_10 = (outcomes(np.where(nights >= 0, size, 1.0)[: CHANGE_NIGHT + 3]) for size in (1.05, 1.1))
    few = [outcomes(np.where(np.arange(count + 3) < count, 1.0, 1.15)) for count in (1, 2)]
    of_device = [each.verdict.startswith("device") for _, outcome in equal for each in outcome.verdicts]
    return Scores(
        false_alarms=100 * float(np.mean([outcome.alarms for _, outcome in flat])),
        compared=100 * float(np.mean([outcome.compared / NIGHTS for _, outcome in flat])),
        device=100 * float(np.mean(of_device)) if of_device else 0.0,
        equal_alarms=100 * float(np.mean([outcome.alarms for _, outcome in equal])),
        step_5_in_3=share_found(step_5, 3),
        step_10_in_2=share_found(step_10, 2),
        step_10_in_3=share_found(step_10, 3),
        step_15_after_1=share_found(few[0], 3, 1),
        step_15_after_2=share_found(few[1], 3, 2),
        coverage=coverage([*flat, *step_5, *step_10]),
        floor=share_below_floor(equal),
    )


def share_found(outcomes: Sequence[tuple[Series, Outcome]], nights: int, start: int = CHANGE_NIGHT) -> float:
    """Return the share of series with an alarm in the first `nights` nights from the change, in night `start`, on."""
    return float(np.mean([any(each.alarms[start : start + nights]) for _, each in outcomes]))


def share_below_floor(outcomes: Sequence[tuple[Series, Outcome]]) -> float | None:
    """Return the share of the nights that moved by less than their noise floor."""
    below = [
        abs(np.log(each.ratio)) < np.log1p(each.noise_floor)
        for _, outcome in outcomes
        for each in outcome.verdicts
        if each.ratio is not None and each.noise_floor is not None
    ]
    return float(np.mean(below)) if below else None


def coverage(outcomes: Sequence[tuple[Series, Outcome]]) -> float | None:
    """Return the share of the intervals that hold the true ratio of a night to its baseline."""
    held = []
    for series, outcome in outcomes:
        for index, verdict in enumerate(outcome.verdicts):
            if verdict.low is not None and verdict.high is not None:
                truth = series.level[index] / series.level[int(str(verdict.baseline_to))]
                held.append(verdict.low <= truth <= verdict.high)
    return float(np.mean(held)) if held else None


RULES: dict[str, Rule] = {"ours": our_rule, "ours, without A/B": our_rule_alone, "naive": naive_rule}


def main() -> None:
    print(f"Sessions: CV {SESSION_CV:.1%}, {HOT_SESSIONS:.0%} hot; two modes in {TWO_MODES:.0%} of the series.")
    print(f"Nights: CV {NIGHT_CV:.1%}, {HOT_NIGHTS:.0%} hot (+4 to 15 %). Steps come in night {CHANGE_NIGHT + 1}.")
    print("Per 100 series-nights: alarms where content changes every night without effect, comparisons the same night,")
    print("alarms and verdicts on the device where content is equal. Steps: share found, after 25 nights, and of 15 %")
    print("after one and two nights. 95 %: intervals that hold. Floor: nights of equal content below the noise floor.")
    print(f"{'noise':32} {'rule':18} alarms   A/B  equal device  5 % in 3  10 % in 3  after 1  after 2   95 %  floor")
    for name, noise in NOISES.items():
        for of_rule, rule in RULES.items():
            got = score(rule, SERIES, SESSION_CV, noise)
            interval, floor = ("-" if share is None else f"{share:.1%}" for share in (got.coverage, got.floor))
            print(
                f"{name:32} {of_rule:18} {got.false_alarms:6.2f} {got.compared:5.1f} {got.equal_alarms:6.2f}"
                f" {got.device:6.2f} {got.step_5_in_3:9.0%} {got.step_10_in_3:10.0%}"
                f" {got.step_15_after_1:8.0%} {got.step_15_after_2:8.0%} {interval:>6} {floor:>6}",
                flush=True,
            )


if __name__ == "__main__":
    main()
