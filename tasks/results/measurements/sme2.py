"""Effect of SME2: speed-up, how much of the work ran on it, and which kernels prove it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from tasks.bundle.robust_statistics import MIN_SESSIONS
from tasks.results.cells import Case, CellRow, PairRow
from tasks.results.devices import DeviceRow
from tasks.results.measurements.latency import NO_INTERVAL, LatencyRow
from tasks.results.reader import Answers
from tasks.results.sentences import NO_SPEEDUPS
from tasks.results.table import NOTHING, Calls, Cell, Milliseconds, Name, Number, Percent, Row, Signed, Words, toned
from tasks.results.text import TIMES, Code, Text, counted, in_percent, series_conditions

if TYPE_CHECKING:
    from tasks.judge.comparison import SideComparison

MIN_SPEEDUP = 1.1
"""A speed-up below this counts as none: one sweep cannot show smaller ones."""


def ran_with_sme(answers: Answers) -> bool:
    """Return whether any session with SME2 or SME1 succeeded: it has a latency, or kernels."""
    timed = any(row.variant in ("sme2_on", "sme1") for row in answers.rows(LatencyRow))
    return timed or any(row.weight_on or row.weight_sme1 for row in answers.rows(KernelRow))


def sme2_in_words(answers: Answers) -> Iterator[Text]:
    """Yield the range of all speed-ups, or why there is nothing to compare."""
    reported = {row.sme2 for row in answers.rows(DeviceRow)}
    if ran_with_sme(answers):
        yield from speedup_in_words(answers.rows(SpeedupRow))
    elif True in reported:
        yield "A device here has SME2, but no session with SME2 on succeeded, so there is nothing to compare."
    elif reported == {False}:
        yield "No device here has SME2, so there is nothing to compare."
    else:
        yield "No device here reports SME2, and none ran with it, so there is nothing to compare."


@dataclass(frozen=True)
class SpeedupRow(PairRow):
    """A pair of cells with its times and those of its sessions; an emulated device has counts and no times."""

    query = "sme2_speedup"
    time_off_ms: Annotated[float | None, Milliseconds("SME2 off", "time with SME2 off, as in the table of latencies")]
    time_on_ms: Annotated[float | None, Milliseconds("SME2 on")]
    speedup: Annotated[
        float | None,
        Number(
            "Speed-up",
            TIMES,
            "SME2 off divided by SME2 on: above 1, SME2 is faster",
            digits=2,
            tone=lambda speedup: "flag" if speedup < 1 else "",
        ),
    ]
    reason: Annotated[
        str | None, Words("95 % interval", TIMES, f"needs {MIN_SESSIONS} sessions on each side", numeric=True)
    ]
    """Why there is no speed-up although both sides were measured."""
    sessions_off: Annotated[int, Number("Sessions off")]
    sessions_on: Annotated[int, Number("Sessions on")]
    time_sme1_ms: Annotated[float | None, Milliseconds("SME1", "SME without SME2", only_with="sessions_sme1")]
    speedup_sme1: Annotated[
        float | None, Number("Speed-up by SME1", TIMES, "SME2 off divided by SME1", digits=2, only_with="sessions_sme1")
    ]
    sessions_sme1: Annotated[int, Number("Sessions SME1", only_with="sessions_sme1")]
    times_on_ms: list[float] | None
    times_off_ms: list[float] | None

    @property
    def comparison(self) -> "SideComparison":
        """The speed-up from the sessions, with its interval."""
        from tasks.judge.comparison import compare  # slow to import, and many farms have no device with SME2

        return compare(self.times_on_ms or (), self.times_off_ms or ())

    def reason_cell(self, cell: Cell) -> Cell:
        """Return the interval of the speed-up, or why there is none."""
        if self.speedup is None:
            is_known = self.reason is not None and not self.without_times
            return Cell(NO_SPEEDUPS[str(self.reason)], tone="bad") if is_known else NOTHING
        speedup = self.comparison
        if speedup.low is None or speedup.high is None:
            return Cell("insufficient data", tone="quiet")
        return Cell(f"{speedup.low:.2f} to {speedup.high:.2f}", sort=speedup.low)


def speedup_in_words(every: Sequence[SpeedupRow]) -> Iterator[Text]:
    """Yield the range of all speed-ups with their sessions and intervals; nothing without a speed-up."""
    rows = [row for row in every if row.speedup is not None]
    if not rows:
        return
    ratios = sorted(row.speedup or 0.0 for row in rows)
    sides = sorted(count for row in rows for count in (row.sessions_on, row.sessions_off))
    side_sessions = counted(sides[0], "session") if sides[0] == sides[-1] else f"{sides[0]} to {sides[-1]} sessions"
    basis = f"{counted(len(rows), 'comparison')} of {side_sessions} on each side"
    speedups = [row.comparison for row in rows]
    bounds = [bound for speedup in speedups for bound in (speedup.low, speedup.high) if bound is not None]
    without = sum(speedup.low is None for speedup in speedups)
    intervals = f"{NO_INTERVAL} on each side"
    if bounds:
        intervals = f"95 % {'interval' if len(rows) == 1 else 'intervals'} {_range_text(sorted(bounds))}"
        intervals += f", {without} without one" if without else ""
    yield f"With SME2 on, runs are {_range_text(ratios)} times as fast as with SME2 off ({basis}; {intervals})."


def _range_text(ordered: list[float]) -> str:
    return f"{ordered[0]:.2f}" if len(ordered) == 1 else f"{ordered[0]:.2f} to {ordered[-1]:.2f}"


@dataclass(frozen=True)
class CoverageRow(CellRow):
    """How much of what SME2 could run did run on SME in one cell; an emulated device has calls and no times."""

    query = "sme2_coverage"
    eligible_calls: Annotated[float, Calls("Eligible", unit="calls per run")]
    sme_calls: Annotated[float, Calls("On SME", "according to the operator names, SME2 or SME1", unit="calls per run")]
    name_share: Annotated[
        float | None,
        Percent("Share by name", "on SME2 or SME1; a lower bound while names leave calls undecided", unit="% of time"),
    ]
    proven_share: Annotated[
        float | None, Percent("Proven SME2", "by kernels; a dash where it is not proven", unit="% of time")
    ]
    sme2_calls: Annotated[
        float | None, Calls("SME2", "by kernels; a dash where it is not proven, as for SME1", unit="calls per run")
    ]
    sme1_calls: Annotated[float | None, Calls("SME1", "SME without SME2", unit="calls per run")]
    evidence: Annotated[
        str,
        Words(
            "Evidence",
            meaning="the weakest among the operators: counted, executed or selected kernels, names alone, or none",
            tone=lambda evidence: "flag" if evidence == "not proven" else "",
        ),
    ]
    executed_sme2_share: Annotated[
        float | None, Percent("SME2 kernels", "share of all samples, taken in separate sessions", unit="% of samples")
    ]
    executed_samples: Annotated[int | None, Number("Samples")]


@dataclass(frozen=True)
class Fp16Row(Row):
    """An fp16 model with Fully Connected calls that stay plain F16 though SME2 is on."""

    query = "sme2_fp16"
    model: str
    calls: float
    plain_calls: float
    convolution_calls: float | None
    """Plain calls that are convolutions in the model; None if the export does not state it."""


@dataclass(frozen=True)
class LeftOutRow(Row):
    """An operator that SME2 could run and that did not use it."""

    query = "sme2_left_out"
    model: Annotated[str, Case("Model")]
    precision: Annotated[str, Words("Precision")]
    operator: Annotated[str, Name("Operator")]
    calls_per_run: Annotated[float, Calls("Calls")]
    share: Annotated[
        float | None,
        Percent(
            "Share", "of the time of all operators that SME2 could run, on the device where it is largest", bar=True
        ),
    ]
    likely_reason: Annotated[str, Words("Likely reason (inference)", wraps=True)]


@dataclass(frozen=True)
class CellCoverageRow(CoverageRow):
    query = "cell_coverage"


def coverage_in_words(answers: Answers) -> Iterator[Text]:
    """Yield a line for each cell: how many of the eligible calls ran on SME, and what proves SME2."""
    yield from map(describe_coverage, answers.rows(CoverageRow))


def describe_coverage(row: CoverageRow) -> str:
    of_time = "" if row.name_share is None else f", {in_percent(row.name_share)} of their time"
    calls = f"{row.sme_calls:g} of {row.eligible_calls:g} eligible calls per run on SME by their names{of_time}"
    proven = "not proven"
    if row.proven_share is not None:
        proven = f"{in_percent(row.proven_share)} of their time, proven by {row.evidence} kernels"
    return f"{', '.join(series_conditions(row))}: {calls}; SME2: {proven}."


def plain_fp16_in_words(row: Fp16Row) -> Text:
    remark = f" {row.convolution_calls:.0f} of these are convolutions in the model." if row.convolution_calls else ""
    return (
        f"{row.plain_calls:.0f} of {row.calls:.0f} Fully Connected calls of ",
        Code(row.model),
        f" stay F16 in fp16 with SME2 on.{remark}",
    )


@dataclass(frozen=True)
class PairOperatorRow(PairRow):
    """An operator that SME2 could run, or over 5 %, with SME2 off and on; an emulated device has calls and no times."""

    query = "sme2_operators"
    operator: Annotated[str, Name("Operator")]
    """With its microkernel: `Fully Connected GEMM`."""
    data_types_off: Annotated[str | None, Words("Types off")]
    data_types_on: Annotated[str | None, Words("Types on")]
    calls_per_run: Annotated[float, Calls("Calls")]
    time_off_ms: Annotated[float | None, Milliseconds("SME2 off")]
    time_on_ms: Annotated[float | None, Milliseconds("SME2 on")]
    speedup: Annotated[float | None, Number("Speed-up", TIMES, digits=2)]
    saved_ms: Annotated[float | None, Signed("Saved", "ms", digits=3)]
    below_resolution: bool
    share_on: float | None
    is_eligible: bool
    likely_reason: str | None

    @property
    def did_not_gain(self) -> bool:
        """Whether SME2 could run it, and it has a speed-up below MIN_SPEEDUP."""
        return self.is_eligible and self.speedup is not None and self.speedup < MIN_SPEEDUP

    def speedup_cell(self, cell: Cell) -> Cell:
        if self.below_resolution:
            return NOTHING
        return toned(cell, "flag") if self.did_not_gain else cell

    def time_off_ms_cell(self, cell: Cell) -> Cell:
        return NOTHING if self.below_resolution else cell

    time_on_ms_cell = saved_ms_cell = time_off_ms_cell


@dataclass(frozen=True)
class KernelRow(PairRow):
    """A kernel with SME2 off and on: calls per run if counted, samples if executed, lines of the log if selected."""

    query = "sme2_kernels"
    evidence: str
    kernel: Annotated[str, Name("Kernel")]
    isa_family: Annotated[str, Words("Family")]
    weight_off: Annotated[int, Number("SME2 off")]
    weight_sme1: Annotated[int, Number("SME1", only_with="weight_sme1")]
    weight_on: Annotated[int, Number("SME2 on")]
