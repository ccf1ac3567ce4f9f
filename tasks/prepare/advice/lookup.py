"""What to do about portable operators: the table's entry for one, and its sentences."""

from collections.abc import Iterable

from tasks.prepare.advice.entry import Advice, word_of
from tasks.prepare.advice.table import TABLE

HEAVY_SHARE = 0.05
"""A portable operator with more of Method::execute than this gets advice."""
NO_REASON = "the partitioner gave no reason"
_UNKNOWN = "No rewrite is known: replace the operator in the model, or accept its time."


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


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
