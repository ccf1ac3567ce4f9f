"""Cells that are compared: which cells of two arms match, what differs between them, and how far nights lie apart."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from devices.errors import InputError
from devices.platform import SIMULATED
from tasks.bundle.runtime import only_delegate, parse_runtime, without_delegate, without_version, without_versions
from tasks.judge.verdicts.shift import half_interval_between_nights

SINGLE = {"cell", "session"}
"""Kinds of arms with a single cell, which is compared with any other."""
SERIES = ("model", "device", "precision", "variant", "threads")
"""Fields of a cell that name its series."""
_CONTENT = ("pte_sha256", "runner_sha256", "serial", "launcher", "seed", "executions", "warmup_executions")
_SHOWN_FACTS = {
    "executorch_version": "executorch",
    "seed": "seed",
    "os_version": "OS",
    "executions": "executions",
    "warmup_executions": "warm-up",
}


@dataclass(frozen=True)
class MeasuredCell:
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
    launcher: str | None
    last_started_at: datetime | None
    session_ids: Sequence[str]
    starts_s: Sequence[float]
    """Starts of its sessions in seconds since 1970; empty if unknown."""
    times_ms: Sequence[float]
    noise_floor: float | None = None
    """Of the verdict on its night, a fraction; None without one."""
    baseline_nights: int = 0
    """How many nights that is from."""
    accuracy: str = "not compared"
    """accurate, inaccurate, not judged or not compared (the view cell_accuracy)."""
    verdict: str | None = None
    """On its night; None, as for the next two, if the cell was not judged."""
    night: date | None = None
    baseline_from: date | None = None
    """The first night that its night was compared with."""

    @property
    def without_times(self) -> str | None:
        """`emulated` or `simulated` if times of the device mean nothing; None for a real device."""
        if not self.emulated:
            return None
        return SIMULATED if self.transport == SIMULATED else "emulated"

    @property
    def delegate(self) -> str | None:
        """What its name states; None for XNNPACK. Those of two delegates have no common names of operators."""
        return parse_runtime(self.model).delegate

    def subject(self, kind: str) -> str:
        """Return the model without what arms of a kind differ in: delegate, versions, for `runtime` also options."""
        if kind == "runtime":
            return only_delegate(self.model)
        if kind == "delegate":
            return without_delegate(self.model)
        return without_version(self.model, self.executorch_version) if kind == "executorch" else self.model


@dataclass
class Matched:
    """The cells of two arms: those with a counterpart, those without, and those that a newer cell replaces."""

    pairs: list[tuple[MeasuredCell, MeasuredCell]] = field(default_factory=list)
    only_a: list[MeasuredCell] = field(default_factory=list)
    only_b: list[MeasuredCell] = field(default_factory=list)
    older_a: list[MeasuredCell] = field(default_factory=list)
    older_b: list[MeasuredCell] = field(default_factory=list)


def nights_differ_by(a: MeasuredCell, b: MeasuredCell) -> float | None:
    """Return by how much two nights differ without a change, a fraction; None in one sweep or on two devices."""
    if a.sweep_id == b.sweep_id or a.device != b.device:
        return None
    measured_longer = max(a, b, key=lambda cell: cell.baseline_nights)
    return math.expm1(half_interval_between_nights(measured_longer.noise_floor, measured_longer.baseline_nights))


def have_same_content(a: MeasuredCell, b: MeasuredCell) -> bool:
    """Return whether both are one content on one device, measured at two times: a difference is then the device's."""
    one, other = (without_delegate(without_versions(cell.model)) for cell in (a, b))
    if a.pte_sha256 is None or a.runner_sha256 is None or one != other:
        return False
    # Versions, or lists of delegates, that made the same program and the same runner are one content.
    return all(getattr(a, name) == getattr(b, name) for name in (*SERIES[1:], *_CONTENT))


def is_no_change(a: MeasuredCell, b: MeasuredCell) -> bool:
    """Return whether the later night was judged without a change against the earlier one, the same content."""
    if a.night is None or b.night is None or not have_same_content(a, b):
        return False
    last, earlier_night = (a, b.night) if a.night > b.night else (b, a.night)
    return last.verdict == "no change" and last.baseline_from is not None and last.baseline_from <= earlier_night


def match_cells(a: Sequence[MeasuredCell], b: Sequence[MeasuredCell], kind: str) -> Matched:
    """Match the cells of two arms of one `kind` by everything of their series but that kind.

    Two cells, or two sessions, are matched as they are. If an arm has several cells of one series, for example because
    a model was changed between two starts of a sweep, the one that was measured last counts: the rule of `is_newest`
    in the view series_latency, applied to each device. Raises InputError if the arms share a session.
    """
    if shared := {each for cell in a for each in cell.session_ids} & {each for cell in b for each in cell.session_ids}:
        count = f"{len(shared)} session{'' if len(shared) == 1 else 's'}"
        raise InputError(f"A and B share {count}; compare two without a common session")
    matched = Matched()
    side_a, side_b = _newest(a, kind, matched.older_a), _newest(b, kind, matched.older_b)
    for key, cell in side_a.items():
        if key in side_b:
            matched.pairs.append((cell, side_b[key]))
        else:
            matched.only_a.append(cell)
    matched.only_b += [cell for key, cell in side_b.items() if key not in side_a]
    return matched


def _newest(cells: Iterable[MeasuredCell], kind: str, older: list[MeasuredCell]) -> dict[tuple[Any, ...], MeasuredCell]:
    """Return the newest cell of each series but for its `kind`, sorted by name; append the others to `older`."""
    fields = () if kind in SINGLE else tuple(each for each in SERIES if each != kind)
    newest: dict[tuple[Any, ...], MeasuredCell] = {}
    for cell in sorted(cells, key=lambda each: (each.last_started_at or datetime.min, each.cell), reverse=True):
        key = tuple(cell.subject(kind) if each == "model" else getattr(cell, each) for each in fields)
        if key in newest:
            older.append(cell)
        else:
            newest[key] = cell
    return {key: newest[key] for key in sorted(newest, key=str)}


def differing(a: MeasuredCell, b: MeasuredCell) -> list[str]:
    """Return what differs between two cells besides their series, in few words: `executorch 1.5.1 -> 1.6.0`, `pte`."""
    words = []
    for name, word in _SHOWN_FACTS.items():
        before, after = ("unknown" if getattr(cell, name) is None else getattr(cell, name) for cell in (a, b))
        if before != after:
            words.append(f"{word} {before} -> {after}")
    hidden = {"runner": "runner_sha256", "build": "build", "device model": "device_model", "SoC": "soc"}
    if (a.subject("runtime"), a.precision) == (b.subject("runtime"), b.precision):
        hidden = {"pte": "pte_sha256", **hidden}
    if a.device == b.device:
        hidden |= {"serial": "serial", "platform": "platform", "SME2 of the device": "sme2", "emulated": "emulated"}
        hidden["launcher"] = "launcher"
    return words + [word for word, name in hidden.items() if getattr(a, name) != getattr(b, name)]
