"""What a model fails with and what it runs with: one sentence instead of a failed series for each variant or option."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tasks.bundle.failure_kinds import FAILURE_KINDS, signal_name
from tasks.bundle.runtime import parse_runtime, without_runtime
from tasks.bundle.variant_word import variant_word
from tasks.results.text import counted, listed

if TYPE_CHECKING:
    from tasks.results.verdicts import VerdictRow


def with_contrasts(rows: Sequence["VerdictRow"]) -> list["VerdictRow"]:
    """Return the series of nights; the reason of one that fails begins with what the same model runs with.

    Series are compared that differ in the variant alone or, if none of these runs, in versions and options alone.
    """
    runs: dict[tuple[str, ...], list[VerdictRow]] = {}
    for row in rows:
        if row.value is not None:
            runs.setdefault(_conditions(row), []).append(row)
    return [
        replace(row, contrast=contrast, reason=f"{contrast}; {row.reason}")
        if (contrast := _contrast(row, runs.get(_conditions(row), [])))
        else row
        for row in rows
    ]


def _conditions(row: "VerdictRow") -> tuple[str, ...]:
    return without_runtime(row.model), row.device, row.precision, str(row.threads), str(row.night)


def _contrast(row: "VerdictRow", runs: Sequence["VerdictRow"]) -> str | None:
    """Return `crashes with SME2 on (SIGSEGV), runs with SME2 off (8 sessions)`; None without a series that runs."""
    kind = FAILURE_KINDS.get(row.failure_kind or "")
    if row.value is not None or kind is None or not kind.phrase:
        return None
    signal = f" ({signal_name(row.failure_signal, row.failure_system)})" if row.failure_signal else ""
    other_variants = [each for each in runs if each.model == row.model]
    if other_variants:
        words = listed(
            [f"{variant_word(each.variant)} ({counted(each.sessions, 'session')})" for each in other_variants]
        )
        return f"{kind.phrase} with {variant_word(row.variant)}{signal}, runs with {words}"
    others = [each for each in runs if each.variant == row.variant]
    if not others:
        return None
    words = listed([f"{_runtime_words(each.model)} ({counted(each.sessions, 'session')})" for each in others])
    return f"{kind.phrase} {_runtime_words(row.model)}{signal}, runs {words}"


def _runtime_words(model: str) -> str:
    """Return the versions and options of a case: `with load=mmap`, or `by default` without any."""
    runtime = parse_runtime(model)
    words = ",".join(filter(None, [f"export={runtime.export}" if runtime.export else "", runtime.of_run]))
    return f"with {words}" if words else "by default"
