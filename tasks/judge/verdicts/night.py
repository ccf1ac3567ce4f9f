"""What a series did in one night, whether it can be compared, and the verdict on it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any, Literal

from tasks.bundle.robust_statistics import MIN_SESSIONS
from tasks.judge.figures import DeviceVerdict, Metric

if TYPE_CHECKING:
    from tasks.judge.comparison import SideComparison  # slow to import, and a page needs only the rules

Verdict = Literal[
    "regression",
    "suspected",
    "improvement",
    "suspected improvement",
    DeviceVerdict,
    "unclear",
    "no change",
    "inaccurate",
    "failed",
    "new",
    "insufficient data",
    "invalid environment",
]

_REFERENCES = {"snr_host_db": "same program on the host", "snr_db": "same precision", "snr_fp32_db": "fp32"}
"""What each SNR of a cell was measured against."""


@dataclass(frozen=True)
class Night:
    night: str
    """ISO date."""
    figures: tuple[float, ...]
    """One per session that counts, for example its time."""
    frequencies_mhz: tuple[float | None, ...] = ()
    """The clock of the fastest core after each session, None where the device does not report it; empty if unknown."""
    invalid_sessions: int = 0
    """Sessions that ran outside the limits."""
    failed_sessions: int = 0
    failures: tuple[str, ...] = ()
    """The different reason codes of the sessions that failed."""
    failure: str = ""
    """The reason of the one that failed last, a sentence."""
    is_excluded: bool = False
    starts_baseline: bool = False
    """Earlier nights are not compared with it: the user reset the baseline, or times are of other runs of a session."""
    is_reset: bool = False
    """Whether the user reset the baseline: a change that begins in it is stated, and accepted."""
    accepted: tuple[tuple[date, date], ...] = ()
    """Onset and day of each acceptance of before this night: a step that one accepts becomes the baseline."""
    content: str = ""
    """Equal for two nights if program, inputs, runner and executions are (macro `_content`); empty if unknown."""
    same_night: "SideComparison | None" = None
    """The content of an earlier night (A) and this night's (B), interleaved this night."""
    inaccuracy: Mapping[str, Any] | None = None
    """Why its figures do not count although it ran: figures of the view `_inaccurate_cell`; None if accurate."""
    comparison: str | None = None
    """The id of that comparison."""
    same_night_content: str = ""
    """The content A; if known, the comparison counts only if it is that of the last good night. Empty if unknown."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """What is no longer stored of earlier nights (`.pte file` or `runner`), by night."""


@dataclass(frozen=True)
class NightVerdict:
    """The verdict on one night. Numbers are None where there is nothing to compare with."""

    night: str
    verdict: Verdict
    reason: str
    baseline_value: float | None = None
    """The median of the baseline nights, in the unit of the metric; within states, with as many sessions in each."""
    ratio: float | None = None
    """This night's figure over the baseline's; None if that is 0."""
    low: float | None = None
    """The 95 % interval of that ratio; it includes how much the series moves from night to night."""
    high: float | None = None
    z: float | None = None
    """Robust z against the baseline nights."""
    noise_floor: float | None = None
    """A fraction: 19 of 20 nights without a change move the ratio by less."""
    baseline_nights: int = 0
    baseline_from: str | None = None
    baseline_to: str | None = None
    """The last good night: the newest of the baseline that does not share this night's shift."""
    since: str | None = None
    """The first night of the step that the night belongs to; None outside a step."""
    decided_on: str | None = None
    """The night whose comparison gave these figures, measured interleaved; None if nights did."""
    comparison: str | None = None
    """The id of that comparison."""
    missing: str | None = None
    """What is no longer stored, so that a suspected night cannot be compared with the last good one."""


def why_incomparable(night: Night, metric: Metric) -> tuple[Verdict, str] | None:
    """Return the verdict on a night that cannot be compared and its reason; None if it can be compared."""
    valid, invalid = len(night.figures), night.invalid_sessions
    if night.is_excluded:
        return "insufficient data", "excluded by the user"
    if night.inaccuracy and not metric.is_of_outputs:
        return "inaccurate", describe_inaccuracy(night.inaccuracy)
    if not valid and night.failures and night.failed_sessions >= invalid:
        counts = f"{night.failed_sessions} of {night.failed_sessions + invalid} sessions failed"
        return "failed", f"{counts} ({', '.join(night.failures)}): {night.failure}"
    if invalid > valid and not (metric.is_exact and valid):
        return "invalid environment", f"{invalid} of {valid + invalid} sessions ran outside the limits"
    if valid < metric.min_sessions:
        return "insufficient data", too_few_sessions(valid, metric)
    if not all(metric.has_position(figure) for figure in night.figures):
        return "insufficient data", "a figure is 0 or less, or not finite, so there is no ratio"
    return None


def describe_inaccuracy(figures: Mapping[str, Any]) -> str:
    """Return what is wrong with the outputs of a cell: each figure of `_inaccurate_cell` beyond its limit."""
    beyond = [
        f"SNR {snr_db:.1f} dB against {reference}, limit {min_snr_db:.0f} dB"
        for name, reference in _REFERENCES.items()
        if _is_below(snr_db := figures[name], min_snr_db := figures[f"min_{name}"])
    ]
    if count := figures["nonfinite_mismatches"]:
        beyond.append(f"NaN or infinite on one side only, elements: {count}")
    if below := figures["samples_below"]:
        worst = f"the worst is {figures['worst_sample']}"
        beyond.append(f"{below} of {figures['samples']} samples are below their limit, {worst}")
    score, min_score = figures["score"], figures["min_score"]
    if min_score is not None and (score is None or score < min_score):
        text = "unknown score" if score is None else f"score {score:.4g}"
        beyond.append(f"{text} of the samples, limit {min_score:g}")
    if figures["first_difference"] is not None:
        beyond.append(f"token {figures['first_difference']} differs")
    if _is_below(top1 := figures["judged_top1"], min_top1 := figures["min_top1"]):
        beyond.append(f"top-1 {100 * top1:.1f} %, limit {100 * min_top1:.1f} %")
    sessions = f"{figures['inaccurate_sessions']} of {figures['sessions']} sessions"
    cause = f"; {figures['cause']}" if figures["cause"] else ""
    return f"outputs of {sessions} are too far from their references ({', '.join(beyond)}){cause}"


def _is_below(figure: float | None, limit: float | None) -> bool:
    return figure is not None and limit is not None and figure < limit


def sessions_for_verdict(metric: Metric) -> int:
    """Return how many sessions a night needs for a verdict."""
    return metric.min_sessions if metric.confirms_itself else MIN_SESSIONS


def too_few_sessions(sessions: int, metric: Metric) -> str:
    return f"too few sessions: {sessions} of at least {sessions_for_verdict(metric)}"
