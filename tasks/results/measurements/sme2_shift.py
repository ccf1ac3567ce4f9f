"""Where the time goes with SME2 off and on, by category, and which category dominates: in one sentence, or as bars."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

from tasks.bundle.robust_statistics import median_interval
from tasks.results.cells import PairRow, by_cell_or_pair
from tasks.results.measurements.sme2 import ran_with_sme
from tasks.results.reader import Answers
from tasks.results.table import NOTHING, Calls, Cell, Milliseconds, Percent, Signed, Words
from tasks.results.text import in_ms, in_percent, listed

Side = Literal["off", "on"]
_MIN_INTERVAL_SESSIONS = 6  # see median_interval


@dataclass(frozen=True)
class ShiftRow(PairRow):
    """A category with SME2 off and on; dashes below the resolution. An emulated device has calls and no times."""

    query = "sme2_shift"
    category: Annotated[str, Words("Category")]
    share_off: Annotated[float | None, Percent("SME2 off")]
    share_on: Annotated[float | None, Percent("SME2 on")]
    change_points: Annotated[float | None, Signed("Change", "points", digits=1)]
    time_off_ms: Annotated[float | None, Milliseconds("SME2 off")]
    time_on_ms: Annotated[float | None, Milliseconds("SME2 on")]
    change_ms: Annotated[float | None, Signed("Change", "ms", digits=3)]
    calls_off: Annotated[float, Calls("Calls off")]
    calls_on: Annotated[float, Calls("Calls on")]
    memory_off_ms: Annotated[float | None, Milliseconds("Memory-bound off", only_with="winnable_on_ms")]
    memory_on_ms: Annotated[float | None, Milliseconds("Memory-bound on", only_with="winnable_on_ms")]
    winnable_on_ms: Annotated[
        float | None, Milliseconds("Above the roof on", "what could be won with SME2 on", only_with="winnable_on_ms")
    ]
    below_resolution: bool
    session_shares_off: list[float] | None
    """The category's share of the time of each session."""
    session_shares_on: list[float] | None

    def share_off_cell(self, cell: Cell) -> Cell:
        return NOTHING if self.below_resolution else cell

    @property
    def became_memory_bound(self) -> bool:
        """Whether the roof of most of its time is the speed of memory with SME2 on, and was not with it off."""
        if self.memory_off_ms is None:  # the roof with SME2 off is unknown
            return False
        was_bound = 2 * self.memory_off_ms > (self.time_off_ms or 0.0)
        return 2 * (self.memory_on_ms or 0.0) > (self.time_on_ms or 0.0) and not was_bound

    share_on_cell = change_points_cell = time_off_ms_cell = time_on_ms_cell = change_ms_cell = share_off_cell

    @cached_property
    def off(self) -> "CategorySide":
        return CategorySide(self.category, self.share_off, self.time_off_ms, tuple(self.session_shares_off or ()))

    @cached_property
    def on(self) -> "CategorySide":
        return CategorySide(self.category, self.share_on, self.time_on_ms, tuple(self.session_shares_on or ()))


@dataclass(frozen=True)
class CategorySide:
    """A category on one side of a pair: its share of the time, from 0 to 1, and its milliseconds."""

    category: str
    share: float | None
    time_ms: float | None
    session_shares: tuple[float, ...]

    @cached_property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the share; None for fewer than 6 sessions."""
        return median_interval(self.session_shares) if self.session_shares else None

    @property
    def most(self) -> float:
        """Upper end of the interval; without one, the largest share of any session."""
        return self.interval[1] if self.interval else max(self.session_shares, default=0.0)

    def __str__(self) -> str:
        time = in_ms(self.time_ms or 0.0)
        if not self.interval:
            return f"{in_percent(self.share or 0.0)} of the time ({time})"
        low, high = self.interval
        return (
            f"{in_percent(self.share or 0.0)} of the time (95 % interval {100 * low:.1f} to {100 * high:.1f} %; {time})"
        )


def shift_in_words(answers: Answers) -> Iterator[str]:
    """Yield a sentence for each pair with times: which category dominates with SME2 off, and which with it on."""
    shifts = answers.rows(ShiftRow) if ran_with_sme(answers) else []  # planning this query takes longer than reading it
    for rows in by_cell_or_pair(shifts).values():
        if sentence := shift_sentence(rows):
            yield sentence


def shift_sentence(rows: Sequence[ShiftRow]) -> str:
    """Return what the record of a pair supports; empty without times on both sides.

    A category dominates if its interval is above those of all others.
    """
    timed = [row for row in rows if not row.below_resolution]
    sides = [[side for side in (getattr(row, name) for row in timed) if side.share] for name in ("off", "on")]
    if not all(sides):
        return ""
    off, on = (max(side, key=lambda each: each.share or 0.0) for side in sides)
    unclear = [_doubt(*pair) for pair in zip((off, on), sides, strict=True)]
    if any(unclear):
        return (
            f"Largest part with SME2 off: {off.category}, {off}; with SME2 on: {on.category}, {on}. "
            f"No category is known to dominate with SME2 {'on' if unclear[1] else 'off'}: {unclear[1] or unclear[0]}."
        )
    if off.category == on.category:
        return f"{on.category} dominates without SME2 and with it: {off}, then {on}. {_growth(timed, on)}".rstrip()
    return f"After SME2, {on.category} dominates: {on}. With SME2 off {off.category} did: {off}."


def roof_sentence(rows: Sequence[ShiftRow]) -> str:
    """Return which categories became memory-bound with SME2, and what is left above the roof; empty without a roof."""
    with_roof = [row for row in rows if row.winnable_on_ms is not None and row.time_on_ms is not None]
    if not with_roof:
        return ""
    bound = [
        f"{row.category} ({in_ms(row.memory_on_ms or 0.0)} of {in_ms(row.time_on_ms or 0.0)})"
        for row in with_roof
        if row.became_memory_bound
    ]
    most = max(with_roof, key=lambda row: row.winnable_on_ms or 0.0)
    left = f"{in_ms(sum(row.winnable_on_ms or 0.0 for row in with_roof))} above the roof of the device"
    became = f"With SME2 on, {listed(bound)} became memory-bound. " if bound else ""
    if not bound and all(row.memory_off_ms is not None for row in with_roof):
        became = "No category became memory-bound. "
    return f"{became}What is left is {left}, most of it in {most.category} ({in_ms(most.winnable_on_ms or 0.0)})."


def _doubt(largest: CategorySide, side: Sequence[CategorySide]) -> str:
    """Return why it is unknown whether the largest category of a side dominates; empty if it does."""
    if largest.interval is None:
        return f"an interval needs {_MIN_INTERVAL_SESSIONS} sessions on each side"
    others = [each.category for each in side if each is not largest and each.most >= largest.interval[0]]
    return f"the interval of {others[0]} overlaps" if others else ""


def _growth(rows: Sequence[ShiftRow], dominant: CategorySide) -> str:
    """Return which other category has a larger share with SME2 on, where the intervals prove it; empty without one."""
    grown = [
        row
        for row in rows
        if row.category != dominant.category and row.on.interval and row.on.interval[0] > row.off.most
    ]
    if not grown:
        return ""
    most = max(grown, key=lambda row: (row.on.share or 0.0) - (row.off.share or 0.0))
    return f"{most.category} grew most, from {in_percent(most.off.share or 0.0)} to {most.on}."
