"""`etfarm sweep`: run a sweep with progress bars on the terminal, then print the times."""

import os
from contextlib import nullcontext
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn, cast

import typer

from flows.cli.options import (
    DEFAULT_DATA_DIR,
    DEFAULT_INVENTORY,
    BundlesOption,
    DataDirOption,
    InventoryOption,
    TextOrJsonOption,
    WarehouseOption,
    WideOption,
    is_passed,
)
from flows.terminal import show, show_pieces
from tasks.store.workspace import Workspace

if TYPE_CHECKING:
    from flows.device_selection import SweepRequest
    from flows.sweep_result import SweepEnd

app = typer.Typer(rich_markup_mode=None)


_FailOnOption = Annotated[
    Literal["regression", "suspected", "device", "never"],
    typer.Option(
        "--fail-on",
        help="Verdict on a series that makes the exit code 1; suspected and device (one that got slower) include "
        "regression.",
    ),
]
_NightOption = Annotated[
    str | None,
    typer.Option(
        "--night",
        help="Night that the results belong to, such as 2026-11-01; today if omitted. With --model, stored nights that "
        "lack it, such as 2026-11-01..2026-11-07.",
    ),
]
_PriorityOption = Annotated[
    int | None,
    typer.Option(
        "--priority",
        min=-100,
        max=100,
        help="Priority instead of the file's: the highest gets a device first, after the running session.",
    ),
]
_AgainOption = Annotated[bool, typer.Option("--again", help="Measure again what was already measured that night.")]
_DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Print what would be measured where and how long; start nothing.")
]


@app.command(epilog="Example: etfarm sweep sweep.yaml")
def sweep(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="Sweep file.")],
    inventory: InventoryOption = DEFAULT_INVENTORY,
    again: _AgainOption = False,
    night: _NightOption = None,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    bundles: BundlesOption = None,
    warehouse: WarehouseOption = None,
    fail_on: _FailOnOption = "regression",
    priority: _PriorityOption = None,
    model: Annotated[list[str] | None, typer.Option(help="Only this model of the file; may be repeated.")] = None,
    precision: Annotated[list[str] | None, typer.Option(help="Only this precision; may be repeated.")] = None,
    variant: Annotated[list[str] | None, typer.Option(help="Only this variant; may be repeated.")] = None,
    delegate: Annotated[list[str] | None, typer.Option(help="Only this delegate; may be repeated.")] = None,
    device: Annotated[list[str] | None, typer.Option(help="Only on this device; may be repeated.")] = None,
    dry_run: _DryRunOption = False,
    format: TextOrJsonOption = "text",
    wide: WideOption = False,
) -> None:
    """Run a sweep and write its report; resumes where it stopped.

    With --model, --precision, --variant, --delegate or --device it measures a part; a later start of the whole sweep,
    the rest.
    """
    from flows.device_selection import SweepRequest, apply_filter, choose_devices, match_devices
    from tasks.measure.sweep_file import read_sweep
    from tasks.measure.sweep_filter import SweepFilter
    from tasks.measure.sweep_night import night_or_today, parse_night, sweep_night

    workspace = Workspace(data_dir.absolute(), warehouse, bundles)
    only = SweepFilter(
        models=model or [],
        precisions=precision or [],
        variants=variant or [],
        delegates=delegate or [],
        devices=device or [],
    )
    if night is not None and ".." in night:
        from flows.cli.backfill import request_backfill, run_backfill

        refused = {"--again": again, "--fail-on": is_passed(context, "fail_on")}
        request_later = request_backfill(file, night, only, str(inventory), workspace, refused)
        if priority is not None:
            request_later = request_later.with_priority(priority)
        run_backfill(request_later, format, dry_run=dry_run)
    night_date = night_or_today(parse_night(night), date.today()) if night is not None else None
    has_server = "PREFECT_API_URL" in os.environ  # then labs can be used, which only the flow checks
    select = match_devices if dry_run or has_server else choose_devices
    spec, selection = apply_filter(read_sweep(file), only, str(inventory), select)
    if dry_run or not has_server:
        named = sweep_night(spec.name, night_date or date.today(), workspace.store.sweep_ids(), again=again)
        request = SweepRequest(spec, named, selection, workspace, fail_on)
        if dry_run:
            _print_plan(request, format)
        _exit_if_complete(request, format, wide, data_dir)
    parameters = {
        "sweep_file": str(file),
        "inventory_file": str(inventory),
        "again": again,
        "night": night_date,
        "data_dir": str(data_dir),
        "bundles": bundles,
        "warehouse": str(warehouse) if warehouse else None,
        "fail_on": fail_on,
        "priority": priority,
        "only": only,
    }
    from flows.cli.prefect_run import run_with_server, set_up_run
    from tasks.measure.prepare import export_settings, start_exports

    set_up_run(f"sweep {spec.name}", "sweep", data_dir)
    if not has_server:
        start_exports(spec, export_settings(spec, workspace))  # while a Prefect server starts
    from flows.server.states import state_data
    from flows.sweep import sweep as sweep_flow

    if has_server:
        choose_devices(spec, str(inventory), only.devices)
    state = run_with_server(sweep_flow, parameters, workspace, "sweep")
    _print_end(cast("SweepEnd", state_data(state)), state.is_failed(), format, wide, workspace)


def _exit_if_complete(request: "SweepRequest", form: str, wide: bool, data_dir: Path) -> None:
    """If nothing is left to measure, print the result and exit, without the seconds that a Prefect server takes."""
    from flows.complete_sweep import result_if_complete

    if result := result_if_complete(request):
        show(f"etfarm: sweep {request.spec.name}: nothing is left to measure; results are in {data_dir}", err=True)
        _print_end(result.end, result.is_bad, form, wide, request.workspace)


def _print_end(end: "SweepEnd", is_bad: bool, form: str, wide: bool, workspace: Workspace) -> NoReturn:
    """Print the result of a sweep, and exit with 1 if it is bad, else 0."""
    from flows.cli.sweep_output import end_as_json, show_end
    from flows.warehouse.readable import open_once

    # A sweep without a session may be the first of its data folder, which has no snapshot then.
    with open_once(workspace) if end.is_recorded else nullcontext():
        if form == "json":
            show_pieces([end_as_json(end, int(is_bad), workspace)])
        else:
            show_end(end, workspace, wide=wide)
    raise typer.Exit(int(is_bad))


def _print_plan(request: "SweepRequest", form: str) -> NoReturn:
    """Print what the sweep would do, and exit: with 1 if it would measure on no device, else 0."""
    from flows.sweep_preview import preview_sweep

    preview = preview_sweep(request)
    from flows.cli.sweep_output import plan_as_json, plan_lines

    if form == "json":
        show_pieces([plan_as_json(preview)])
    else:
        show(*plan_lines(preview, datetime.now().astimezone()))
    raise typer.Exit(0 if preview.is_possible else 1)
