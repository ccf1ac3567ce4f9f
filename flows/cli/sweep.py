"""`etfarm sweep`: run a sweep with progress bars on the terminal, then print the times."""

import os
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from flows.cli.options import (
    DEFAULT_INVENTORY,
    DEFAULT_VAR,
    BundlesOption,
    InventoryOption,
    VarOption,
    WarehouseOption,
    opened_store,
)
from flows.terminal import show, show_pieces

if TYPE_CHECKING:
    from flows.ending import SweepEnd
    from tasks.measure.only import Only
    from tasks.measure.spec import SweepSpec
    from tasks.results.verdicts import FailingVerdict

app = typer.Typer(rich_markup_mode=None)


@app.command(epilog="Example: etfarm sweep deployments/sweeps/smoke.yaml")
def sweep(
    file: Annotated[Path, typer.Argument(help="Sweep file: what to measure, and how often.")],
    inventory: InventoryOption = DEFAULT_INVENTORY,
    again: Annotated[
        bool, typer.Option("--again", help="Measure again, even what was already measured that night.")
    ] = False,
    night: Annotated[
        str | None,
        typer.Option("--night", help="Night that the results belong to, such as 2026-11-01; today if omitted."),
    ] = None,
    var: VarOption = DEFAULT_VAR,
    bundles: BundlesOption = None,
    warehouse: WarehouseOption = None,
    fail_on: Annotated[
        Literal["regression", "suspected", "device", "never"],
        typer.Option(
            "--fail-on",
            help="Verdict on a series that makes the exit code 1; suspected and device (one that got slower) include "
            "regression.",
        ),
    ] = "regression",
    priority: Annotated[
        int | None,
        typer.Option(
            "--priority",
            min=-100,
            max=100,
            help="Instead of the file's: the highest gets a device first, between two sessions of others.",
        ),
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(help="Measure only this model of the file; may be repeated.")
    ] = None,
    precision: Annotated[list[str] | None, typer.Option(help="Only this precision; may be repeated.")] = None,
    variant: Annotated[list[str] | None, typer.Option(help="Only this variant; may be repeated.")] = None,
    device: Annotated[list[str] | None, typer.Option(help="Only on this device; may be repeated.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be measured where and how long; start nothing.")
    ] = False,
    format: Annotated[Literal["text", "json"], typer.Option("--format", help="Output format.")] = "text",
) -> None:
    """Run a sweep and write its report; resumes where it stopped.

    With --model, --precision, --variant or --device it measures a part; a later start of the whole sweep, the rest.
    """
    from tasks.measure.night import night_or_today, parse_night
    from tasks.measure.only import Only
    from tasks.measure.spec import read_sweep

    only = Only(models=model or [], precisions=precision or [], variants=variant or [], devices=device or [])
    spec = only.of(read_sweep(file))
    night_date = night_or_today(parse_night(night), date.today()) if night is not None else None
    if dry_run:
        _print_plan(spec, only, inventory, night_date or date.today(), again, format, bundles, var, warehouse)
        return
    if "PREFECT_API_URL" not in os.environ:
        where = (inventory, var, bundles, warehouse)
        _end_if_complete(spec, only, night_date or date.today(), again, fail_on, format, *where)
    from flows.cli.prefect_run import announce, run_with_server

    announce(f"sweep {spec.name}", "sweep", var)
    from flows.choose import choose_devices
    from flows.server.embedded import exit_at_once
    from flows.server.states import data_of
    from flows.sweep import sweep as sweep_flow

    choose_devices(spec, str(inventory), only.devices)
    parameters = {
        "sweep_file": str(file),
        "inventory_file": str(inventory),
        "again": again,
        "night": night_date,
        "var": str(var),
        "bundles": bundles,
        "warehouse": str(warehouse) if warehouse else None,
        "fail_on": fail_on,
        "priority": priority,
        "only": only,
    }
    state, note, is_server_lost = run_with_server(sweep_flow, parameters, var, "sweep")
    end, code = cast("SweepEnd", data_of(state)), 1 if state.is_failed() else 0
    _print_end(end, code, note, format, var, warehouse)
    if is_server_lost:
        exit_at_once(code)
    raise typer.Exit(code)


def _end_if_complete(
    spec: "SweepSpec",
    only: "Only",
    night: date,
    again: bool,
    fail_on: "FailingVerdict",
    form: str,
    inventory: Path,
    var: Path,
    bundles: str | None,
    warehouse: Path | None,
) -> None:
    """End without a Prefect server, which takes longer than all the rest, if nothing is left to measure."""
    from flows.choose import choose_devices
    from flows.nothing_left import ending_if_complete
    from tasks.measure.night import sweep_night
    from tasks.store.var import Var

    store, chosen = opened_store(bundles, var), choose_devices(spec, str(inventory), only.devices)
    sweep = sweep_night(spec.name, night, store.sweep_ids(), again=again)
    if ending := ending_if_complete(spec, sweep, chosen, store, Var(var.absolute()), warehouse, fail_on):
        show(f"etfarm: sweep {spec.name}: nothing is left to measure; results are in {var}", err=True)
        code = 1 if ending.is_bad else 0
        _print_end(ending.end, code, None, form, var, warehouse)
        raise typer.Exit(code)


def _print_end(end: "SweepEnd", code: int, note: str | None, form: str, var: Path, warehouse: Path | None) -> None:
    from flows.cli.sweep_end import as_json, pieces_of

    show_pieces([as_json(end, code, var, warehouse)] if form == "json" else pieces_of(end, note, var, warehouse))


def _print_plan(
    spec: "SweepSpec",
    only: "Only",
    inventory: Path,
    night: date,
    again: bool,
    form: str,
    bundles: str | None,
    var: Path,
    warehouse: Path | None,
) -> None:
    """Print what the sweep would do; exit with 1 if it would measure on no device."""
    from flows.cli.dry_run import dry_run
    from flows.cli.dry_run_page import as_json, lines_of

    store = opened_store(bundles, var)
    plan = dry_run(spec, inventory, only.devices, night, again, store, var, warehouse)
    if form == "json":
        show_pieces([as_json(plan)])
    else:
        show(*lines_of(plan, datetime.now()))
    raise typer.Exit(0 if plan.is_possible else 1)
