"""How the report names a cell: the sessions that are measured alike and pooled (model, device, precision, ...)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tasks.cell import VARIANTS
from tasks.export.precision import PRECISIONS
from tasks.report.data import Row
from tasks.report.page import Cell, Column, Tag
from tasks.report.text import NOTHING, code, counted, number

_PRECISION_ORDER: dict[str, int] = {precision: place for place, precision in enumerate(PRECISIONS)}
_VARIANT_WORDS: dict[str, str] = {variant: variant.removeprefix("sme2_") for variant in VARIANTS}


@dataclass(frozen=True)
class PairRow(Row):
    """A row about two cells that differ only in SME2."""

    model: str
    device: str
    emulated: bool
    precision: str
    threads: int | None
    runner_source: str | None


@dataclass(frozen=True)
class CellRow(PairRow):
    """A row about one cell."""

    variant: str


class CellKey(NamedTuple):
    """What tells a cell, or a pair of cells (`variant` None), from every other one of its sweep."""

    model: str
    device: str
    precision: str
    variant: str | None
    threads: int | None
    runner_source: str | None


def cell_of(row: PairRow) -> CellKey:
    """The key of the cell (or pair) that a row is about."""
    variant = row.variant if isinstance(row, CellRow) else None
    return CellKey(row.model, row.device, row.precision, variant, row.threads, row.runner_source)


class CellNames:
    """Names cells (or pairs) among others of their sweep; labels leave out what is the same for all of them."""

    def __init__(self, rows: Sequence[PairRow]) -> None:
        found = {cell_of(row) for row in rows}
        self._has_variant = any(key.variant is not None for key in found)
        self._several = {
            name
            for name, values in zip(CellKey._fields, zip(*found, strict=True), strict=False)
            if len(set(values)) > 1
        }
        self._shows_runner = len(found) > len({key[:-1] for key in found})

    @property
    def has_several_variants(self) -> bool:
        """Whether the cells differ in their variant."""
        return "variant" in self._several

    def columns(self) -> list[Column]:
        """The heads of the columns that name a cell; the runner's only if cells differ in nothing else."""
        return [
            Column("Model"),
            Column("Device"),
            Column("Precision"),
            *([Column("SME2")] if self._has_variant else []),
            Column("Threads", numeric=True),
            *([Column("Runner source")] if self._shows_runner else []),
        ]

    def cells(self, row: PairRow) -> list[Cell]:
        """The cells under those heads."""
        return [
            code(row.model),
            device_cell(row.device, emulated=row.emulated),
            Cell(row.precision),
            *([variant_cell(row.variant)] if isinstance(row, CellRow) else []),
            number(row.threads, 0),
            *([code(_short(row.runner_source))] if self._shows_runner else []),
        ]

    def label(self, row: PairRow) -> str:
        """One line that tells this cell from the others of its model: `pixel-9 · fp16 · SME2 on · 2 threads`."""
        parts = [row.device] if "device" in self._several else []
        parts.append(row.precision)
        if self.has_several_variants and isinstance(row, CellRow):
            parts.append(f"SME2 {variant_word(row.variant)}")
        if "threads" in self._several:
            parts.append(_threads(row.threads))
        if self._shows_runner:
            parts.append(f"runner {_short(row.runner_source)}")
        return " · ".join(parts)


def variant_word(variant: str) -> str:
    """`on`, `off`, or `unknown` for a run that the farm did not measure."""
    return _VARIANT_WORDS.get(variant, "unknown")


def variant_cell(variant: str) -> Cell:
    """A cell with the variant, a dash where it is not known."""
    return Cell(_VARIANT_WORDS[variant]) if variant in _VARIANT_WORDS else NOTHING


def precision_order(precision: str) -> int:
    """The place of a precision in the order in which the farm lists them: fp32 first."""
    return _PRECISION_ORDER.get(precision, len(_PRECISION_ORDER))


def conditions_of(row: CellRow) -> list[str]:
    """What a sentence states about a cell beside model, device and precision: `SME2 off`, `one thread`."""
    sme2 = [f"SME2 {variant_word(row.variant)}"] if row.variant in _VARIANT_WORDS else []
    return sme2 + ([counted(row.threads, "thread")] if row.threads is not None else [])


def where(row: CellRow) -> str:
    """A cell inside a sentence, without model and precision: `on pixel-9 with SME2 off and one thread`."""
    conditions = conditions_of(row)
    return f"on {row.device}" + (f" with {' and '.join(conditions)}" if conditions else "")


def device_cell(device: str, *, emulated: bool) -> Cell:
    """A cell with the device's name, marked if it is emulated."""
    return Cell((device, Tag("emulated")) if emulated else device)


def emulated_devices(rows: Iterable[PairRow]) -> list[str]:
    """The names of the emulated devices among rows, each once."""
    return sorted({row.device for row in rows if row.emulated})


def _threads(threads: int | None) -> str:
    return "threads unknown" if threads is None else f"{threads} {'thread' if threads == 1 else 'threads'}"


def _short(runner_source: str | None) -> str:
    return "unknown" if runner_source is None else runner_source[:8]
