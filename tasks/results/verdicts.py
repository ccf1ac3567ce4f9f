"""Verdicts on series in a night: slower, faster or without a change, by how much, since when, and why."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Annotated, Any, Literal

from devices.errors import InputError
from devices.suggest import nights_beside
from tasks.bundle.failure_kinds import FAILURE_KINDS, signal_name
from tasks.bundle.robust_statistics import MIN_SESSIONS
from tasks.bundle.runtime import parse_runtime, without_runtime
from tasks.bundle.variant_word import variant_word
from tasks.judge.figures import LATENCY, METRICS, percent_change, signed_interval
from tasks.judge.verdicts.step import INTERLEAVED
from tasks.results.cells import CellRow, ChangePercent, Interval
from tasks.results.measurements.latency import NO_INTERVAL
from tasks.results.reader import Answers, Reader
from tasks.results.table import NOTHING, Cell, Number, Percent, Words
from tasks.results.text import (
    Text,
    again_text,
    counted,
    listed,
    plain_text,
    separated,
    series_title,
    with_code,
    word_tone,
)

ONLY_OF_LATENCY = ("ratio", "low", "noise_floor", "baseline_nights", "cause")
ONLY_OF_OTHER_FIGURES = ("metric", "baseline_value", "value")
"""Columns that only the table of latency has, and those that only the table of other figures has."""
FailingVerdict = Literal["regression", "suspected", "device", "never"]
"""Which verdicts make a sweep Failed, or `etfarm verdicts` end with 1."""
_FAILING: dict[FailingVerdict, set[str]] = {
    "regression": {"regression", "inaccurate"},
    "suspected": {"regression", "inaccurate", "suspected"},
    "device": {"regression", "inaccurate", "device slower", "device worse"},
    "never": set(),
}
MARKS = {
    "regression": "\u25b2",
    "suspected": "\u25b3",
    "device slower": "\u25b4",
    "device worse": "\u25b4",
    "improvement": "\u25bc",
    "suspected improvement": "\u25bd",
    "device faster": "\u25be",
    "device better": "\u25be",
    "inaccurate": "\u2260",
    "failed": "\u2715",
    "unclear": "~",
    "new": "*",
    "invalid environment": "!",
    "insufficient data": "?",
}
"""The shape of a verdict in a picture, beside its colour."""
UNCHANGED = ("unclear", "new", "invalid environment", "insufficient data", "no change")
"""Verdicts that state no change."""
WORSE = _FAILING["suspected"] | _FAILING["device"]
_DATA = (
    "verdict", "metric", "model", "device", "precision", "variant", "threads", "sessions", "ratio", "low", "high",
    "cause", "changed", "reason", "failure_kind", "failure_signal",
)  # fmt: skip
_MAX_NAMED = 3
QUIET = ("no change", "insufficient data", "new")
"""Verdicts that need nobody's attention."""


@dataclass(frozen=True, kw_only=True)
class Value(Words):
    """A value of the metric of its row, with its unit; a dash for None."""

    def cell_in(self, row: Any, name: str) -> Cell:
        figure = row.figure(getattr(row, name))
        return NOTHING if figure is None else Cell(figure)


