"""Bisection: find the night that a change came with, and which of its inputs; needs no device."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby

from devices.errors import InputError
from tasks.bundle.model_names import unknown_series
from tasks.judge.night import Verdict

_STEPS = {"regression", "suspected", "improvement"}


@dataclass(frozen=True)
class SeriesOnDevice:
    series_id: str
    device: str
    model: str
    precision: str
    variant: str
    threads: int | None

    def __str__(self) -> str:
        return f"{self.model} {self.precision} {self.variant} t{self.threads} on {self.device}"


@dataclass(frozen=True)
class MeasuredNight:
    """A night of a series, with the keys to find its model and runner again."""

    night: date
    verdict: Verdict
    baseline_to: date | None
    executions: int
    warmup_executions: int
    export_key: str | None
    pte_sha256: str | None
    runner_sha256: str | None

    @property
    def content(self) -> tuple[str | None, str | None]:
        """The hashes of model and runner, None where unknown."""
        return self.pte_sha256, self.runner_sha256


def find_series(word: str, device: str | None, candidates: Iterable[SeriesOnDevice]) -> SeriesOnDevice:
    """Return the one series of a model or id (6 characters suffice) on a device (None: any); raises InputError."""
    on_device = [each for each in candidates if device in (None, each.device)]
    matches = [each for each in on_device if each.model == word or (len(word) >= 6 and each.series_id.startswith(word))]
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise unknown_series(word, {each.model for each in on_device})
    lines = "".join(f"\n  {each.series_id[:12]}  {each}" for each in matches)
    raise InputError(f"`{word}` is {len(matches)} series; name one by its id, and --device:{lines}")


def bounds(
    nights: Sequence[MeasuredNight], good: date | None, bad: date | None
) -> tuple[MeasuredNight, list[MeasuredNight]]:
    """Return the good night, and the first night of each run of equal content after it, up to the bad night.

    `nights` are in order of their dates. The default of `bad` is the newest night that is suspected, a regression or
    an improvement; the default of `good` is the last good night of the newest such night up to `bad`. Raises InputError
    if there is no such night, a date was not measured, `good` is not before `bad`, or both have the same content.
    """
    by_date = {each.night: each for each in nights}
    if good is None or bad is None:
        steps = [each for each in nights if each.verdict in _STEPS and each.baseline_to]
        newest = next((each for each in reversed(steps) if bad is None or each.night <= bad), None)
        if newest is None:
            until = f" up to {bad}" if bad else ""
            raise InputError(
                f"no night of this series{until} is suspected or a regression; name two with --good and --bad"
            )
        good, bad = good or newest.baseline_to, bad or newest.night
    for night in (good, bad):
        if night not in by_date:
            dates = [str(each) for each in by_date]
            listed = ", ".join(dates if len(dates) <= 6 else [*dates[:2], "...", *dates[-3:]])
            raise InputError(f"{night} is not a measured night of this series; measured: {listed}")
    assert good is not None
    if good >= bad:
        raise InputError(f"the good night {good} is not before the bad night {bad}; exchange them")
    first = by_date[good]
    after = [each for each in nights if good < each.night <= bad]
    contents = [next(same) for _, same in groupby([first, *after], lambda each: each.content)][1:]
    if not contents or contents[-1].content == first.content:
        raise InputError(f"model and runner of {bad} are those of {good}: the device changed, not they")
    return first, contents


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
