"""The known causes of table.csv; tests/fixtures/advice_pairs.py has a module before and after each rewrite.

The rules are those of `executorch.backends.xnnpack.partition.config` in 1.5.1. The more specific entry comes first.
A rewrite that tests/benchmarks/advice.py measured as slower than the portable operator is not in the table.
"""

import csv
from pathlib import Path

from tasks.prepare.advice.entry import Advice


def _entry(row: dict[str, str]) -> Advice:
    return Advice(
        name=row["name"],
        operators=frozenset(row["operators"].split()),
        cause=row["cause"],
        rewrite=row["rewrite"] or None,
        reason=row["reason"],
        beside=frozenset(row["beside"].split()),
    )


with Path(__file__).with_name("table.csv").open(encoding="utf-8", newline="") as _stream:
    TABLE: tuple[Advice, ...] = tuple(map(_entry, csv.DictReader(_stream)))
