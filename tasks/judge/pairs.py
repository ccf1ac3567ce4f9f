"""Pairs of cells that are compared: which cells of two arms match, how they compare, and what differs between them."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from devices.errors import InputError
from tasks.judge.comparison import Comparison, compare_sessions
from tasks.judge.shift import between_nights

SINGLE = {"cell", "session"}
"""Kinds of arms with a single cell, which is compared with any other."""
_SERIES = ("model", "device", "precision", "variant", "threads")
_CONTENT = ("pte_sha256", "runner_sha256", "serial", "seed", "executions", "warmup_executions")
_SHOWN_FACTS = {
    "executorch_version": "executorch",
    "seed": "seed",
    "os_version": "OS",
    "executions": "executions",
    "warmup_executions": "warm-up",
}


@dataclass(frozen=True)
class Cell:
    """A cell with the time of each of its sessions in milliseconds; there are none of an emulated device."""

    cell: str
    sweep_id: str
    device: str
    transport: str | None
    emulated: bool
    model: str
    precision: str
    variant: str
    threads: int | None
    executions: int
    warmup_executions: int
    seed: int | None
    pte_sha256: str | None
    runner_sha256: str | None
    executorch_version: str | None
    serial: str | None
    build: str | None
    os_version: str | None
    platform: str | None
    device_model: str | None
    soc: str | None
    sme2: bool | None
    last_started_at: datetime | None
    session_ids: Sequence[str]
    times_ms: Sequence[float]
    noise_floor: float | None = None
    """Of the verdict on its night, a fraction; None without one."""
    baseline_nights: int = 0
    """How many nights that is from."""
    accuracy: str = "not compared"
    """accurate, inaccurate, not judged or not compared (the view cell_accuracy)."""


@dataclass
class Matched:
    """The cells of two arms: those with a counterpart, those without, and those that a newer cell replaces."""

    pairs: list[tuple[Cell, Cell]] = field(default_factory=list)
    only_a: list[Cell] = field(default_factory=list)
    only_b: list[Cell] = field(default_factory=list)
    older_a: list[Cell] = field(default_factory=list)
    older_b: list[Cell] = field(default_factory=list)


@dataclass(frozen=True)
class Pair:
    """Two matched cells, and how B compares with A; `result` is None if a device is emulated and has no times."""

    a: Cell
    b: Cell
    result: Comparison | None

    @property
    def nights_differ_by(self) -> float | None:
        """By how much two nights differ without a change, a fraction; None in one sweep or on two devices."""
        if self.a.sweep_id == self.b.sweep_id or self.a.device != self.b.device:
            return None
        measured_longer = max(self.a, self.b, key=lambda cell: cell.baseline_nights)
        return math.expm1(between_nights(measured_longer.noise_floor, measured_longer.baseline_nights))

    @property
    def inaccurate_sides(self) -> str:
        """The sides with inaccurate outputs: `A`, `B`, `A and B`, or an empty text."""
        return " and ".join(side for side, cell in (("A", self.a), ("B", self.b)) if cell.accuracy == "inaccurate")

    @property
    def is_of_device(self) -> bool:
        """Whether both are one content on one device, measured at two times: a difference is then the device's."""
        of_both = [[getattr(cell, name) for name in (*_SERIES, *_CONTENT)] for cell in (self.a, self.b)]
        is_known = self.a.pte_sha256 is not None and self.a.runner_sha256 is not None
        return is_known and of_both[0] == of_both[1]

    @property
    def answer(self) -> str | None:
        """different, same or unknown; inaccurate if the outputs of a side are; None without times."""
        if self.inaccurate_sides:
            return "inaccurate"
        return self.result.answer if self.result else None

    def is_regression(self, margin: float) -> bool:
        """Whether B is slower by more than the margin (a fraction) and the noise, and the device is not the cause."""
        if self.is_of_device or self.result is None or self.result.ratio is None or self.result.low is None:
            return False
        return self.result.answer == "different" and self.result.low > 1 and self.result.ratio > 1 + margin


def compare_cells(a: Cell, b: Cell, margin: float) -> Pair:
    """Compare two cells by the times of their sessions; `margin` is a fraction."""
    pair = Pair(a, b, None)
    if a.emulated or b.emulated:
        return pair
    half_of_nights = math.log1p(pair.nights_differ_by or 0)
    return replace(pair, result=compare_sessions(a.times_ms, b.times_ms, margin, half_of_nights))


def match_cells(a: Sequence[Cell], b: Sequence[Cell], kind: str) -> Matched:
    """Match the cells of two arms of one `kind` by everything of their series but that kind.

    Two cells, or two sessions, are matched as they are. If an arm has several cells of one series, for example because
    a model was changed between two starts of a sweep, the one that was measured last counts: the rule of `is_newest`
    in the view series_latency, applied to each device. Raises InputError if the arms share a session.
    """
    if shared := {each for cell in a for each in cell.session_ids} & {each for cell in b for each in cell.session_ids}:
        count = f"{len(shared)} session{'' if len(shared) == 1 else 's'}"
        raise InputError(f"A and B share {count}; compare two without a common session")
    fields = () if kind in SINGLE else tuple(each for each in _SERIES if each != kind)
    matched = Matched()
    side_a, side_b = _newest(a, fields, matched.older_a), _newest(b, fields, matched.older_b)
    for key, cell in side_a.items():
        if key in side_b:
            matched.pairs.append((cell, side_b[key]))
        else:
            matched.only_a.append(cell)
    matched.only_b += [cell for key, cell in side_b.items() if key not in side_a]
    return matched


def _newest(cells: Iterable[Cell], fields: Sequence[str], older: list[Cell]) -> dict[tuple[Any, ...], Cell]:
    """Return the newest cell by the values of its `fields`, sorted by these; append the others to `older`."""
    newest: dict[tuple[Any, ...], Cell] = {}
    for cell in sorted(cells, key=lambda each: (each.last_started_at or datetime.min, each.cell), reverse=True):
        key = tuple(getattr(cell, each) for each in fields)
        if key in newest:
            older.append(cell)
        else:
            newest[key] = cell
    return {key: newest[key] for key in sorted(newest, key=str)}


def differing(a: Cell, b: Cell) -> list[str]:
    """Return what differs between two cells besides their series, in few words: `executorch 1.5.1 -> 1.6.0`, `pte`."""
    words = [
        f"{word} {_fact(a, name)} -> {_fact(b, name)}"
        for name, word in _SHOWN_FACTS.items()
        if getattr(a, name) != getattr(b, name)
    ]
    hidden = {"runner": "runner_sha256", "build": "build", "device model": "device_model", "SoC": "soc"}
    if (a.model, a.precision) == (b.model, b.precision):
        hidden = {"pte": "pte_sha256", **hidden}
    if a.device == b.device:
        hidden |= {"serial": "serial", "platform": "platform", "SME2 of the device": "sme2", "emulated": "emulated"}
    return words + [word for word, name in hidden.items() if getattr(a, name) != getattr(b, name)]


def _fact(cell: Cell, name: str) -> str:
    value = getattr(cell, name)
    return "unknown" if value is None else str(value)
