"""`etfarm sweep`: run a sweep with progress bars on the terminal, then print the times."""

import os
from datetime import date, datetime
from importlib.resources import files
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
    from flows.verdicts import FailingVerdict
    from tasks.measure.spec import SweepSpec

app = typer.Typer(rich_markup_mode=None)
# Verdicts that the terminal does not name; the report does.
_QUIET = {"no change", "insufficient data"}


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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be measured where and how long; start nothing.")
    ] = False,
) -> None:
    """Run a sweep and write its report; resumes where it stopped."""
    from tasks.measure.night import night_or_today, parse_night
    from tasks.measure.spec import read_sweep

    spec = read_sweep(file)
    night_date = night_or_today(parse_night(night), date.today()) if night is not None else None
    if dry_run:
        from flows.cli.measure.dry_run import dry_run as planned_of
        from flows.cli.measure.dry_run import lines_of

        store = opened_store(bundles, var)
        planned = planned_of(spec, inventory, night_date or date.today(), again, store, var, warehouse)
        show(*lines_of(spec, planned, datetime.now()))
        raise typer.Exit(0 if any(not each.why_not for each in planned) else 1)
    if "PREFECT_API_URL" not in os.environ:
        _end_if_complete(spec, inventory, night_date or date.today(), again, fail_on, var, bundles, warehouse)
    from flows.cli.prefect_run import announce, run_with_server

    announce(f"sweep {spec.name}", "sweep", var)
    from flows.choose import choose_devices
    from flows.server.embedded import exit_at_once
    from flows.server.states import data_of
    from flows.sweep import sweep as sweep_flow

    choose_devices(spec, str(inventory))
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
    }
    state, note, is_server_lost = run_with_server(sweep_flow, parameters, var, "sweep")
    end = cast("SweepEnd", data_of(state))
    _print_end(end.sweep_id, "; ".join(filter(None, [end.message, note])), var, warehouse)
    code = 1 if state.is_failed() else 0
    if is_server_lost:
        exit_at_once(code)
    raise typer.Exit(code)


def _end_if_complete(
    spec: "SweepSpec",
    inventory: Path,
    night: date,
    again: bool,
    fail_on: "FailingVerdict",
    var: Path,
    bundles: str | None,
    warehouse: Path | None,
) -> None:
    """End without a Prefect server, which takes longer than all the rest, if nothing is left to measure."""
    from flows.choose import choose_devices
    from flows.nothing_left import ending_if_complete
    from tasks.measure.night import sweep_night
    from tasks.store.var import Var

    store, chosen = opened_store(bundles, var), choose_devices(spec, str(inventory))
    sweep = sweep_night(spec.name, night, store.sweep_ids(), again=again)
    if ending := ending_if_complete(spec, sweep, chosen, store, Var(var.absolute()), warehouse, fail_on):
        show(f"etfarm: sweep {spec.name}: nothing is left to measure; results are in {var}", err=True)
        _print_end(sweep.sweep_id, ending.message, var, warehouse)
        raise typer.Exit(1 if ending.is_bad else 0)


def _print_end(sweep_id: str, message: str, var: Path, warehouse: Path | None) -> None:
    _print_times(sweep_id, var, warehouse)
    _print_verdicts(sweep_id, var, warehouse)
    show(message)


def _print_verdicts(sweep_id: str, var: Path, warehouse: Path | None) -> None:
    from flows.verdicts import line_of, noise_lines, verdicts_of

    for row in verdicts_of(sweep_id, var, warehouse):
        if row.verdict not in _QUIET:
            show(line_of(row))
    for line in noise_lines(sweep_id, var, warehouse):
        show(line)


def _print_times(sweep_id: str, var: Path, warehouse: Path | None) -> None:
    from flows.cli.table import table_lines
    from flows.warehouse.publish import readable_warehouse
    from sql.warehouse import open_read_only
    from tasks.analyse.report.text import spread

    query = files("sql").joinpath("queries/times.sql").read_text(encoding="utf-8")
    with readable_warehouse(var, warehouse) as readable, open_read_only(readable) as connection:
        answer = connection.execute(query, {"sweep_id": sweep_id})
        columns, rows = [column[0] for column in answer.description or []], answer.fetchall()
    rows = [(*row[:-2], spread(row[-2] or []) or None, row[-1]) for row in rows]
    if not any(row[-1] for row in rows):  # every name has one content
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    show_pieces([*table_lines(columns, [rows]), "\n"])
