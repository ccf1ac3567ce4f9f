"""Where the time goes: by category, operator and module, and which operators stayed portable and why."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import groupby
from typing import Annotated

from sql.schema import seed_rows
from tasks.judge.figures import signed_percent
from tasks.judge.operators.advice import HEAVY_SHARE, NO_REASON
from tasks.results.cells import Case, CellRow, by_cell_or_pair, device_and_conditions
from tasks.results.reader import Answers, Reader
from tasks.results.table import NOTHING, Calls, Cell, Milliseconds, Name, Number, Percent, Row, Words, flag_above, toned
from tasks.results.text import Code, Text, codes, counted, in_percent, joined, listed, rounded_percent, separated

_NO_MODULE = {
    "unattributed": "time that no operator accounts for",
    "inserted": "layout and type changes of the exporter",
    "unknown": "operators of unknown modules",
}
_MAX_MODELS_NAMED = 5
_MAX_CHANGED = 5
OTHER = "Other"
REST = "Unattributed"
_COMPUTE = ("Convolution", "GEMM")
_KNOWN = {category for _, _, category in seed_rows("operator_category")} - {OTHER}
CATEGORIES = (*sorted(_KNOWN, key=lambda name: (name not in _COMPUTE, name)), OTHER, REST)
"""All categories in the order of columns, bars and colours: those that compute first, the rest last."""
NO_TIMES = "No session on a real device succeeded, so there are no times to break down."


@dataclass(frozen=True)
class OperatorRow(CellRow):
    """The time of an operator in a cell: the ten largest and all over 5 %. Emulated devices are left out."""

    query = "operators"
    operator: Annotated[str, Name("Operator")]
    kind: Annotated[str, Words("Kind")]
    category: Annotated[str, Words("Category")]
    calls_per_run: Annotated[float, Calls("Calls", digits=2)]
    time_ms: Annotated[float, Milliseconds("Time", unit="ms per run")]
    share: Annotated[float, Percent("Share", bar=True, tone=flag_above(HEAVY_SHARE))]
    unresolved: int
    """How many operators of the cell are below the resolution of their clock and not among the rows."""

    def kind_cell(self, cell: Cell) -> Cell:
        is_notable = self.share > HEAVY_SHARE and self.kind == "portable"
        return toned(cell, "flag") if is_notable else cell


@dataclass(frozen=True)
class ModuleRow(CellRow):
    """The time of a module in a cell: those of 5 % or more, then what is in no module. No emulated devices."""

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
        return self.kind == "module"

    def module_path_cell(self, cell: Cell) -> Cell:
        """Return the path as code; `the model` for the empty path, and plain text for time that is in no module."""
        if self.is_module and self.module_path:
            return cell
        return Cell(self.module_path or "the model")

    def module_class_cell(self, _cell: Cell) -> Cell:
        """Return the class without its package; for time in no module, what that time is."""
        if self.is_module:
            return Cell((self.module_class or "").rpartition(".")[2])
        return Cell(_NO_MODULE[self.kind], tone="quiet")


def heaviest_modules(cell: Iterable[ModuleRow]) -> str:
    """Return the two modules with most time of their own; empty without any over 5 %."""
    heavy = (row for row in cell if row.is_module and row.own_share >= HEAVY_SHARE)
    own = sorted(heavy, key=lambda row: -row.own_share)
    return listed(f"{row.module_path or 'the model itself'} {in_percent(row.own_share)}" for row in own[:2])


@dataclass(frozen=True)
class PortableRow(CellRow):
    """The time of all portable operators of a cell. Emulated devices are left out."""

    query = "portable"
    portable_ms: Annotated[
        float, Milliseconds("Portable", "sum of its operators; Method::execute is the time of the cell")
    ]
    execute_ms: Annotated[float, Milliseconds("Method::execute")]
    share: Annotated[float, Percent("Weight", bar=True, tone=flag_above(HEAVY_SHARE))]
    sessions: int


@dataclass(frozen=True)
class PortableOperatorRow(Row):
    """A portable operator of an exported model, and its largest weight on any real device."""

    query = "portable_operators"
    model: Annotated[str, Case("Model")]
    precision: Annotated[str, Words("Precision")]
    operator: Annotated[str, Name("Operator")]
    count: Annotated[int | None, Number("In graph", "", "number of its nodes in the exported graph")]
    share: Annotated[
        float | None,
        Percent(
            "Weight",
            "largest share of Method::execute in any cell; a dash if no run called it",
            bar=True,
            tone=flag_above(HEAVY_SHARE),
        ),
    ]
    device: Annotated[str | None, Words("Device", meaning="device of that cell")]
    reason: Annotated[str | None, Words("Why it was not delegated", wraps=True)]

    def reason_cell(self, cell: Cell) -> Cell:
        if self.reason:
            return cell
        return Cell(NO_REASON, tone="quiet") if self.count is not None else NOTHING


def portable_in_words(rows: Sequence[PortableRow]) -> Iterator[Text]:
    """Yield the models with over 5 % of the time in portable operators, by their worst cell; else the largest share."""
    if not rows:
        return
    worst: dict[str, PortableRow] = {}
    for row in sorted(rows, key=lambda row: -row.share):
        worst.setdefault(row.model, row)
    over = [row for row in worst.values() if row.share > HEAVY_SHARE]
    if over:
        cells = Counter(row.model for row in rows)
        named: list[Text] = []
        for row in over[:_MAX_MODELS_NAMED]:
            worst_of = f", worst of {cells[row.model]} cells" if cells[row.model] > 1 else ""
            basis = f"{in_percent(row.share)}, {counted(row.sessions, 'session')}{worst_of}"
            named.append((Code(row.model), f" {row.precision} {device_and_conditions(row)} ({basis})"))
        yield joined(
            f"Portable operators take more than {rounded_percent(HEAVY_SHARE)} of the time in ", separated(named), "."
        )
    elif not any(row.portable_ms for row in rows):
        of = Code(rows[0].model) if len(worst) == 1 else "any model"
        yield joined("No portable operator runs in ", of, ": 0 % of the time.")
    else:
        of = Code(rows[0].model) if len(worst) == 1 else "every model"
        most = in_percent(max(row.share for row in rows))
        yield joined(f"Portable operators take {'at most ' if len(rows) > 1 else ''}{most} of the time of ", of, ".")


@dataclass(frozen=True)
class CategoryRow(CellRow):
    """The time of one category in one cell; the shares of a cell add up to 1. Emulated devices are left out."""

    query = "categories"
    category: str
    time_ms: float
    share: float
    resolution_ms: float

    @property
    def is_resolved(self) -> bool:
        """Whether the time is at least the resolution of the clock that measured it."""
        return self.time_ms >= self.resolution_ms

    @property
    def bounds_ms(self) -> tuple[float, float]:
        """The shortest and the longest possible time: the delegate's clock rounds down, the rest gains that."""
        if self.category == REST:
            return self.time_ms - self.resolution_ms, self.time_ms
        return self.time_ms, self.time_ms + self.resolution_ms


