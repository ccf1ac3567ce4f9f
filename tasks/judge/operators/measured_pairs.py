"""What rewrites of portable operators gained where they were measured before and after (advice_ratios.csv).

A ratio is the time of what replaces an operator, with all that changes around it, over the operator's time before. It
depends on the size of the operator, so a prediction takes the sizes around that of the operator.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

RATIOS = Path(__file__).with_name("advice_ratios.csv")


@dataclass(frozen=True)
class Ratio:
    """Time after over time before, with the range of what was measured."""

    ratio: float
    low: float
    high: float
    basis: str
    """The entry of the table of advice, the processor and the day."""


@dataclass(frozen=True)
class MeasuredPair:
    """A row of the table: one size of the pair of an entry."""

    operator_us: float
    """Time of a call of the portable operator."""
    ratio: Ratio


def measured_ratio(entry: str, precision: str, processor: str, operator_us: float) -> Ratio | None:
    """Return the ratio for a portable operator with so many microseconds per call; None if no pair was measured.

    It is the one of the size nearest to the operator's. The range is that of the two sizes around it, or of all sizes
    if it is outside of them.
    """
    pairs = _table().get((entry, precision, processor), ())
    if not pairs:
        return None
    nearest = min(pairs, key=lambda pair: max(pair.operator_us / operator_us, operator_us / pair.operator_us))
    around = _around(pairs, operator_us)
    ratios = [pair.ratio for pair in around]
    return Ratio(
        nearest.ratio.ratio,
        min(each.low for each in ratios),
        max(each.high for each in ratios),
        nearest.ratio.basis,
    )


def _around(pairs: Sequence[MeasuredPair], operator_us: float) -> Sequence[MeasuredPair]:
    """Return the two pairs, sorted by size, between which an operator is; all if it is outside of them."""
    for smaller, larger in pairwise(pairs):
        if smaller.operator_us <= operator_us <= larger.operator_us:
            return smaller, larger
    return pairs


@cache
def _table() -> dict[tuple[str, str, str], tuple[MeasuredPair, ...]]:
    """Return the pairs by entry, precision and processor, the smallest first."""
    table: dict[tuple[str, str, str], list[MeasuredPair]] = {}
    with RATIOS.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            basis = f"{row['name']} on {row['processor']}, {row['measured_on']}"
            ratio = Ratio(float(row["ratio"]), float(row["low"]), float(row["high"]), basis)
            key = (row["name"], row["precision"], row["processor"])
            table.setdefault(key, []).append(MeasuredPair(float(row["operator_us"]), ratio))
    return {key: tuple(sorted(pairs, key=lambda pair: pair.operator_us)) for key, pairs in table.items()}
