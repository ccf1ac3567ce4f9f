"""`etfarm bisect`: find the night and the input of a change."""

from datetime import date
from typing import TYPE_CHECKING, Annotated

import typer

from devices.errors import InputError
from flows.cli.options import (
    DEFAULT_DATA_DIR,
    DEFAULT_INVENTORY,
    BundlesOption,
    DataDirOption,
    InventoryOption,
    WarehouseOption,
    choose_device,
)
from flows.terminal import show
from tasks.store.workspace import Workspace

if TYPE_CHECKING:
    from devices.inventory import DeviceSpec

app = typer.Typer(rich_markup_mode=None)


@app.command(epilog="Example: etfarm bisect mobilenet_v2 --device pixel-1")
def bisect(
    series: Annotated[str, typer.Argument(help="Model as pages show it, or id of a series (at least 6 digits).")],
    device: Annotated[str | None, typer.Option("--device", help="Device with the change.")] = None,
    precision: Annotated[str | None, typer.Option("--precision", help="Precision of the series.")] = None,
    good: Annotated[
        str | None, typer.Option("--good", help="Night before the change; the last good one of the verdict if omitted.")
    ] = None,
    bad: Annotated[
        str | None, typer.Option("--bad", help="Night with the change; the newest with a verdict if omitted.")
    ] = None,
    executorch: Annotated[
        str | None,
        typer.Option(
            "--executorch",
            help="Releases such as 1.3.1..1.5.1: export the model, named as in a sweep file, with those between them.",
        ),
    ] = None,
    inventory: InventoryOption = DEFAULT_INVENTORY,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    bundles: BundlesOption = None,
    warehouse: WarehouseOption = None,
) -> None:
    """Find the night and the input of a change.

    Measures the stored models and runners of earlier nights again on the device, interleaved, and swaps model and
    runner alone. With --executorch, it searches releases of ExecuTorch instead: it exports the model with each and
    measures it with the farm's runner. Resumes where it stopped that day. Exits with 1 if both ends do not differ.
    """
    from flows.cli.prefect_run import run_with_server, set_up_run
    from flows.warehouse.readable import ask_warehouse
    from tasks.bundle.model_names import find_model, short_names
    from tasks.judge.bisect import MeasuredNight, SeriesOnDevice, find_bounds, find_series
    from tasks.measure.sweep_night import parse_night, sweep_night

    workspace = Workspace(data_dir.absolute(), warehouse, bundles)
    if executorch is not None:
        if good or bad:
            raise InputError("--good and --bad are nights; leave them out with --executorch")
        _bisect_versions(series, executorch, precision or "fp32", choose_device(inventory, device), workspace)
    sweep = sweep_night("bisect", date.today(), workspace.store.sweep_ids(), again=False)
    all_series = [SeriesOnDevice(*row) for row in ask_warehouse("bisect_series", workspace)]
    models = short_names(each.model for each in all_series)
    chosen = find_series(find_model(series, models) or series, {"device": device, "precision": precision}, all_series)
    spec = choose_device(inventory, chosen.device)
    selection = {"series_id": chosen.series_id, "device": chosen.device}
    nights = [MeasuredNight(*row) for row in ask_warehouse("bisect_nights", workspace, **selection)]
    first, contents = find_bounds(nights, parse_night(good) if good else None, parse_night(bad) if bad else None)
    set_up_run(f"bisect {chosen} from {first.night} to {contents[-1].night}", "bisection", data_dir)
    from flows.comparison.bisect import bisect as bisect_flow
    from flows.server.states import state_data

    parameters = {"series": chosen, "good": first, "contents": contents, "device": spec}
    parameters |= {"workspace": workspace, "sweep": sweep}
    result = state_data(run_with_server(bisect_flow, parameters, workspace, "bisection"))
    for line in [*result.steps, *result.conclusion()]:
        show(line)
    raise typer.Exit(0 if result.first_bad else 1)


def _bisect_versions(model: str, releases: str, precision: str, device: "DeviceSpec", workspace: Workspace) -> None:
    """Find the release whose export changed the time of a model; exits with 1 if none did."""
    from flows.cli.prefect_run import run_with_server, set_up_run
    from tasks.export.entry import parse_entry
    from tasks.export.recipes import recipe_name
    from tasks.measure.sweep_night import sweep_night
    from tasks.runner.executorch_versions import releases_between

    versions, entry, recipe = releases_between(releases), parse_entry(model), recipe_name(precision)
    if entry.pte:
        raise InputError(f"{model} is exported already, so that no release exports it; name its source")
    sweep = sweep_night("bisect", date.today(), workspace.store.sweep_ids(), again=False)
    set_up_run(f"bisect {model} {recipe} from {versions[0]} to {versions[-1]}", "bisection", workspace.root)
    from flows.comparison.bisect_versions import bisect_versions
    from flows.server.states import state_data

    parameters = {"model": entry, "precision": recipe, "versions": versions, "device": device}
    parameters |= {"workspace": workspace, "sweep": sweep}
    result = state_data(run_with_server(bisect_versions, parameters, workspace, "bisection"))
    for line in [*result.steps, *result.conclusion()]:
        show(line)
    raise typer.Exit(0 if result.first_changed else 1)