@dataclass(frozen=True)
class VerdictRow(CellRow):
    query = "verdicts"
    verdict: Annotated[str, Words("Verdict", tone=word_tone)]
    metric: Annotated[
        str, Words("Figure", meaning="the size of a .pte file is listed once, with the first series that runs it")
    ]
    """`latency`; rows of other metrics exist only where they changed."""
    baseline_value: Annotated[
        float | None,
        Value("Before", meaning="median of the baseline nights; where measured interleaved, of the old side of that"),
    ]
    value: Annotated[float | None, Value("After", meaning="of the night; where measured interleaved, of its new side")]
    """In the unit of the metric."""
    ratio: Annotated[float | None, ChangePercent("Change", "the night against its baseline: above 0 is slower")]
    low: Annotated[
        float | None,
        Interval("95 % interval", "of the change; it includes how much the series moves from night to night"),
    ]
    high: float | None
    noise_floor: Annotated[
        float | None, Percent("Noise floor", "what the series moves by from night to night without a change")
    ]
    baseline_nights: Annotated[int, Number("Nights", "", "earlier nights that it was compared with")]
    since: Annotated[date | None, Words("Since", meaning="first night of the change")]
    cause: Annotated[
        str | None, Words("Cause", meaning="operators that changed, with what each adds to one run", wraps=True)
    ]
    """Operators, their names between backticks."""
    changed: Annotated[str | None, Words("What changed", meaning="what differs from the last good night", wraps=True)]
    reason: str
    sessions: int
    """Sessions of the night that count."""
    night: date
    baseline_to: date | None
    """The last good night."""
    series_id: str
    cell_before: str | None = None
    """The cell of the night `baseline_to`."""
    incident_id: str | None = None
    """The newest incident that the series is in; None if it is in none."""
    missing: str | None = None
    """`.pte file of NIGHT` or `runner of NIGHT`: why it cannot be compared with the last good night; else None."""

    failure_kind: str | None = None
    """Of failure_kinds.csv, the most frequent one; None unless it failed. Its signal and the device's system:"""
    failure_signal: int | None = None
    failure_system: str | None = None
    contrast: str | None = None
    """With what it fails and the same model runs; None if it does not fail, or if that is unknown."""
    sweep_id: str | None = None
    """The sweep whose sessions were judged; None without a session that counts, and of a night without a change."""
    measured_later: date | None = None
    """When its night was measured, if that was later: the reason states it, and it raises no alarm."""
    night_value: float | None = None
    """The figure of the night itself, whatever decided."""
    sessions_a: int | None = None
    """Sessions of the old side of the comparison that decided, and of the new one; None if nights did."""
    sessions_b: int | None = None

    @property
    def change(self) -> str:
        """The change with as many digits as its interval has, `+12.3 %`; empty without a ratio."""
        return "" if self.ratio is None else percent_change(self.ratio, self.low, self.high)

    def figure(self, value: float | None) -> str | None:
        """Return a value of the metric with its unit; None for None."""
        return None if value is None else METRICS[self.metric].text(value)

    @property
    def time_ms(self) -> float | None:
        """The time of the night in milliseconds; `after_ms` is what was compared with `before_ms`."""
        return None if self.night_value is None else self.night_value / 1e6

    @property
    def before_ms(self) -> float | None:
        return None if self.baseline_value is None else self.baseline_value / 1e6

    @property
    def after_ms(self) -> float | None:
        return None if self.value is None else self.value / 1e6

    @property
    def again(self) -> str:
        """What a comparison of the night measured, for a sentence; empty if nights decided."""
        return again_text(self.before_ms, self.after_ms, self.sessions_a, self.sessions_b)

    @property
    def impact_ms(self) -> float:
        """What the change adds to one run, in milliseconds; 0 without a baseline, and for other figures than times."""
        if METRICS[self.metric].unit != "ns" or self.value is None or self.baseline_value is None:
            return 0.0
        return (self.value - self.baseline_value) / 1e6

    @property
    def is_of_file(self) -> bool:
        """Whether the figure is one of the .pte file, the same on every device."""
        return METRICS[self.metric].is_exact

    @property
    def title(self) -> str:
        """The series on its device; only the model where the figure is one of its file."""
        return f"{self.model} {self.precision}" if self.is_of_file else series_title(self)

    @property
    def evidence(self) -> str:
        """What the verdict is based on: `eight sessions, 95 % interval +2.8 to +3.6 %`."""
        basis = INTERLEAVED if INTERLEAVED in self.reason else counted(self.sessions, "session")
        if self.low is None or self.high is None:
            return f"{basis}; {NO_INTERVAL}" if self.sessions < MIN_SESSIONS else basis
        return f"{basis}, 95 % interval {signed_interval(self.low, self.high)} %"

    @property
    def line(self) -> str:
        """One line: `regression: linear fp32 on here, SME2 off, one thread: +162.0 % ... (8 sessions)`."""
        needs_evidence = self.ratio is not None and not self.is_of_file and INTERLEAVED not in self.reason
        evidence = f" ({self.evidence})" if needs_evidence else ""
        cause = f"; cause: {self.cause}" if self.cause else ""
        changed = f"; changed: {self.changed}" if self.changed else ""
        return f"{self.verdict}: {self.title}: {self.reason}{evidence}{cause}{changed}"

    def data(self) -> dict[str, Any]:
        """Return the `verdict` of docs/json.md: before and after in the unit of the metric."""
        since = str(self.since) if self.since else None
        figures = {name: getattr(self, name) for name in _DATA}
        unit, more = METRICS[self.metric].unit, ("noise_floor", "baseline_nights", "series_id", "cell", "missing")
        figures |= {"before": self.baseline_value, "after": self.value, "unit": unit, "since": since}
        return figures | {name: getattr(self, name) for name in more} | {"incident": self.incident_id}

    def cause_cell(self, cell: Cell) -> Cell:
        return cell if self.cause is None else Cell(with_code(self.cause))


def read_verdicts(reader: Reader, nights: Sequence[date]) -> list[VerdictRow]:
    """Return the verdicts on nights, the worst first: all on latency, and the changes of other figures."""
    rows = reader.rows(VerdictRow, {"nights": nights, "sweep_id": None})
    return with_contrasts(rows)


def read_sweep_verdicts(answers: Answers) -> list[VerdictRow]:
    """Return the verdicts on the series of a sweep in its night, the worst first.

    A series of which another sweep of the night was judged, since it has enough sessions, has none on this one.
    """
    of_sweep = (None, answers.sweep.sweep_id)
    rows = [
        row
        for row in with_contrasts(answers.rows(VerdictRow))
        if row.sweep_id in of_sweep or row.metric == LATENCY.name
    ]
    own = [row for row in rows if row.sweep_id in of_sweep]
    return own + [_without_verdict(row) for row in rows if row.sweep_id not in of_sweep]


