"""Is an upgrade safe? One sweep that measured two versions of ExecuTorch, or two sets of run-time options, compared."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from devices.errors import InputError
from tasks.bundle.model_names import short_names
from tasks.bundle.runtime import parse_runtime, without_runtime
from tasks.judge.comparison import SideComparison, compare
from tasks.judge.figures import METRICS, Metric, percent_change
from tasks.results.changes import INACCURATE, Comparison, SeriesChange, answer_text
from tasks.results.compare import compare_arms
from tasks.results.reader import Reader
from tasks.results.table import Name, Row, Words
from tasks.results.text import counted, numbered

DEFAULT = "default"
"""The runtime of a case that states no version and no option."""
Answer = Literal["safe", "not safe", "inconclusive"]
FIGURES = ("load time", "peak memory", ".pte size")
"""Figures besides the time that make an upgrade unsafe if they grow by more than their `min_change`."""
_LOAD, _MEMORY, _SIZE = (METRICS[name] for name in FIGURES)
_Key = tuple[str, str, str, str, int | None]


@dataclass(frozen=True)
class UpgradeSide:
    """One name of a cell: a model with a version or options, on a device."""

    model: str
    device: str
    precision: str
    variant: str
    threads: int | None
    emulated: bool
    cells: Sequence[str] | None
    succeeded: int
    unsuccessful: int
    reason_code: str | None
    """Of the first session that did not succeed, as `reason`."""
    reason: str | None
    loads_ns: Sequence[float]
    peaks_bytes: Sequence[float]
    pte_bytes: int | None
    delegated: int | None
    """Operators of the exported graph that a delegate took; None if the export states none."""
    portable: int | None
    accuracy: str

    @property
    def runtime(self) -> str:
        runtime = parse_runtime(self.model)
        export = f"export={runtime.export}" if runtime.export else ""
        return ",".join(filter(None, [export, runtime.of_run])) or DEFAULT

    @property
    def key(self) -> _Key:
        return without_runtime(self.model), self.device, self.precision, self.variant, self.threads

    @property
    def is_exported(self) -> bool:
        return self.reason_code != "export_failed" or self.succeeded > 0


@dataclass(frozen=True)
class UpgradeRow(Row):
    """What changes for one model on one device; texts are empty where a figure is unknown."""

    model: Annotated[str, Name("Model")]
    device: Annotated[str, Words("Device")]
    precision: Annotated[str, Words("Precision")]
    variant: Annotated[str, Words("Variant")]
    threads: Annotated[int | None, Words("Threads")]
    time: Annotated[str, Words("Time", wraps=True)]
    load: Annotated[str, Words("Load")]
    memory: Annotated[str, Words("Peak memory")]
    size: Annotated[str, Words("Size of .pte")]
    operators: Annotated[str, Words("Operators", meaning="delegated and portable ones in the exported graph")]
    outputs: Annotated[str, Words("Outputs")]
    worse: Sequence[str] = field(default=())
    """Why the upgrade is not safe here, a phrase each."""
    unknown: Sequence[str] = field(default=())
    """What could not be answered here."""

    @property
    def title(self) -> str:
        threads = "" if self.threads is None else f" t{self.threads}"
        return f"{self.model} {self.precision} {self.variant}{threads} on {self.device}"


@dataclass(frozen=True)
class Upgrade:
    """The upgrade from A to B, over all models of a sweep."""

    sweep_id: str
    a: str
    b: str
    rows: Sequence[UpgradeRow]
    comparison: Comparison | None
    """The times; None if no cell could be compared."""

    @property
    def answer(self) -> Answer:
        if any(row.worse for row in self.rows):
            return "not safe"
        return "inconclusive" if not self.rows or any(row.unknown for row in self.rows) else "safe"

    @property
    def headline(self) -> str:
        """The answer in one sentence, with how many cells it counts."""
        worse = [row for row in self.rows if row.worse]
        unknown = [row for row in self.rows if row.unknown and not row.worse]
        parts = [f"worse in {len(worse)} of {counted(len(self.rows), 'cell')}"]
        if unknown:
            parts.append(f"not answered in {len(unknown)}")
        return f"{self.answer.capitalize()}: from {self.a} to {self.b}, {', '.join(parts)}."

    @property
    def findings(self) -> list[str]:
        """A sentence for each cell that is worse, then for each that could not be answered."""
        worse = [f"{row.title}: {'; '.join(row.worse)}" for row in self.rows if row.worse]
        return worse + [f"{row.title}: {'; '.join(row.unknown)}" for row in self.rows if row.unknown]


def read_upgrade(reader: Reader, sweep_id: str, a: str, b: str) -> Upgrade:
    """Compare two runtimes of a sweep, `default` or words such as `export=1.4.1`; InputError for one that it lacks."""
    sides = [UpgradeSide(*row) for row in reader.tuples("upgrade_cells", sweep_id=sweep_id)]
    of_a, of_b = ({side.key: side for side in sides if side.runtime == each} for each in (a, b))
    for runtime, of_side in ((a, of_a), (b, of_b)):
        if not of_side:
            measured = ", ".join(sorted({side.runtime for side in sides})) or "nothing"
            raise InputError(f"the sweep {sweep_id} has no session with {runtime}; it measured {measured}")
    try:
        comparison = compare_arms(reader, f"runtime:{a}", f"runtime:{b}", sweep_id)
    except InputError:  # of one side, no session has a result
        comparison = None
    changes = {change.b.cell: change for change in (comparison.changes if comparison else ())}
    names = short_names(key[0] for key in (*of_a, *of_b))
    rows = [_row(names, of_a.get(key), of_b.get(key), changes) for key in sorted({**of_a, **of_b}, key=str)]
    return Upgrade(sweep_id, a, b, rows, comparison)


def _row(
    names: Mapping[str, str], a: UpgradeSide | None, b: UpgradeSide | None, changes: Mapping[str | None, SeriesChange]
) -> UpgradeRow:
    model, device, precision, variant, threads = (b or a).key  # type: ignore[union-attr]
    change = next((changes[cell] for cell in (b.cells or () if b else ()) if cell in changes), None)
    load = compare_figures(_LOAD, a.loads_ns, b.loads_ns) if a and b and not b.emulated else None
    memory = compare_figures(_MEMORY, a.peaks_bytes, b.peaks_bytes) if a and b else None
    return UpgradeRow(
        names.get(model, model),
        device,
        precision,
        variant,
        threads,
        time=answer_text(change) if change else "",
        load=figure_in_words(_LOAD, load),
        memory=figure_in_words(_MEMORY, memory),
        size=_size_text(a, b),
        operators=_operators_text(a, b),
        outputs=" -> ".join(dict.fromkeys(side.accuracy for side in (a, b) if side)),
        worse=list(_worse(a, b, change, load, memory)),
        unknown=list(_unknown(a, b, change)),
    )


def _worse(
    a: UpgradeSide | None,
    b: UpgradeSide | None,
    change: SeriesChange | None,
    load: SideComparison | None,
    memory: SideComparison | None,
) -> Iterator[str]:
    """Yield what is worse with B: what does not export or run any more, then outputs, then figures."""
    if not (a and b and a.succeeded):
        return
    if not b.succeeded:
        what = "does not run any more" if b.is_exported else "does not export any more"
        yield f"{what} ({b.reason_code}): {b.reason}"
        return
    if b.unsuccessful and not a.unsuccessful:
        yield f"{b.unsuccessful} of {numbered(b.succeeded + b.unsuccessful, 'session')} failed: {b.reason}"
    if b.accuracy == INACCURATE and a.accuracy != INACCURATE:
        yield "its outputs are inaccurate"
    if change and change.is_regression:
        yield answer_text(change)
    for metric, compared in ((_LOAD, load), (_MEMORY, memory)):
        if compared and compared.answer == "different" and (compared.low or 0) > 1 and is_large(metric, compared):
            yield f"{metric.name} {figure_in_words(metric, compared)}"
    if a.pte_bytes and b.pte_bytes and b.pte_bytes / a.pte_bytes > 1 + _SIZE.min_change:
        yield f"{_SIZE.name} {_size_text(a, b)}"


def _unknown(a: UpgradeSide | None, b: UpgradeSide | None, change: SeriesChange | None) -> Iterator[str]:
    """Yield what could not be answered although B may be as good as A."""
    if not a or not b:
        yield f"not measured with {'A' if b else 'B'}"
    elif not a.succeeded:
        yield f"{'did not run' if a.is_exported else 'did not export'} with A either: {a.reason}"
    elif b.succeeded and change is None:
        yield "its times were not compared"
    elif change and change.answer in ("unknown", None):
        yield f"its times: {answer_text(change)}"


def compare_figures(metric: Metric, a: Sequence[float], b: Sequence[float]) -> SideComparison | None:
    """Return B compared with A within the metric's least change; None without a figure on a side."""
    return compare(a, b, metric.min_change) if a and b else None


