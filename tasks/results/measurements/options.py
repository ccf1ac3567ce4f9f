"""What a set of run-time options saves: each beside the default of the same program, runner, device and sweep."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from tasks.bundle.runtime import parse_runtime, without_options
from tasks.judge.comparison import SideComparison
from tasks.judge.figures import LATENCY, METRICS, percent_change
from tasks.results.cells import Case, Variant
from tasks.results.reader import Answers
from tasks.results.table import Name, Number, Row, Words
from tasks.results.upgrade import compare_figures, figure_in_words, is_large

_LOAD, _PEAK = METRICS["load time"], METRICS["peak memory"]
# A part of the peak memory has its limits, and the first of two starts those of a load.
_ANONYMOUS, _FIRST = replace(_PEAK, name="anonymous memory"), replace(_LOAD, name="load time of the first start")


@dataclass(frozen=True)
class OptionCellRow(Row):
    """The figures of the sessions of a cell, with or without run-time options; nanoseconds and bytes."""

    query = "run_options"
    cell: str
    model: str
    device: str
    precision: str
    variant: str
    threads: int | None
    emulated: bool | None
    pte_sha256: str | None
    runner_sha256: str | None
    times_ns: list[float]
    loads_ns: list[float]
    first_loads_ns: list[float]
    """Of the first of two starts, with a cache on disk."""
    peaks_bytes: list[float]
    anonymous_bytes: list[float]
    """After the first run, as `file_bytes`."""
    file_bytes: list[float]

    @property
    def default_key(self) -> tuple[object, ...]:
        """What a cell has in common with the default that it is compared with."""
        conditions = (self.device, self.precision, self.variant, self.threads, self.pte_sha256, self.runner_sha256)
        return (without_options(self.model), *conditions)


@dataclass(frozen=True)
class OptionRow(Row):
    """A set of options beside the default; texts are empty where a figure is unknown."""

    model: Annotated[str, Case("Model")]
    device: Annotated[str, Words("Device")]
    precision: Annotated[str, Words("Precision")]
    variant: Annotated[str, Variant("Variant")]
    threads: Annotated[int | None, Number("Threads")]
    options: Annotated[str, Name("Options")]
    saves: Annotated[str, Words("Saves", wraps=True)]
    costs: Annotated[str, Words("Costs", wraps=True)]
    time: Annotated[str, Words("Time", wraps=True)]
    load: Annotated[str, Words("Load", wraps=True, meaning="with a cache on disk, that of the second start")]
    first_load: Annotated[str, Words("First load", only_with="first_load", meaning="the start that writes the cache")]
    peak: Annotated[str, Words("Peak memory", wraps=True)]
    anonymous: Annotated[
        str, Words("Anonymous memory", wraps=True, meaning="after the first run, without pages of mapped files")
    ]
    of_files: Annotated[
        str, Words("Mapped files", wraps=True, meaning="their resident pages, which the system can drop and read again")
    ]


def read_options(answers: Answers) -> list[OptionRow]:
    """Return each set of options of the sweep beside its default; none without a default of the same content."""
    cells = answers.rows(OptionCellRow)
    defaults = {cell.default_key: cell for cell in cells if not parse_runtime(cell.model).options}
    with_options = [cell for cell in cells if parse_runtime(cell.model).options]
    return [_row(defaults[cell.default_key], cell) for cell in with_options if cell.default_key in defaults]


def _row(default: OptionCellRow, cell: OptionCellRow) -> OptionRow:
    has_times = not cell.emulated
    time, load = (
        compare_figures(metric, a, b) if has_times else None
        for metric, a, b in ((LATENCY, default.times_ns, cell.times_ns), (_LOAD, default.loads_ns, cell.loads_ns))
    )
    peak = compare_figures(_PEAK, default.peaks_bytes, cell.peaks_bytes)
    anonymous = compare_figures(_ANONYMOUS, default.anonymous_bytes, cell.anonymous_bytes)
    of_files = compare_figures(_PEAK, default.file_bytes, cell.file_bytes)
    first = compare_figures(_FIRST, default.loads_ns, cell.first_loads_ns) if has_times else None
    compared = ((LATENCY, time), (_LOAD, load), (_FIRST, first), (_PEAK, peak), (_ANONYMOUS, anonymous))
    changes = [
        (f"{metric.name} {_percent(each)}", each) for metric, each in compared if each and is_large(metric, each)
    ]
    return OptionRow(
        model=default.model,
        device=cell.device,
        precision=cell.precision,
        variant=cell.variant,
        threads=cell.threads,
        options=",".join("=".join(option) for option in parse_runtime(cell.model).options),
        saves="; ".join(_proved(changes, is_saving=True)),
        costs="; ".join(_proved(changes, is_saving=False)),
        time=figure_in_words(LATENCY, time),
        load=figure_in_words(_LOAD, load),
        first_load=figure_in_words(_FIRST, first),
        peak=figure_in_words(_PEAK, peak),
        anonymous=figure_in_words(_ANONYMOUS, anonymous),
        of_files=figure_in_words(_PEAK, of_files),
    )


def _proved(changes: Sequence[tuple[str, SideComparison]], *, is_saving: bool) -> Iterator[str]:
    """Yield the changes whose whole interval is on one side of 1."""
    for text, each in changes:
        if each.answer == "different" and ((each.high or 1) < 1 if is_saving else (each.low or 1) > 1):
            yield text


def _percent(compared: SideComparison) -> str:
    return percent_change(compared.ratio or 1, compared.low, compared.high)