@dataclass(frozen=True)
class UnknownOperatorRow(Row):
    query = "unknown_operators"
    name: str


@dataclass(frozen=True)
class DelegateNoteRow(Row):
    query = "delegate_notes"
    model: str
    precision: str
    note: str


def read_categories(answers: Answers) -> list[list[CategoryRow]]:
    """Return the rows of each cell, one for each category; those of categories that no longer exist add up to Other."""
    cells = []
    for rows in by_cell_or_pair(answers.rows(CategoryRow)).values():
        by_category: dict[str, CategoryRow] = {}
        for row in rows:
            category = row.category if row.category in CATEGORIES else OTHER
            if same := by_category.get(category):
                sums = {
                    name: getattr(row, name) + getattr(same, name) for name in ("time_ms", "share", "resolution_ms")
                }
                row = replace(same, **sums)
            elif category != row.category:
                row = replace(row, category=category)
            by_category[category] = row
        cells.append(list(by_category.values()))
    return cells


def _largest_category(cell: Sequence[CategoryRow]) -> CategoryRow | None:
    """Return the category of a cell with most of the time; None if that depends on how the clock rounded."""
    top = max(cell, key=lambda row: row.bounds_ms[0])
    return top if all(row is top or row.bounds_ms[1] <= top.bounds_ms[0] for row in cell) else None


def time_in_words(answers: Answers) -> Iterator[Text]:
    """Yield the largest category of each model, then the models where the clock is too coarse to name one."""
    largest: dict[str, dict[str, list[float]]] = defaultdict(dict)
    undecided = []
    for model, of_model in groupby(read_categories(answers), key=lambda cell: cell[0].model):
        is_decided = False
        for cell in of_model:
            if top := _largest_category(cell):
                largest[top.category].setdefault(model, []).append(top.share)
                is_decided = True
        if not is_decided:
            undecided.append(model)
    parts = []
    for category, models in sorted(largest.items(), key=lambda entry: -len(entry[1])):
        shares = [share for part in models.values() for share in part]
        low, high = (f"{100 * share:.0f}" for share in (min(shares), max(shares)))
        span = f"{low} %" if low == high else f"{low} to {high} %"
        name = category if category != OTHER else "operators of no category (named by slowest-operators)"
        parts.append(joined(f"{name} in ", codes(models), f" ({span})"))
    if parts:
        yield joined("Largest share of the time: ", separated(parts, "; "), ".")
    if undecided:
        yield joined(
            "Where the time of ", codes(undecided), " goes is unknown: the delegate's clock has a resolution of "
            "1 \u00b5s per call, and their operators are not long enough for it."
        )  # fmt: skip


def changed_operators(reader: Reader, series_id: str, device: str, night: date) -> list[Text]:
    """Return a text for each operator of a series with a confirmed change in a night, the largest five."""
    rows = reader.tuples("changed_operators", series_id=series_id, device=device, night=night)
    texts: list[Text] = []
    for operator, is_slower, ratio, before_ms, after_ms in rows[:_MAX_CHANGED]:
        word = "slower" if is_slower else "faster"
        change = f"{signed_percent(ratio)} %, {word}" if ratio is not None else "new" if is_slower else "gone"
        texts.append((Code(operator), f": {change}, {before_ms:.3f} -> {after_ms:.3f} ms in a run."))
    return texts
