"""How the report names a cell: the sessions that are measured alike and pooled (model, device, precision, ...)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from devices.inventory import is_simulated
from devices.platform import SIMULATED
from tasks.analyse.report.data import Row
from tasks.analyse.report.page import Cell, Column, Tag
from tasks.analyse.report.text import NOTHING, code, counted, number, words
from tasks.prepare.export.recipes import RECIPES

_PRECISION_ORDER: dict[str, int] = {precision: place for place, precision in enumerate(RECIPES)}
_LABELLED = ("device", "variant", "threads")
_VARIANT_WORDS: dict[str, str] = {"sme2_on": "on", "sme1": "SME1", "sme2_off": "off"}


@dataclass(frozen=True)
class NamedRow(Row):
    """A row about a cell or a pair of cells; `differs` tells it from others of its name, None if there are none."""

    model: str
    device: str
    emulated: bool
    precision: str
    threads: int | None
    differs: str | None


@dataclass(frozen=True)
class PairRow(NamedRow):
    """A row about two cells that differ only in SME2."""

    pair: str


@dataclass(frozen=True)
class CellRow(NamedRow):
    """A row about one cell."""

    cell: str
    variant: str


def cell_of(row: NamedRow) -> str:
    """The id of the cell or pair that a row is about."""
    if isinstance(row, CellRow):
        return row.cell
    assert isinstance(row, PairRow)
    return row.pair


class CellNames:
    """Names cells (or pairs) among others of their sweep; labels leave out what is the same for all of them."""

    def __init__(self, rows: Sequence[NamedRow]) -> None:
        self._has_variant = any(isinstance(row, CellRow) for row in rows)
        self._several = {name for name in _LABELLED if len({getattr(row, name, None) for row in rows}) > 1}
        self._shows_difference = any(row.differs for row in rows)

    @property
    def has_several_variants(self) -> bool:
        """Whether the cells differ in their variant."""
        return "variant" in self._several

    def columns(self) -> list[Column]:
        """The heads of the columns that name a cell; what differs only if one name covers several contents."""
        return [
            Column("Model"),
            Column("Device"),
            Column("Precision"),
            *([Column("SME2")] if self._has_variant else []),
            Column("Threads", numeric=True),
            *([Column("What differs")] if self._shows_difference else []),
        ]

    def cells(self, row: NamedRow) -> list[Cell]:
        """The cells under those heads."""
        return [
            code(row.model),
            device_cell(row.device, emulated=row.emulated),
            Cell(row.precision),
            *([variant_cell(row.variant)] if isinstance(row, CellRow) else []),
            number(row.threads, 0),
            *([words(row.differs)] if self._shows_difference else []),
        ]

    def label(self, row: NamedRow) -> str:
        """One line that tells this cell from the others of its model: `pixel-9 · fp16 · SME2 on · 2 threads`."""
        parts = [row.device] if "device" in self._several else []
        parts.append(row.precision)
        if self.has_several_variants and isinstance(row, CellRow):
            parts.append(_variant_condition(row.variant))
        if "threads" in self._several:
            parts.append(_threads(row.threads))
        if row.differs:
            parts.append(row.differs)
        return " · ".join(parts)


def variant_word(variant: str) -> str:
    """`on`, `SME1`, `off`, or `unknown` for a run that the farm did not measure."""
    return _VARIANT_WORDS.get(variant, "unknown")


def _variant_condition(variant: str) -> str:
    """`SME2 on`, `SME2 off` or `SME1`."""
    word = variant_word(variant)
    return word if word == "SME1" else f"SME2 {word}"


def variant_cell(variant: str) -> Cell:
    """A cell with the variant, a dash where it is not known."""
    return Cell(_VARIANT_WORDS[variant]) if variant in _VARIANT_WORDS else NOTHING


def precision_order(precision: str) -> int:
    """The place of a precision in the order in which the farm lists them: fp32 first."""
    return _PRECISION_ORDER.get(precision, len(_PRECISION_ORDER))


def conditions_of(row: CellRow) -> list[str]:
    """What a sentence states about a cell beside model, device and precision: `SME2 off`, `one thread`."""
    sme2 = [_variant_condition(row.variant)] if row.variant in _VARIANT_WORDS else []
    return sme2 + ([counted(row.threads, "thread")] if row.threads is not None else [])


def where(row: CellRow) -> str:
    """A cell inside a sentence, without model and precision: `on pixel-9 with SME2 off and one thread`."""
    conditions = conditions_of(row)
    return f"on {row.device}" + (f" with {' and '.join(conditions)}" if conditions else "")


def device_cell(device: str, *, emulated: bool) -> Cell:
    """A cell with the device's name, marked if it is emulated or simulated."""
    return Cell((device, *tags_of(device, emulated=emulated)))


def tags_of(device: str, *, emulated: bool) -> tuple[Tag, ...]:
    """The word that marks a device whose times mean nothing; none for another one."""
    return (Tag(SIMULATED if is_simulated(device) else "emulated"),) if emulated else ()


def emulated_devices(rows: Iterable[NamedRow]) -> tuple[list[str], list[str]]:
    """The names of the emulated and of the simulated devices among rows, each once."""
    names = sorted({row.device for row in rows if row.emulated})
    return [name for name in names if not is_simulated(name)], [name for name in names if is_simulated(name)]


def _threads(threads: int | None) -> str:
    return "threads unknown" if threads is None else f"{threads} {'thread' if threads == 1 else 'threads'}"
