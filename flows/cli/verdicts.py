"""`etfarm verdicts`: what a night changed, for people, for pull requests and for CI."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from flows.cli.options import DEFAULT_VAR, VarOption, WarehouseOption

if TYPE_CHECKING:
    from tasks.judge.compare.outcome import Line
    from tasks.pages.explanation import Fact
    from tasks.results.reader import Reader
    from tasks.results.verdicts import Verdict

app = typer.Typer(rich_markup_mode=None)
_WORDS = {
    "regression": "slower",
    "improvement": "faster",
    "no change": "same",
    "device slower": "device slower",
    "device faster": "device faster",
    "inaccurate": "inaccurate",
    "failed": "failed",
    "suspected": "suspected",
}


@app.command(epilog="Example: etfarm verdicts 2026-11-02 --output night.md --fail-on regression")
def verdicts(
    night: Annotated[str | None, typer.Argument(help="Night, such as 2026-11-02; the newest if omitted.")] = None,
    fail_on: Annotated[
        Literal["regression", "suspected", "device", "never"], typer.Option(help="Exit with 1 on this verdict.")
    ] = "never",
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write, may be repeated: .md for a pull request, .json, .xml (JUnit), .svg (badge).",
        ),
    ] = None,
    format: Annotated[
        Literal["table", "csv", "json", "markdown", "bencher", "github-action-benchmark", "pytorch"],
        typer.Option(
            "--format",
            help="Output format; the last three are the night's times for other programs: Bencher, "
            "github-action-benchmark (customSmallerIsBetter), and PyTorch's benchmark database.",
        ),
    ] = "table",
    var: VarOption = DEFAULT_VAR,
    warehouse: WarehouseOption = None,
) -> None:
    """Show what a night changed: each series against the nights before it, the answer first.

    Exits with 1 on a verdict that --fail-on lists: `suspected` includes regressions. A series that `failed` counts for
    each of them, since its change is unknown.
    """
    from flows.cli.compare import explained, print_outcome
    from flows.cli.outputs import check_outputs, write_outputs
    from flows.terminal import show
    from tasks.judge.compare.outcome import Outcome
    from tasks.judge.metrics import LATENCY
    from tasks.pages.explain import explain_verdict
    from tasks.results.verdicts import failed_lines, fails, headline

    check_outputs(output or ())
    found, rows = verdicts_of_night(night, var, warehouse)
    lines, others = list(_lines(rows)), list(_others(rows))
    against, why = "the nights before", failed_lines(rows)
    outcome = Outcome(against, f"night {found}", lines, 0.0, why, others, stated=headline(rows))

    def explain(reader: "Reader", line: "Line") -> "Sequence[Fact]":
        judged = next(
            row for row in rows if (row.cell, row.device, row.metric) == (line.b.cell, line.device, LATENCY.name)
        )
        return explain_verdict(reader, judged, rows)

    outcome = explained(outcome, format, output or (), var, warehouse, explain)
    if format in ("bencher", "github-action-benchmark", "pytorch"):
        _print_benchmarks(found, format, var, warehouse)
        write_outputs(outcome, output or ())
    else:
        print_outcome(outcome, format, output or ())
    unmeasured = [row for row in rows if row.verdict == "failed" and fail_on != "never"]
    stated = fails([*rows], fail_on)
    if stated or unmeasured:
        counts = f"{len(stated)} with this verdict, {len(unmeasured)} failed, of {len(rows)}"
        show(f"etfarm: --fail-on {fail_on}: {counts}", err=True)
        raise typer.Exit(1)


def _print_benchmarks(
    night: str, form: Literal["bencher", "github-action-benchmark", "pytorch"], var: Path, warehouse: Path | None
) -> None:
    from flows.cli.benchmarks import benchmarks
    from flows.terminal import show, show_pieces
    from flows.warehouse.publish import ask_warehouse

    text, left_out = benchmarks(ask_warehouse("figures_of_night", var, warehouse, night=night), form)
    show_pieces([text])
    if left_out:
        show(left_out, err=True)


def verdicts_of_night(night: str | None, var: Path, warehouse: Path | None) -> tuple[str, "list[Verdict]"]:
    """Return a night, without one the newest, and its verdicts; raises InputError if it was not judged."""
    from devices.errors import InputError
    from devices.suggest import did_you_mean
    from flows.warehouse.readable import readable_warehouse
    from tasks.results.reader import open_reader
    from tasks.results.series import NightRow
    from tasks.results.verdicts import read_verdicts

    with readable_warehouse(var, warehouse) as file, open_reader(file) as reader:
        nights = {str(row.night): row.night for row in reader.rows(NightRow)}
        if not nights:
            raise InputError("no night is judged yet; measure one with `etfarm sweep`")
        wanted = night or next(iter(nights))
        if wanted not in nights:
            raise InputError(f"`{wanted}` is not a judged night{did_you_mean(wanted, nights)}")
        return wanted, read_verdicts(reader, [nights[wanted]])


def _lines(rows: "Sequence[Verdict]") -> "Iterator[Line]":
    """Yield what is stated about the latency of each series."""
    from tasks.judge.compare.outcome import FAILED, Beside, Line
    from tasks.judge.comparison import Comparison
    from tasks.judge.metrics import LATENCY

    for row in rows:
        if row.metric != LATENCY.name:
            continue
        before, after = (None if value is None else value / 1e6 for value in (row.baseline_value, row.value))
        figures = (0, row.sessions, before, after, row.ratio, row.low, row.high)
        word = _WORDS.get(row.verdict, "unknown")
        answer: Literal["different", "same", "unknown"] = (
            "same" if word == "same" else "unknown" if word in ("unknown", FAILED) else "different"
        )
        yield Line(
            row.model,
            row.device,
            row.precision,
            row.variant,
            str(row.threads),
            Comparison(*figures, answer, None, None),
            word,
            Beside(),
            Beside(sessions=row.sessions, cell=row.cell),
            cause=row.cause,
            differs=row.changed or "",
            is_regression=row.verdict == "regression",
            stated=f"{row.verdict}: {row.reason}",
        )


def _others(rows: "Sequence[Verdict]") -> Iterator[str]:
    from tasks.judge.metrics import LATENCY

    yield from (row.line for row in rows if row.metric != LATENCY.name)
