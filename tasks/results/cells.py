"""Names of cells. A cell pools sessions with equal settings: the same model, device, precision, ..."""

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

from devices.platform import SIMULATED
from tasks.bundle.model_names import case_title
from tasks.bundle.variant_word import variant_word
from tasks.export.recipes import RECIPES
from tasks.judge.figures import signed_interval, signed_percent
from tasks.results.addresses import device_page, model_page, night_page, session_page, sweep_page
from tasks.results.table import NOTHING, Cell, Name, Number, Percent, Row, Words, grouped
from tasks.results.text import Code, CodeLink, Link, Tag, numbered, series_conditions

_PRECISION_ORDER: dict[str, int] = {precision: rank for rank, precision in enumerate(RECIPES)}
_LABELLED = ("device", "variant", "threads")


@dataclass(frozen=True, kw_only=True)
class Variant(Words):
    """A variant as `SME2 on`, `SME2 off` or `SME1`; a dash if it is unknown."""

    def _write(self, value: Any) -> Cell:
        return NOTHING if (word := variant_word(value)) == "SME2 unknown" else Cell(word)


@dataclass(frozen=True, kw_only=True)
class Device(Words):
    """A device's name, linked to its page and tagged with the field `without_times` of the row."""

    def cell_in(self, row: Any, name: str) -> Cell:
        device = getattr(row, name)
        return Cell((Link(device, device_page(device)), *emulation_tags(row.without_times)))


def model_link(case: str) -> CodeLink:
    """Return the title of a case as code, linked to its page."""
    return CodeLink(case_title(case), model_page(case))


@dataclass(frozen=True, kw_only=True)
class Case(Name):
    """The name of a case as its title, as code."""

    def _write(self, value: Any) -> Cell:
        return Cell((Code(case_title(value)),))


@dataclass(frozen=True, kw_only=True)
class Model(Case):
    """The name of a case as its title, linked to its page."""

    def _write(self, value: Any) -> Cell:
        return Cell((model_link(value),))


@dataclass(frozen=True, kw_only=True)
class LinkedName(Name):
    """A name or id as code, linked to its page."""

    page: Callable[[str], str]
    """Returns the address."""

    def _write(self, value: Any) -> Cell:
        return Cell((CodeLink(str(value), self.page(str(value))),))


SessionId = functools.partial(LinkedName, page=session_page)
SweepId = functools.partial(LinkedName, page=sweep_page)


@dataclass(frozen=True, kw_only=True)
class Night(Words):
    """A night, linked to its page."""

    def _write(self, value: Any) -> Cell:
        return Cell((Link(str(value), night_page(value)),), sort=value.toordinal())


@dataclass(frozen=True)
class NamedRow(Row):
    """A row about a cell or a pair. `differs` distinguishes it from others of the same name; None without others."""

    naming = ("model", "device", "precision", "variant", "threads", "differs")
    model: Annotated[str, Model("Model")]
    device: Annotated[str, Device("Device")]
    without_times: str | None = field(default=None, kw_only=True)
    """`emulated` or `simulated`: the times of the device mean nothing. None for a real device."""
    precision: Annotated[str, Words("Precision")]
    threads: Annotated[int | None, Number("Threads")]
    differs: Annotated[str | None, Words("What differs", only_with="differs")] = field(default=None, kw_only=True)


@dataclass(frozen=True)
class PairRow(NamedRow):
    """A row about two cells that differ only in SME2."""

    pair: str


@dataclass(frozen=True)
class CellRow(NamedRow):
    cell: str
    variant: Annotated[str, Variant("Variant")]


def cell_or_pair(row: NamedRow) -> str:
    """Return the id of the cell or pair that a row is about."""
    if isinstance(row, CellRow):
        return row.cell
    assert isinstance(row, PairRow)
    return row.pair


NamedRowT = TypeVar("NamedRowT", bound=NamedRow)


def by_cell_or_pair(rows: Iterable[NamedRowT]) -> defaultdict[str, list[NamedRowT]]:
    """Return the rows by id of their cell or pair, in their order; no rows for an unknown id."""
    return defaultdict(list, grouped(rows, cell_or_pair))


class CellNames:
    """Labels of cells (or pairs) among others of their sweep, without what is the same for all of them."""

    def __init__(self, rows: Sequence[NamedRow]) -> None:
        self._several = {name for name in _LABELLED if len({getattr(row, name, None) for row in rows}) > 1}

    @property
    def has_several_variants(self) -> bool:
        return "variant" in self._several

    def label(self, row: NamedRow) -> str:
        """Return what distinguishes a cell from the others of its model: `pixel-9 · fp16 · SME2 on · 2 threads`."""
        parts = [row.device] if "device" in self._several else []
        parts.append(row.precision)
        if self.has_several_variants and isinstance(row, CellRow):
            parts.append(variant_word(row.variant))
        if "threads" in self._several:
            count = row.threads
            parts.append("threads unknown" if count is None else numbered(count, "thread"))
        if row.differs:
            parts.append(row.differs)
        return " · ".join(parts)


def precision_order(precision: str) -> int:
    """Return the rank of a precision in lists: fp32 first, unknown ones last."""
    return _PRECISION_ORDER.get(precision, len(_PRECISION_ORDER))


def device_and_conditions(row: CellRow) -> str:
    """Return device and conditions of a cell for a sentence: `on pixel-9 with SME2 off and one thread`."""
    conditions = series_conditions(row)
    return f"on {row.device}" + (f" with {' and '.join(conditions)}" if conditions else "")


def emulation_tags(without_times: str | None) -> tuple[Tag, ...]:
    """Return the tag of a device whose times mean nothing; empty for a real one."""
    return (Tag(without_times),) if without_times else ()


def emulated_devices(rows: Iterable[NamedRow]) -> tuple[list[str], list[str]]:
    """Return the sorted names of the emulated and of the simulated devices among rows."""
    kinds = {row.device: row.without_times for row in rows}
    emulated = sorted(name for name, kind in kinds.items() if kind == "emulated")
    return emulated, sorted(name for name, kind in kinds.items() if kind == SIMULATED)


@dataclass(frozen=True, kw_only=True)
class ChangePercent(Percent):
    """A ratio as a change in percent, with its sign; with as many digits as its interval, if the row has one."""

    def cell_in(self, row: Any, name: str) -> Cell:
        ratio = getattr(row, name)
        interval = (getattr(row, end, None) for end in ("low", "high"))
        return NOTHING if ratio is None else Cell(signed_percent(ratio, *interval), sort=ratio)


@dataclass(frozen=True, kw_only=True)
class Interval(Percent):
    """The interval of a ratio, fields `low` and `high` of the row, as changes in percent; a dash without one."""

    def cell_in(self, row: Any, name: str) -> Cell:
        if row.low is None or row.high is None:
            return NOTHING
        return Cell(signed_interval(row.low, row.high), sort=row.low)
