"""Is an upgrade safe? One sweep that measured two versions of ExecuTorch, or two sets of run-time options, compared."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from devices.errors import InputError
from tasks.bundle.failure_kinds import FAILURE_KINDS, OTHER
from tasks.bundle.model_names import short_names
from tasks.bundle.runtime import only_delegate, parse_runtime, without_case
from tasks.judge.comparison import SideComparison, compare
from tasks.judge.figures import METRICS, Metric, percent_change
from tasks.results.cells import Case
from tasks.results.changes import INACCURATE, Comparison, SeriesChange, answer_text
from tasks.results.compare import compare_arms
from tasks.results.reader import Reader
from tasks.results.table import Row, Words
from tasks.results.text import counted, listed, numbered

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
    failures: Sequence[tuple[str, str | None]] | None
    """Code and reason of each session that did not succeed."""
    loads_ns: Sequence[float]
    peaks_bytes: Sequence[float]
    pte_bytes: int | None
    delegated: int | None
    """Operators of the exported graph that a delegate took; None if the export states none."""
    portable: int | None
    accuracy: str

    @property
    def runtime(self) -> str:
        return parse_runtime(self.model).of_versions or DEFAULT

    @property
    def key(self) -> _Key:
        return only_delegate(self.model), self.device, self.precision, self.variant, self.threads

    @property
    def failures_of_model(self) -> list[tuple[str, str | None]]:
        """Those that the device or its conditions did not cause."""
        return [each for each in self.failures or () if FAILURE_KINDS.get(each[0], FAILURE_KINDS[OTHER]).phrase]

    @property
    def reason(self) -> str | None:
        return next((reason for _, reason in (*self.failures_of_model, *(self.failures or ()))), None)

    @property
    def is_exported(self) -> bool:
        return not any(code == "export_failed" for code, _ in self.failures or ()) or self.succeeded > 0


@dataclass(frozen=True)
class UpgradeRow(Row):
    """What changes for one model on one device; texts are empty where a figure is unknown."""

    model: Annotated[str, Case("Model")]
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
    not_measured: Sequence[str] = ()
    """Devices without a session."""

    @property
    def answer(self) -> Answer:
        if any(row.worse for row in self.rows):
            return "not safe"
        is_open = not self.rows or self.not_measured or any(row.unknown for row in self.rows)
        return "inconclusive" if is_open else "safe"

    @property
    def headline(self) -> str:
        """The answer in one sentence, with how many cells it counts."""
        worse = [row for row in self.rows if row.worse]
        unknown = [row for row in self.rows if row.unknown and not row.worse]
        parts = [f"worse in {len(worse)} of {counted(len(self.rows), 'cell')}"]
        if unknown:
            parts.append(f"not answered in {len(unknown)}")
        if self.not_measured:
            parts.append(f"not measured on {listed(self.not_measured)}")
        return f"{self.answer.capitalize()}: from {self.a} to {self.b}, {', '.join(parts)}."

    @property
    def findings(self) -> list[str]:
        """A sentence for each cell that is worse, then for each cell and device that could not be answered."""
        worse = [f"{row.title}: {'; '.join(row.worse)}" for row in self.rows if row.worse]
        unknown = [f"{row.title}: {'; '.join(row.unknown)}" for row in self.rows if row.unknown]
        return [*worse, *unknown, *(f"{device}: not measured" for device in self.not_measured)]


def read_upgrade(reader: Reader, sweep_id: str, a: str, b: str, devices: Iterable[str] = ()) -> Upgrade:
    """Compare two runtimes of a sweep, `default` or words such as `export=1.4.1`; InputError for one that it lacks.

    `devices` are those that should have been measured.
    """
    sides = [UpgradeSide(*row) for row in reader.tuples("upgrade_cells", sweep_id=sweep_id)]
    of_a, of_b = ({side.key: side for side in sides if side.runtime == each} for each in (a, b))
    for runtime, of_side in ((a, of_a), (b, of_b)):
        if not of_side:
            measured = ", ".join(sorted({side.runtime for side in sides})) or "nothing"
            raise InputError(f"the sweep {sweep_id} has no session with {runtime}; it measured {measured}")
    _give_cases(of_a, of_b)
    _give_cases(of_b, of_a)
    try:
        comparison = compare_arms(reader, f"runtime:{a}", f"runtime:{b}", sweep_id)
    except InputError:  # of one side, no session has a result
        comparison = None
    changes = {change.b.cell: change for change in (comparison.changes if comparison else ())}
    names = short_names(key[0] for key in (*of_a, *of_b))
    rows = [_row(key, names, of_a.get(key), of_b.get(key), changes) for key in sorted({**of_a, **of_b}, key=str)]
    measured_devices = {side.device for side in sides}
    return Upgrade(sweep_id, a, b, rows, comparison, [each for each in devices if each not in measured_devices])


def _give_cases(sides: dict[_Key, UpgradeSide], others: Mapping[_Key, UpgradeSide]) -> None:
    """Replace each model that could not be exported, whose cases are thus unknown, by the cases of the other side."""
    for key, side in list(sides.items()):
        cases = [each for each in others if each != key and (without_case(each[0]), *each[1:]) == key]
        if cases and not side.is_exported and key not in others:
            del sides[key]
            sides |= {each: side for each in cases if each not in sides}


def _row(
    key: _Key,
    names: Mapping[str, str],
    a: UpgradeSide | None,
    b: UpgradeSide | None,
    changes: Mapping[str | None, SeriesChange],
) -> UpgradeRow:
    model, device, precision, variant, threads = key
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
    failures = b.failures_of_model
    if failures and not b.succeeded:
        what = "does not run any more" if b.is_exported else "does not export any more"
        yield f"{what} ({failures[0][0]}): {b.reason}"
        return
    if failures and not a.failures_of_model:
        yield f"{len(failures)} of {numbered(b.succeeded + len(failures), 'session')} failed: {b.reason}"
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
    elif not b.succeeded and not b.failures_of_model:
        yield f"did not run with B: {b.reason}"
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
