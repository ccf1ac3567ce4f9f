"""What to do about portable operators: the table's entry for one, and sentences about the heaviest of a model."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tasks.advice.entry import Advice, word_of
from tasks.advice.table import TABLE

HEAVY_SHARE = 0.05
"""A portable operator with more of Method::execute than this gets advice."""
NO_REASON = "the partitioner gave no reason"
_UNKNOWN = "No rewrite is known: replace the operator in the model, or accept its time."


@dataclass(frozen=True)
class HeavyOperator:
    """A portable operator with its share of Method::execute, why it was not delegated, and what to do."""

    operator: str
    share: float
    text: str


def advice_for(operator: str, reason: str | None, portable: Iterable[str] = ()) -> Advice | None:
    """Return the table's entry for a portable operator, None if it has none.

    `operator` is a name of the exporter or of the runtime, `reason` the partitioner's (all of them, joined), `portable`
    the names of all portable operators of the model: some operators are explained by those beside them.
    """
    word, beside = word_of(operator), frozenset(map(word_of, portable))
    return next((entry for entry in TABLE if entry.is_about(word, reason or "", beside)), None)


def advice_text(operator: str, reason: str | None, portable: Iterable[str] = ()) -> str:
    """Return sentences: why the operator was not delegated, and the rewrite that delegates it or that none is known."""
    entry = advice_for(operator, reason, portable)
    return entry.text if entry else f"{_capital(reason or NO_REASON)}. {_UNKNOWN}"


def heavy_operators(portable: list[dict[str, Any]], shares: Mapping[str, float]) -> list[HeavyOperator]:
    """Return the portable operators with more than HEAVY_SHARE of the time, the heaviest first.

    `portable` is that of an Export ({operator, count, reason}); `shares` maps the names of measured operators to their
    part of Method::execute, 0 to 1. The two name operators differently; overloads of one are added up.
    """
    names = [entry["operator"] for entry in portable]
    measured: dict[str, float] = {}
    for name, share in shares.items():
        measured[word_of(name)] = measured.get(word_of(name), 0.0) + share
    heavy = []
    for word in sorted({word_of(name) for name in names}, key=lambda word: -measured.get(word, 0.0)):
        entries = [entry for entry in portable if word_of(entry["operator"]) == word]
        if measured.get(word, 0.0) > HEAVY_SHARE:
            reason = "; ".join(dict.fromkeys(entry["reason"] for entry in entries if entry["reason"])) or None
            name = ", ".join(entry["operator"] for entry in entries)
            heavy.append(HeavyOperator(name, measured[word], advice_text(word, reason, names)))
    return heavy


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
