"""A night in the formats of other programs: Bencher, github-action-benchmark, and PyTorch's benchmark database.

Times are those of cells and sessions, as in reports; an interval is the 95 % interval of the median of sessions.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from devices.untrusted import sanitize_line
from tasks.bundle.robust_statistics import median_interval
from tasks.results.text import numbered

Benchmarks = Literal["bencher", "github-action-benchmark", "pytorch"]
_MAX_NAME_CHARS = 1024  # of a benchmark's name at Bencher


@dataclass(frozen=True)
class NightFigure:
    """The time of a series on a device in a night, a row of `night_figures` (sql/queries).

    `times_ms` are those of its sessions; `left_out` is why it is not a result, None if it is.
    """

    model: str
    precision: str
    variant: str
    threads: int
    device: str
    night: Any
    sweep_id: str
    cell: str
    time_ms: float
    times_ms: list[float]
    backend: str | None
    executorch_version: str | None
    device_model: str | None
    soc: str | None
    left_out: str | None

    @property
    def interval_ms(self) -> tuple[float, float] | None:
        """The 95 % interval; None below 6 sessions."""
        return median_interval(self.times_ms)

    @property
    def name(self) -> str:
        return f"{self.model} {self.precision} {self.variant} t{self.threads} on {self.device}"


def benchmarks(rows: Sequence[tuple[Any, ...]], form: Benchmarks) -> tuple[str, str]:
    """Return JSON in a format from the rows of `night_figures`, and what is left out as text (empty: nothing)."""
    figures = [NightFigure(*row) for row in rows]
    real = [figure for figure in figures if figure.left_out is None]
    writers: dict[Benchmarks, Callable[[Sequence[NightFigure]], Any]] = {
        "bencher": _bencher,
        "github-action-benchmark": _github_action,
        "pytorch": _pytorch,
    }
    out = Counter(figure.left_out for figure in figures if figure.left_out)
    note = f"left out, because not results: {', '.join(f'{count} {why}' for why, count in out.items())}" if out else ""
    return json.dumps(writers[form](real), indent=1) + "\n", note


def _names(figures: Sequence[NightFigure]) -> list[str]:
    """Return a name for each figure, cut to 1024 characters; figures of equal names get the ids of their cells."""
    counts = Counter(figure.name for figure in figures)
    names = [each.name if counts[each.name] == 1 else f"{each.name} ({each.cell})" for each in figures]
    return [sanitize_line(name)[:_MAX_NAME_CHARS] for name in names]


def _bencher(figures: Sequence[NightFigure]) -> dict[str, Any]:
    """Return the Bencher Metric Format: nanoseconds, as its built-in measure `latency` has."""
    report = {}
    for name, figure in zip(_names(figures), figures, strict=True):
        low, high = figure.interval_ms or (None, None)
        times_ms = {"value": figure.time_ms, "lower_value": low, "upper_value": high}
        report[name] = {"latency": {key: 1e6 * ms for key, ms in times_ms.items() if ms is not None}}
    return report


def _github_action(figures: Sequence[NightFigure]) -> list[dict[str, Any]]:
    """Return entries of the custom format `customSmallerIsBetter`, in milliseconds."""
    entries: list[dict[str, Any]] = []
    for name, figure in zip(_names(figures), figures, strict=True):
        extra = f"{numbered(len(figure.times_ms), 'session')}, cell {figure.cell}"
        entries.append({"name": name, "unit": "ms", "value": figure.time_ms, "extra": extra})
        if interval := figure.interval_ms:
            entries[-1]["range"] = f"{interval[0]:.6g} to {interval[1]:.6g} (95 % interval)"
    return entries


def _pytorch(figures: Sequence[NightFigure]) -> list[dict[str, Any]]:
    """Return records of the table `oss_ci_benchmark_v3`: the times of sessions in ms; `extra_info` has only texts."""
    records = []
    for figure in figures:
        extra = {"time_ms": f"{figure.time_ms:.9g}"}
        if interval := figure.interval_ms:
            extra |= {"low_ms": f"{interval[0]:.9g}", "high_ms": f"{interval[1]:.9g}"}
        about = {name: str(getattr(figure, name)) for name in ("variant", "threads", "night", "sweep_id", "cell")}
        record = {
            "benchmark": {
                "name": "ExecuTorch",
                "mode": "inference",
                "dtype": figure.precision,
                "extra_info": {"farm": "etfarm", **about},
            },
            "model": {"name": figure.model, "type": "etfarm", "backend": figure.backend or ""},
            "metric": {
                "name": "avg_inference_latency(ms)",
                "benchmark_values": figure.times_ms,
                "target_value": 0.0,
                "extra_info": extra,
            },
            "runners": [{"name": figure.device, "type": figure.device_model or "", "cpu_info": figure.soc or ""}],
            "dependencies": {"executorch": {"repo": "pytorch/executorch", "version": figure.executorch_version or ""}},
        }
        records.append(record)
    return records
