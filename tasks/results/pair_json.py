"""A change of a series as a `pair` of docs/json.md, written and read. Needs nothing but Python."""

from collections.abc import Mapping
from typing import Any

from tasks.results.changes import SLOWER, SeriesChange, SideFacts

_NAMES = ("model", "device", "precision", "variant", "threads")
_FIGURES = (
    "ratio", "low", "high", "more_sessions", "superiority", "answer", "is_regression", "in_words", "nights_differ_by",
)  # fmt: skip
_OF_A_SIDE = ("pte_bytes", "peak_memory_bytes", "accuracy", "cell", "sweep", "commit", "load_ms")
PAIR_KEYS = (
    *(*_NAMES, "emulated", "sessions_a", "sessions_b", "time_a_ms", "time_b_ms", *_FIGURES, "differs", "cause"),
    *(f"{name}_{side}" for name in _OF_A_SIDE for side in "ab"),
    "note",
)
"""Keys of a `pair` in docs/json.md, and columns of the CSV."""


def write_pair(change: SeriesChange) -> dict[str, Any]:
    """Return a change as a `pair` of docs/json.md."""
    values = (
        *(getattr(change, name) for name in _NAMES),
        *(change.emulated, change.a.sessions, change.b.sessions, change.a.time_ms, change.b.time_ms),
        *(getattr(change, name) for name in _FIGURES),
        *(change.changed or None, change.cause),
        *(getattr(side, name) for name in _OF_A_SIDE for side in (change.a, change.b)),
        change.note,
    )
    return dict(zip(PAIR_KEYS, values, strict=True))


def read_pair(row: Mapping[str, Any]) -> SeriesChange:
    """Return what `write_pair` wrote, missing keys as None; KeyError without answer, ratio, sessions or times."""
    a, b = (
        SideFacts(
            sessions=row[f"sessions_{side}"],
            time_ms=row[f"time_{side}_ms"],
            **{name: row.get(f"{name}_{side}") for name in _OF_A_SIDE},
        )
        for side in "ab"
    )
    answer, ratio = row["answer"], row["ratio"]
    in_words = row.get("in_words") or ""
    word = answer or ("simulated" if in_words.startswith("simulated") else "emulated")
    if answer == "different":
        of_device = "device " if in_words.startswith("device ") else ""
        word = f"{of_device}{SLOWER if ratio > 1 else 'faster'}"
    figures = {name: row.get(name) for name in (*_NAMES, *_FIGURES, "cause", "note")}
    figures["variant"] = figures["variant"] or "unknown"
    figures["is_regression"] = bool(figures["is_regression"])
    return SeriesChange(**figures, word=word, a=a, b=b, changed=row.get("differs"))  # type: ignore[arg-type]
