"""Bisection over nights, not commits: find the night that a change came with and its inputs; needs no device."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby

from devices.errors import InputError
from tasks.bundle.model_names import limit_series, unknown_series
from tasks.bundle.variant_word import variant_word
from tasks.judge.verdicts.night import Verdict

_STEP_VERDICTS = {"regression", "suspected", "improvement", "suspected improvement"}


@dataclass(frozen=True)
class SeriesOnDevice:
    series_id: str
    device: str
    model: str
    precision: str
    variant: str
    threads: int | None

    def __str__(self) -> str:
        return f"{self.model} {self.precision} {variant_word(self.variant)} t{self.threads} on {self.device}"


@dataclass(frozen=True)
class MeasuredNight:
    """A night of a series, with the keys to find its model and runner again."""

    night: date
    verdict: Verdict
    baseline_to: date | None
    """The last good night."""
    executions: int
    warmup_executions: int
    export_key: str | None
    pte_sha256: str | None
    runner_sha256: str | None

    @property
    def content(self) -> tuple[str | None, str | None]:
        """The hashes of model and runner, None where unknown."""
        return self.pte_sha256, self.runner_sha256


def find_series(word: str, only: Mapping[str, str | None], candidates: Iterable[SeriesOnDevice]) -> SeriesOnDevice:
    """Return the series of a model, or by 6 or more characters of its id; InputError unless exactly one matches.

    `only` gives device and precision (None: any).
    """
    series = list(candidates)
    matches = [each for each in series if each.model == word or (len(word) >= 6 and each.series_id.startswith(word))]
    if not matches:
        raise unknown_series(word, {each.model for each in series})
    for name, value in only.items():
        matches = limit_series(matches, word, name, value)
    if len(matches) == 1:
        return matches[0]
    lines = "".join(f"\n  {each.series_id[:12]}  {each}" for each in matches)
    raise InputError(f"`{word}` is {len(matches)} series; use --device, --precision or an id:{lines}")


def find_bounds(
    nights: Sequence[MeasuredNight], good: date | None, bad: date | None
) -> tuple[MeasuredNight, list[MeasuredNight]]:
    """Return the good night, and the first night of each run of equal content after it, up to the bad night.

    `nights` are in order of their dates. None for `good` or `bad` stands for the date of `_default_dates`. Raises
    InputError if there is none, a date was not measured, `good` is not before `bad`, or both have the same content.
    """
    by_date = {each.night: each for each in nights}
    good, bad = _default_dates(nights, good, bad)
    for night in (good, bad):
        if night not in by_date:
            dates = [str(each) for each in by_date]
            listed = ", ".join(dates if len(dates) <= 6 else [*dates[:2], "...", *dates[-3:]])
            raise InputError(f"{night} is not a measured night of this series; measured: {listed}")
    if good >= bad:
        raise InputError(f"the good night {good} is not before the bad night {bad}; exchange them")
    first = by_date[good]
    after = [each for each in nights if good < each.night <= bad]
    contents = [next(same) for _, same in groupby([first, *after], lambda each: each.content)][1:]
    if not contents or contents[-1].content == first.content:
        raise InputError(f"model and runner of {bad} are those of {good}: the device changed, not they")
    return first, contents


def _default_dates(nights: Sequence[MeasuredNight], good: date | None, bad: date | None) -> tuple[date, date]:
    """Return both dates, with a default for None; raises InputError without a night that gives it.

    That of `bad` is the newest night that is suspected, a regression or an improvement; that of `good` is the last good
    night of the newest such night up to `bad`.
    """
    if good is not None and bad is not None:
        return good, bad
    for each in reversed(nights):
        if each.verdict in _STEP_VERDICTS and each.baseline_to and (bad is None or each.night <= bad):
            return good or each.baseline_to, bad or each.night
    until = f" up to {bad}" if bad else ""
    raise InputError(f"no night of this series{until} is suspected or a regression; name two with --good and --bad")


def first_bad(count: int, is_bad: Callable[[int], bool]) -> int:
    """Return the index of the first bad one of `count` items, by bisection; the last one must be bad."""
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        if is_bad(middle):
            high = middle
        else:
            low = middle + 1
    return low
