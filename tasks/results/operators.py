"""Operators and modules: their times, which operators stayed portable, and why."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from tasks.judge.advice.advice import HEAVY_SHARE, NO_REASON
from tasks.results.cells import CellRow
from tasks.results.table import (
    NOTHING,
    Calls,
    Cell,
    Milliseconds,
    Name,
    Number,
    Percent,
    Row,
    Words,
    cells_of,
    flag_above,
    toned,
)
from tasks.results.text import Code, Text, counted, in_percent, joined, listed, rounded_percent, separated

FLAGGED_SHARE = HEAVY_SHARE
"""Operators above this share of Method::execute are highlighted; report_operators.sql lists every one of them."""
_NO_MODULE = {
    "unattributed": "time that no operator accounts for",
    "inserted": "layout and type changes of the exporter",
    "unknown": "operators that the export does not place",
}
_MOST_MODELS_NAMED = 5


@dataclass(frozen=True)
class OperatorRow(CellRow):
    """The time of one operator in one cell, largest first. Emulated devices are left out."""

    query = "operators"
    operator: Annotated[str, Name("Operator")]
    kind: Annotated[str, Words("Kind")]
    category: Annotated[str, Words("Category")]
    calls_per_run: Annotated[float, Calls("Calls", digits=2)]
    time_ms: Annotated[float, Milliseconds("Time", unit="ms per run")]
    share: Annotated[float, Percent("Share", bar=True, tone=flag_above(FLAGGED_SHARE))]
    unresolved: int
    """Operators of the cell that are below the resolution of their clock, and not among the rows."""

    @cells_of("kind")
    def _kind_cell(self, cell: Cell) -> Cell:
        is_notable = self.share > FLAGGED_SHARE and self.kind == "portable"
        return toned(cell, "flag") if is_notable else cell


@dataclass(frozen=True)
class ModuleRow(CellRow):
    """The time of one module in one cell, largest first, then of what is in none; emulated devices are left out."""

    query = "modules"
    module_path: Annotated[str, Name("Module")]
    module_class: Annotated[str | None, Words("Class")]
    time_ms: Annotated[float, Milliseconds("With modules inside", unit="ms per run")]
    share: Annotated[float, Percent("Share", bar=True)]
    own_ms: Annotated[float, Milliseconds("Own operators", unit="ms per run")]
    own_share: Annotated[float, Percent("Own share", "of the operators that the module calls itself")]
    kind: str

    @property
    def is_module(self) -> bool:
        """Whether the time belongs to a module."""
        return self.kind == "module"

    @cells_of("module_path")
    def _path_cell(self, cell: Cell) -> Cell:
        if self.is_module and self.module_path:
            return cell
        return Cell(self.module_path or "the model")

    @cells_of("module_class")
    def _class_cell(self, _cell: Cell) -> Cell:
        if self.is_module:
            return Cell((self.module_class or "").rpartition(".")[2])
        return Cell(_NO_MODULE[self.kind], tone="quiet")


def heaviest(cell: Iterable[ModuleRow]) -> str:
    """The two modules of a cell whose own operators take most of the time; empty without any."""
    own = sorted((row for row in cell if row.is_module), key=lambda row: -row.own_share)
    return listed(f"{row.module_path or 'the model itself'} {in_percent(row.own_share)}" for row in own[:2])


@dataclass(frozen=True)
class PortableRow(CellRow):
    """The time of all portable operators of one cell. Emulated devices are left out."""

    query = "portable"
    portable_ms: Annotated[
        float,
        Milliseconds("Portable", "sum of its operators; Method::execute is the time of the cell"),
    ]
    execute_ms: Annotated[float, Milliseconds("Method::execute")]
    share: Annotated[float, Percent("Weight", bar=True, tone=flag_above(FLAGGED_SHARE))]
    sessions: int


@dataclass(frozen=True)
class PortableOperatorRow(Row):
    """A portable operator of an exported model, and its largest weight on any device that is not emulated."""

    query = "portable_operators"
    model: Annotated[str, Name("Model")]
    precision: Annotated[str, Words("Precision")]
    operator: Annotated[str, Name("Operator")]
    count: Annotated[int | None, Number("In graph", "", "number of its nodes in the exported graph")]
    share: Annotated[
        float | None,
        Percent(
            "Weight",
            "largest share of Method::execute in any cell; a dash if not seen in any run",
            bar=True,
            tone=flag_above(FLAGGED_SHARE),
        ),
    ]
    device: Annotated[str | None, Words("Device", meaning="device of that cell")]
    reason: Annotated[str | None, Words("Why it was not delegated", wraps=True)]

    @cells_of("reason")
    def _reason_cell(self, cell: Cell) -> Cell:
        if self.reason:
            return cell
        return Cell(NO_REASON, tone="quiet") if self.count is not None else NOTHING


def portable_in_words(rows: Sequence[PortableRow]) -> Iterator[Text]:
    """The models whose portable operators weigh most, each with its worst cell; of lighter ones the largest weight."""
    if not rows:
        return
    worst: dict[str, PortableRow] = {}
    for row in sorted(rows, key=lambda row: -row.share):
        worst.setdefault(row.model, row)
    over = [row for row in worst.values() if row.share > FLAGGED_SHARE]
    if over:
        named = [
            (Code(row.model), f" {row.precision} ({in_percent(row.share)}, {counted(row.sessions, 'session')})")
            for row in over[:_MOST_MODELS_NAMED]
        ]
        yield joined(
            f"Portable operators take more than {rounded_percent(FLAGGED_SHARE)} of the time in ", separated(named), "."
        )
    elif not any(row.portable_ms for row in rows):
        of = Code(rows[0].model) if len(worst) == 1 else "any model"
        yield joined("No portable operator runs in ", of, ": 0 % of the time.")
    else:
        of = Code(rows[0].model) if len(worst) == 1 else "every model"
        most = in_percent(max(row.share for row in rows))
        yield joined(f"Portable operators take {'at most ' if len(rows) > 1 else ''}{most} of the time of ", of, ".")
