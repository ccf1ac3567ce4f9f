"""How the report names a cell: what is measured alike (model, device, precision, variant, threads, runner)."""

from collections.abc import Iterable, Sequence
from typing import Any

from tasks.report.data import Row
from tasks.report.page import Cell, Column, Tag
from tasks.report.text import NOTHING, code, counted, number

CELL = ("model", "device", "precision", "variant", "threads", "runner_source")
PAIR = ("model", "device", "precision", "threads", "runner_source")
"""A cell with SME2 and the same without it."""
_VARIANT_WORDS = {"sme2_on": "on", "sme2_off": "off"}
_PRECISIONS = ("fp32", "fp16", "int8_static", "int8_dynamic")


_HEADS = {
    "model": Column("Model"),
    "device": Column("Device"),
    "precision": Column("Precision"),
    "variant": Column("SME2"),
    "threads": Column("Threads", numeric=True),
}


class CellNames:
    """Names cells (or pairs of them) among others of the same sweep; labels leave out what is the same for all."""

    def __init__(self, rows: Iterable[Row], keys: tuple[str, ...] = CELL) -> None:
        found = {tuple(row[key] for key in keys) for row in rows}
        self._keys = keys[:-1]
        self._several = {key for position, key in enumerate(keys) if len({cell[position] for cell in found}) > 1}
        self._runner_tells = len(found) > len({cell[:-1] for cell in found})

    def several(self, key: str) -> bool:
        """Whether cells differ in this of model, device, precision, variant, threads."""
        return key in self._several

    def columns(self) -> list[Column]:
        """The heads of the columns that name a cell; the runner's only where two measured the same."""
        heads = [_HEADS[key] for key in self._keys]
        return [*heads, Column("Runner source")] if self._runner_tells else heads

    def cells(self, row: Row) -> list[Cell]:
        """The cells under those heads."""
        named = [_named(key, row) for key in self._keys]
        return [*named, code(_short(row["runner_source"]))] if self._runner_tells else named

    def label(self, row: Row, leave_out: Sequence[str] = ("model",)) -> str:
        """One line that tells this cell from the others: `pixel-9 · fp16 · SME2 on · 2 threads`."""
        parts = [
            _word(key, row[key])
            for key in self._keys
            if key not in leave_out and (key in self._several or key == "precision")
        ]
        if self._runner_tells:
            parts.append(f"runner {_short(row['runner_source'])}")
        return " · ".join(parts)


def cell_of(row: Row) -> tuple[Any, ...]:
    """What tells a cell from every other one of its sweep."""
    return tuple(row[key] for key in CELL)


def pair_of(row: Row) -> tuple[Any, ...]:
    """The same for a cell with SME2 and for that without it."""
    return tuple(row[key] for key in PAIR)


def variant_word(variant: str) -> str:
    """`on`, `off`, or `unknown` for what was measured without the farm."""
    return _VARIANT_WORDS.get(variant, "unknown")


def variant_cell(variant: str) -> Cell:
    """A cell with the variant, a dash where it is not known."""
    word = variant_word(variant)
    return NOTHING if word == "unknown" else Cell(word)


def precision_order(precision: str) -> int:
    """fp32 first, then fp16, then int8."""
    return _PRECISIONS.index(precision) if precision in _PRECISIONS else len(_PRECISIONS)


def where(row: Row) -> str:
    """A cell inside a sentence, its model and precision left out: `on pixel-9 with SME2 off and one thread`."""
    parts = [f"SME2 {variant_word(row['variant'])}"] if row["variant"] in _VARIANT_WORDS else []
    parts += [counted(row["threads"], "thread")] if row["threads"] is not None else []
    return f"on {row['device']}" + (f" with {' and '.join(parts)}" if parts else "")


def device_cell(row: Row) -> Cell:
    """A cell with the device's name, marked if it is emulated."""
    return Cell((str(row["device"]), Tag("emulated")) if row.get("emulated") else str(row["device"]))


def _named(key: str, row: Row) -> Cell:
    if key == "device":
        return device_cell(row)
    if key == "variant":
        return variant_cell(row[key])
    if key == "threads":
        return number(row[key], 0)
    return code(row[key]) if key == "model" else Cell(str(row[key]))


def _word(key: str, value: Any) -> str:
    if key == "variant":
        return f"SME2 {variant_word(value)}"
    if key == "threads":
        return "threads unknown" if value is None else f"{value} {'thread' if value == 1 else 'threads'}"
    return str(value)


def _short(runner_source: str | None) -> str:
    return "unknown" if runner_source is None else runner_source[:8]
