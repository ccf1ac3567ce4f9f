"""Find the two arms of a comparison from the words of a user."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from devices.errors import InputError
from devices.suggest import did_you_mean, nights_beside
from tasks.judge.pairs import SINGLE

KINDS = {
    "night": "night",
    "sweep": "sweep",
    "variant": "variant",
    "device": "device",
    "model": "model",
    "precision": "precision",
    "threads": "number of threads",
    "delegate": "delegate",
    "executorch": "ExecuTorch version",
    "runner": "runner",
    "runtime": "runtime",
    "cell": "cell",
    "session": "session",
}
"""What each kind of arm is called in sentences."""
SAME_ARM = "A and B are the same {kind} ({value}); name two"
_NIGHT_KINDS = {"night", "sweep"}
_ID_KINDS = {"cell", "session", "runner"}
_ID_PREFIX = re.compile(r"[0-9a-f]{6,}")


@dataclass(frozen=True)
class ArmName:
    """A value that a word may name, in one of the sweeps that contain it."""

    kind: str
    value: str
    sweep_id: str
    last_started_at: datetime | None
    """Start of the sweep's last session."""


@dataclass(frozen=True)
class Arm:
    """One side of a comparison: all cells with this value, in one sweep, or in all if `sweep_id` is None."""

    kind: str
    value: str
    sweep_id: str | None

    def __str__(self) -> str:
        value = self.value[:16] if self.kind in _ID_KINDS else self.value
        return f"{KINDS[self.kind]} {value}" + (f" in sweep {self.sweep_id}" if self.sweep_id else "")


def name_of_folder(argument: str) -> str:
    """Return the argument, or the last part of the path of an existing folder: bundles and sweeps are named by id."""
    return Path(argument).name if "/" in argument and Path(argument).is_dir() else argument


def id_prefix(word: str) -> str:
    """Return the part of a word that may begin an id: `3f0c1a` of `cell:3f0c1a` and of `3f0c1a`."""
    return word.rpartition(":")[2]


def find_arms(a: str, b: str, names: Sequence[ArmName], sweep_id: str | None = None) -> tuple[Arm, Arm]:
    """Return the arms that two words name.

    A value inside sweeps, such as a device, is looked up in `sweep_id`; without one in the newest sweep that has both,
    or else in the newest sweep of each. Nights, sweeps, cells and sessions exclude a `sweep_id`.
    Raises InputError if a word names nothing or several values, or a value that `sweep_id` lacks, if both are the same,
    or if their kinds differ: only a night and a sweep, or a cell and a session, can be compared with each other.
    """
    (kind_a, value_a), (kind_b, value_b) = meanings = _resolve_word(a, names), _resolve_word(b, names)
    if (kind_a, value_a) == (kind_b, value_b):
        raise InputError(SAME_ARM.format(kind=KINDS[kind_a], value=value_a))
    if kind_a != kind_b and not {kind_a, kind_b} <= _NIGHT_KINDS and not {kind_a, kind_b} <= SINGLE:
        raise InputError(f"`{a}` is a {KINDS[kind_a]} and `{b}` a {KINDS[kind_b]}; compare two of one kind")
    if kind_a in _NIGHT_KINDS | SINGLE:
        if sweep_id is not None:
            raise InputError(f"--sweep: A is a {KINDS[kind_a]}; use it with names inside a sweep, such as sme2_off")
        return Arm(kind_a, value_a, None), Arm(kind_b, value_b, None)
    # Of the newest sweep first; those without a start come last.
    by_age = sorted(names, key=lambda name: (name.last_started_at or datetime.min, name.sweep_id), reverse=True)
    in_a, in_b = ([name.sweep_id for name in by_age if (name.kind, name.value) == each] for each in meanings)
    if sweep_id is None:
        common = next((each for each in in_a if each in in_b), None)
        return Arm(kind_a, value_a, common or in_a[0]), Arm(kind_b, value_b, common or in_b[0])
    sweeps = {name.sweep_id for name in names}
    if sweep_id not in sweeps:
        raise InputError(f"--sweep: `{sweep_id}` is not a sweep with timing results{did_you_mean(sweep_id, sweeps)}")
    for word, sweeps_of_word in ((a, in_a), (b, in_b)):
        if sweep_id not in sweeps_of_word:
            raise InputError(f"`{word}` is not in sweep {sweep_id}; the newest sweep with it is {sweeps_of_word[0]}")
    return Arm(kind_a, value_a, sweep_id), Arm(kind_b, value_b, sweep_id)


def _resolve_word(word: str, names: Sequence[ArmName]) -> tuple[str, str]:
    """Return the kind and the value that a word names; raises InputError unless exactly one matches.

    A value is named in full, a cell, session or runner also by 6 or more of its first digits; `kind:` may precede both.
    """
    kind, _, rest = word.partition(":")
    pairs = {(name.kind, name.value) for name in names if name.value == word or (name.kind, name.value) == (kind, rest)}
    stem = id_prefix(word)
    if not pairs and _ID_PREFIX.fullmatch(stem):
        ids = [name for name in names if name.kind in _ID_KINDS and name.value.startswith(stem)]
        pairs = {(name.kind, name.value) for name in ids if stem == word or name.kind == kind}
    if len(pairs) == 1:
        return pairs.pop()
    if not pairs:
        raise InputError(_describe_unknown(word, names))
    kinds = sorted({kind for kind, _ in pairs})
    if len(kinds) == 1:
        raise InputError(f"`{word}` begins {len(pairs)} ids of a {KINDS[kinds[0]]}; write more digits")
    named = " and ".join(f"a {KINDS[kind]}" for kind in kinds)
    raise InputError(f"`{word}` is {named}; write {' or '.join(f'{kind}:{stem}' for kind in kinds)}")


def _describe_unknown(word: str, names: Iterable[ArmName]) -> str:
    if re.fullmatch(r"[0-9a-f]{1,5}", id_prefix(word)) and not any(name.value == word for name in names):
        remedy = "; an id needs at least 6 digits"
    elif re.fullmatch(r"\d{4}-\d\d-\d\d", id_prefix(word)):
        remedy = nights_beside(id_prefix(word), {name.value for name in names if name.kind == "night"})
    else:
        remedy = did_you_mean(word, {name.value for name in names if name.kind not in _ID_KINDS})
    remedy = remedy or '; list the sweeps with: etfarm sql "FROM sweep_overview"'
    kinds = "a night, sweep, device, model, precision, variant, number of threads, delegate, ExecuTorch version or"
    return f"`{word}` is not {kinds} runtime, nor the id of a cell, session or runner, with timing results{remedy}"
