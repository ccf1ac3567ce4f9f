"""Which night a change came with, and which of its inputs: the search, without devices."""

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
    """A series on a device, as `etfarm bisect` names it."""

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
    """A night of a series, and what ran: the keys to find model and runner again."""

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
        """The hashes of model and runner."""
        return self.pte_sha256, self.runner_sha256


def find_series(word: str, device: str | None, known: Iterable[SeriesOnDevice]) -> SeriesOnDevice:
    """Return the series that a model's name or the begin of a series id means; raises InputError unless it is one."""
    on_device = [each for each in known if device in (None, each.device)]
    found = [each for each in on_device if each.model == word or (len(word) >= 6 and each.series_id.startswith(word))]
    if len(found) == 1:
        return found[0]
    if not found:
        raise unknown_series(word, {each.model for each in on_device})
    lines = "".join(f"\n  {each.series_id[:12]}  {each}" for each in found)
    raise InputError(f"`{word}` is {len(found)} series; name one by its id, and --device:{lines}")


def bounds(
    nights: Sequence[MeasuredNight], good: date | None, bad: date | None
) -> tuple[MeasuredNight, list[MeasuredNight]]:
    """Return the good night and the first night of each content after it, the bad night's content last.

    Without `good` and `bad`, they are the last good night and the newest night of the newest step. Raises InputError.
    """
    by_date = {each.night: each for each in nights}
    if good is None or bad is None:
        newest = next((each for each in reversed(nights) if each.verdict in _STEPS and each.baseline_to), None)
        if newest is None:
            raise InputError("no night of this series is suspected or a regression; name two with --good and --bad")
        good, bad = good or newest.baseline_to, bad or newest.night
    for night in (good, bad):
        if night not in by_date:
            raise InputError(f"{night} is not a measured night of this series; measured: {_listed(by_date)}")
    assert good is not None
    if good >= bad:
        raise InputError(f"the good night {good} is not before the bad night {bad}; exchange them")
    first = by_date[good]
    after = [each for each in nights if good < each.night <= bad]
    contents = [next(same) for _, same in groupby([first, *after], lambda each: each.content)][1:]
    if not contents or contents[-1].content == first.content:
        raise InputError(f"model and runner of {bad} are those of {good}: the device changed, not they")
    return first, contents


def _listed(nights: Iterable[date]) -> str:
    known = [str(night) for night in nights]
    return ", ".join(known if len(known) <= 6 else [*known[:2], "...", *known[-3:]])


def first_bad(count: int, is_bad: Callable[[int], bool]) -> int:
    """Return the index of the first bad one of `count`, of which the last is bad; asks about as few as possible."""
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        if is_bad(middle):
            high = middle
        else:
            low = middle + 1
    return low
