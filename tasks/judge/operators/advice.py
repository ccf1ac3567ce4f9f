"""Advice about portable operators: their causes (advice.csv), and the rewrite of the model for each."""

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

HEAVY_SHARE = 0.05
"""Share of the time of Method::execute: operators above it are listed and highlighted, portable ones get advice."""
NO_REASON = "the partitioner gave no reason"
_UNKNOWN = "No rewrite is known: replace the operator in the model, or accept its time."
_WORD = re.compile(r"^(?:\w+(?:\.|::))?(\w+)")


@dataclass(frozen=True)
class Advice:
    """Why an operator is portable, and the rewrite of the model that delegates it, if there is one.

    The entry applies to an operator if its word is in `operators`, the partitioner's reason contains `reason`, and the
    model has portable operators of all words in `beside`.
    """

    name: str
    operators: frozenset[str]
    cause: str
    rewrite: str | None
    """One sentence in the imperative, without its full stop; None: nothing can be done in the exporter."""
    reason: str = ""
    beside: frozenset[str] = frozenset()

    @property
    def text(self) -> str:
        """Two sentences: the cause, then what to do."""
        remedy = f"Next: {self.rewrite}" if self.rewrite else "Nothing can be done in the exporter"
        return f"{_capital(self.cause)}. {remedy}."


# tests/fixtures/advice_pairs.py has a module before and after each rewrite. The rules are those of
# `executorch.backends.xnnpack.partition.config` in 1.5.1. The more specific entry comes first. A rewrite that
# tests/benchmarks/advice.py measured as slower than the portable operator is not in the table.
with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as _stream:
    TABLE: tuple[Advice, ...] = tuple(
        Advice(
            name=row["name"],
            operators=frozenset(row["operators"].split()),
            cause=row["cause"],
            rewrite=row["rewrite"] or None,
            reason=row["reason"],
            beside=frozenset(row["beside"].split()),
        )
        for row in csv.DictReader(_stream)
    )


def operator_word(operator: str) -> str:
    """Return the word that the names of exporter and runtime share: `mean` of aten.mean.dim, aten::mean and mean."""
    match = _WORD.match(operator)
    return match[1] if match else operator


def advice_for(operator: str, reason: str | None, portable: Iterable[str] = ()) -> Advice | None:
    """Return the first entry of the table that applies to a portable operator; None if there is none.

    `operator` is a name of the exporter or of the runtime. `reason` joins all reasons of the partitioner. `portable`
    are the names of all portable operators of the model: some operators are explained by those beside them.
    """
    word, beside = operator_word(operator), frozenset(map(operator_word, portable))
    for entry in TABLE:
        if word in entry.operators and entry.reason in (reason or "") and entry.beside <= beside:
            return entry
    return None


def advice_text(operator: str, reason: str | None, portable: Iterable[str] = ()) -> str:
    """Return sentences: why the operator was not delegated, and the rewrite that delegates it, if the table has one."""
    entry = advice_for(operator, reason, portable)
    return entry.text if entry else f"{_capital(reason or NO_REASON)}. {_UNKNOWN}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