def _without_verdict(row: VerdictRow) -> VerdictRow:
    figures = ("ratio", "low", "high", "value", "night_value", "baseline_value", "noise_floor")
    unknown = (*figures, "since", "cause", "changed", "sessions_a", "sessions_b")
    reason = f"the verdict of this night is that on sweep {row.sweep_id}"
    without: dict[str, Any] = dict.fromkeys((*unknown, "incident_id", "missing"))
    return replace(row, verdict="insufficient data", reason=reason, sessions=0, baseline_nights=0, **without)


def read_night(reader: Reader, night: str | None) -> tuple[str, list[VerdictRow]]:
    """Return a night (None: the newest) and its verdicts; raises InputError if it was not judged."""
    nights = {str(row[0]): row[0] for row in reader.tuples("nights")}
    if not nights:
        raise InputError("no night is judged yet; measure one with `etfarm sweep`")
    requested = night or next(iter(nights))
    if requested not in nights:
        raise InputError(f"`{requested}` is not a judged night{nights_beside(requested, nights)}")
    return requested, read_verdicts(reader, [nights[requested]])


def with_contrasts(rows: Sequence[VerdictRow]) -> list[VerdictRow]:
    """Return the series of nights; the reason of one that fails begins with what the same model runs with.

    Series are compared that differ in the variant alone or, if none of these runs, in delegate, versions and options
    alone.
    """
    runs: dict[tuple[str, ...], list[VerdictRow]] = {}
    for row in rows:
        if row.value is not None and row.metric == LATENCY.name:
            runs.setdefault(_conditions(row), []).append(row)
    return [
        replace(row, contrast=contrast, reason=f"{contrast}; {row.reason}")
        if (contrast := _contrast(row, runs.get(_conditions(row), [])))
        else row
        for row in rows
    ]


def _conditions(row: VerdictRow) -> tuple[str, ...]:
    return without_runtime(row.model), row.device, row.precision, str(row.threads), str(row.night)


def _contrast(row: VerdictRow, runs: Sequence[VerdictRow]) -> str | None:
    """Return `crashes with SME2 on (SIGSEGV), runs with SME2 off (8 sessions)`; None without a series that runs."""
    kind = FAILURE_KINDS.get(row.failure_kind or "")
    if row.value is not None or kind is None or not kind.phrase:
        return None
    is_own = row.failure_kind == "deadline_exceeded"  # ended by the farm
    name = signal_name(row.failure_signal, row.failure_system) if row.failure_signal and not is_own else ""
    signal = f" ({name})" if name else ""
    other_variants = [each for each in runs if each.model == row.model]
    if other_variants:
        words = listed(
            [f"{variant_word(each.variant)} ({counted(each.sessions, 'session')})" for each in other_variants]
        )
        return f"{kind.phrase} with {variant_word(row.variant)}{signal}, runs with {words}"
    others = [each for each in runs if each.variant == row.variant]
    if not others:
        return None
    words = listed([f"{_runtime_words(each.model)} ({counted(each.sessions, 'session')})" for each in others])
    return f"{kind.phrase} {_runtime_words(row.model)}{signal}, runs {words}"


def _runtime_words(model: str) -> str:
    """Return the delegate, versions and options of a case: `with load=mmap`, or `by default` without any."""
    runtime = parse_runtime(model)
    words = ",".join(filter(None, [runtime.of_program, runtime.of_run]))
    return f"with {words}" if words else "by default"


def latency_verdicts(verdicts: Sequence[VerdictRow]) -> list[VerdictRow]:
    return [verdict for verdict in verdicts if verdict.metric == LATENCY.name]


def other_verdicts(verdicts: Sequence[VerdictRow]) -> list[VerdictRow]:
    return [verdict for verdict in verdicts if verdict.metric != LATENCY.name]


def failing_verdicts(verdicts: Sequence[VerdictRow], fail_on: FailingVerdict) -> list[VerdictRow]:
    return [each for each in verdicts if each.verdict in _FAILING[fail_on] and each.measured_later is None]


def has_answer(verdicts: Sequence[VerdictRow]) -> bool:
    """Return whether the verdicts state more than a first night."""
    return any(verdict.verdict != "new" for verdict in verdicts)


def failed_series(verdicts: Sequence[VerdictRow]) -> list[tuple[Text, str]]:
    """Return the failed series of a night and the reason that they share; variants and threads are not named.

    Those that were measured later are left out: they are history.
    """
    of_reason: dict[str, dict[Text, None]] = {}
    for row in verdicts:
        if row.verdict == "failed" and row.measured_later is None:
            of_reason.setdefault(row.reason, {})[f"{row.model} {row.precision} on {row.device}"] = None
    return [(separated(list(named), most=_MAX_NAMED), reason) for reason, named in of_reason.items()]


def failed_lines(verdicts: Sequence[VerdictRow]) -> list[str]:
    """Return a line for each reason why series failed, with the first three."""
    return [f"failed: {plain_text(named)}: {reason}" for named, reason in failed_series(verdicts)]