def is_large(metric: Metric, compared: SideComparison) -> bool:
    return abs((compared.ratio or 1) - 1) > metric.min_change


def figure_in_words(metric: Metric, compared: SideComparison | None) -> str:
    """Return both figures and the change with its interval: `48.4 MB -> 96.8 MB (+100 %, +98 to +102 %)`."""
    if compared is None or compared.time_a is None or compared.time_b is None:
        return ""
    before, after = metric.text(compared.time_a), metric.text(compared.time_b)
    if compared.ratio is None or compared.low is None or compared.high is None:
        return f"{before} -> {after}"
    ends = " to ".join(percent_change(each, compared.low, compared.high) for each in (compared.low, compared.high))
    return f"{before} -> {after} ({percent_change(compared.ratio, compared.low, compared.high)}, {ends})"


def _size_text(a: UpgradeSide | None, b: UpgradeSide | None) -> str:
    if not (a and b and a.pte_bytes and b.pte_bytes):
        return ""
    if a.pte_bytes == b.pte_bytes:
        return _SIZE.text(a.pte_bytes)
    return f"{_SIZE.text(a.pte_bytes)} -> {_SIZE.text(b.pte_bytes)} ({percent_change(b.pte_bytes / a.pte_bytes)})"


def _operators_text(a: UpgradeSide | None, b: UpgradeSide | None) -> str:
    """Return how many operators are delegated and portable, `A -> B` where they differ."""
    texts = [
        f"{side.delegated or 0} + {side.portable or 0}"
        for side in (a, b)
        if side and (side.delegated, side.portable) != (None, None)
    ]
    return " -> ".join(dict.fromkeys(texts))
