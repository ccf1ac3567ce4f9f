"""`etfarm verdicts`: what a night changed, as a table, for a pull request, or for other programs."""

import json
from dataclasses import replace
from datetime import date
from typing import Annotated, Literal

import typer

from devices.errors import InputError
from flows.cli.options import DEFAULT_DATA_DIR, DataDirOption, OutputsOption, WarehouseOption, WideOption
from flows.terminal import show, show_pieces
from tasks.store.workspace import Workspace

app = typer.Typer(rich_markup_mode=None)
_FormatOption = Annotated[
    Literal["table", "csv", "json", "markdown", "bencher", "github-action-benchmark", "pytorch"],
    typer.Option(
        "--format",
        help="Output format; the last three are the night's times for other programs: Bencher, "
        "github-action-benchmark (customSmallerIsBetter), and PyTorch's benchmark database.",
    ),
]


@app.command(epilog="Example: etfarm verdicts 2026-11-02 --output night.md --fail-on regression")
def verdicts(
    night: Annotated[str | None, typer.Argument(help="Night, such as 2026-11-02; the newest if omitted.")] = None,
    fail_on: Annotated[
        Literal["regression", "suspected", "device", "never"], typer.Option(help="Exit with 1 on this verdict.")
    ] = "never",
    week: Annotated[
        bool, typer.Option("--week", help="What happened to incidents in the 7 days up to the night, with decisions.")
    ] = False,
    output: OutputsOption = None,
    format: _FormatOption = "table",
    wide: WideOption = False,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    warehouse: WarehouseOption = None,
) -> None:
    """Show what a night changed, each series against earlier nights.

    With --fail-on, exits with 1 on such a verdict (FAIL; `suspected` includes regressions), and with 3 if there is none
    but a series failed, or nothing can be judged (INCOMPLETE).
    """
    from flows.cli.comparison_output import ComparisonOutput
    from flows.warehouse.readable import ask_warehouse, warehouse_reader
    from tasks.results.devices import noise_lines
    from tasks.results.incidents import open_incidents, read_incidents
    from tasks.results.night import night_comparison, night_data, night_gate
    from tasks.results.verdicts import failed_lines, read_night

    workspace = Workspace(data_dir, warehouse)
    if week:
        if output or fail_on != "never":
            raise InputError("--week prints a report; leave --output and --fail-on out")
        _show_week(workspace, night, format)
        return
    destination = ComparisonOutput(format, output or (), workspace, wide)
    destination.check()
    with warehouse_reader(workspace) as reader:
        judged_night, rows = read_night(reader, night)
        incidents = read_incidents(reader)
        noise = noise_lines(reader, night=judged_night)
    if format in ("bencher", "github-action-benchmark", "pytorch"):
        from tasks.pages.benchmarks import benchmarks

        text, left_out = benchmarks(ask_warehouse("night_figures", workspace, night=judged_night), format)
        show_pieces([text])
        if left_out:
            show(left_out, err=True)
    of_night = night_comparison(judged_night, rows)
    lines = [row.line for row in open_incidents(incidents)]
    document = night_data(judged_night, of_night.headline, rows, incidents)
    alone = failed_lines([row for row in rows if row.incident_id is None])
    gate = night_gate(of_night, date.fromisoformat(judged_night), rows, fail_on)
    raise typer.Exit(destination.show(replace(of_night, remarks=[*lines, *alone, *noise], document=document), gate))


def _show_week(workspace: Workspace, night: str | None, form: str) -> None:
    """Print the triage report of the week up to a night, or up to today; raises InputError for other formats."""
    from flows.warehouse.readable import warehouse_reader
    from tasks.pages.markdown import inline
    from tasks.results.glances.week import read_week
    from tasks.results.verdicts import read_night

    if form not in ("table", "markdown", "json"):
        raise InputError("--week has the formats table, markdown and json")
    with warehouse_reader(workspace) as reader:
        newest = date.fromisoformat(read_night(reader, night)[0])
        report = read_week(reader, newest, newest if night else date.today())
    if form == "json":
        show_pieces([json.dumps(report.data(), indent=1), "\n"])
    else:
        show(*(map(inline, report.lines) if form == "markdown" else report.lines))
