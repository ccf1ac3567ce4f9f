"""`etfarm upgrade check`: measure a sweep with two versions of ExecuTorch, and say whether the upgrade is safe."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from flows.cli.options import (
    DEFAULT_DATA_DIR,
    DEFAULT_INVENTORY,
    BundlesOption,
    DataDirOption,
    InventoryOption,
    WarehouseOption,
    WideOption,
)
from flows.terminal import show, show_pieces, show_table, terminal_width
from tasks.store.workspace import Workspace

if TYPE_CHECKING:
    from tasks.measure.sweep_file import SweepSpec
    from tasks.results.changes import Comparison
    from tasks.results.upgrade import Upgrade

_EXAMPLE = "etfarm upgrade check deployments/sweeps/smoke.yaml --from 1.5.0 --to own"
app = typer.Typer(name="upgrade", help="Say whether an upgrade of ExecuTorch is safe.", epilog=f"Example: {_EXAMPLE}")
_SESSIONS = 8
_ToOption = Annotated[str, typer.Option("--to", help="Version to upgrade to, such as 1.5.1, or `own`.")]
_FromOption = Annotated[str, typer.Option("--from", help="Version to upgrade from; `own` is the farm's.")]
_SessionsOption = Annotated[int, typer.Option(min=5, max=1000, help="Sessions of each cell and version.")]
_DeviceOption = Annotated[list[str] | None, typer.Option(help="Only on this device; may be repeated.")]
_OutputOption = Annotated[
    list[Path] | None, typer.Option("--output", "-o", help="File to write, may be repeated: .html, .md or .json.")
]


@dataclass(frozen=True)
class UpgradeToCheck:
    """What is measured: the models of a sweep, with two versions of ExecuTorch."""

    spec: "SweepSpec"
    before: str
    after: str
    sessions: int
    inventory: Path
    devices: list[str]


@app.command(epilog=f"Example: {_EXAMPLE}")
def check(
    file: Annotated[Path, typer.Argument(help="Sweep file: its models, precisions, variants and devices.")],
    to: _ToOption,
    before: _FromOption = "own",
    sessions: _SessionsOption = _SESSIONS,
    device: _DeviceOption = None,
    output: _OutputOption = None,
    format: Annotated[Literal["text", "json", "markdown"], typer.Option(help="Output format.")] = "text",
    wide: WideOption = False,
    inventory: InventoryOption = DEFAULT_INVENTORY,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    bundles: BundlesOption = None,
    warehouse: WarehouseOption = None,
) -> None:
    """Measure the models of a sweep with two versions of ExecuTorch, in turns, and compare everything.

    Compared are the export itself, operators, the size of the program, time, load time, peak memory and outputs.
    `1.5.0` exports and executes with that version; one that has no runner, such as 1.4.1, only exports. The first call
    installs a version, which is announced with its size. Resumes where it stopped that day; belongs to no series.

    Exits with 0 if the upgrade is safe, with 1 if something is worse or could not be answered.
    """
    from flows.cli.output import check_output, output_file
    from tasks.measure.sweep_file import read_sweep
    from tasks.pages import upgrade as pages
    from tasks.pages.terminal_table import fit
    from tasks.results.table import build_table

    for each in output or ():
        check_output(each, pages.WRITERS)
    workspace = Workspace(data_dir.absolute(), warehouse, bundles)
    request = UpgradeToCheck(read_sweep(file), before, to, sessions, inventory, device or [])
    upgrade = measure_upgrade(request, workspace)
    page = workspace.reports / upgrade.sweep_id / "upgrade.html"
    for each in (page, *(output or ())):
        with output_file(each, pages.WRITERS) as stream:
            stream.write(pages.WRITERS[each.suffix](upgrade).encode())
    if format == "text":
        show(upgrade.headline, "", *upgrade.findings, "")
        show_table(fit(build_table(upgrade.rows), terminal_width(wide=wide)).lines())
        show(*(upgrade.comparison.remarks if upgrade.comparison else ()), f"the page: {page}")
    else:
        show_pieces([pages.WRITERS[{"json": ".json", "markdown": ".md"}[format]](upgrade)])
    raise typer.Exit(0 if upgrade.answer == "safe" else 1)


def compare_versions(
    versions: tuple[str, str],
    excluded: Mapping[str, str | None],
    only: Mapping[str, str | None],
    sessions: int,
    inventory: Path,
    workspace: Workspace,
) -> "Comparison":
    """Measure a model with two versions and return how their times compare, and what else is worse as remarks.

    `only` is the choice of model, device and precision of `etfarm compare`; `excluded` has its options that mean
    nothing here.
    """
    from devices.errors import FarmError, InputError

    if mistakes := [name for name, value in excluded.items() if value is not None]:
        raise InputError(f"leave {mistakes[0]} out with --executorch, which measures --model with two versions")
    if only["model"] is None:
        raise InputError("--executorch needs --model, such as --model mobilenet_v2")
    from tasks.measure.sweep_file import sweep_of_model

    spec = sweep_of_model("compare", only["model"], only["precision"] or "fp32")
    devices = [only["device"]] if only["device"] else []
    workspace = replace(workspace, root=workspace.root.absolute())
    upgrade = measure_upgrade(UpgradeToCheck(spec, *versions, sessions, inventory, devices), workspace)
    if upgrade.comparison is None:
        raise FarmError("; ".join(upgrade.findings) or "no session has a result")
    return replace(upgrade.comparison, remarks=[*upgrade.findings, *upgrade.comparison.remarks])


def measure_upgrade(asked: UpgradeToCheck, workspace: Workspace) -> "Upgrade":
    """Measure both versions unless that was done today, and compare them; raises InputError, FarmError."""
    from devices.errors import InputError
    from flows.device_selection import SweepRequest, choose_devices
    from flows.warehouse.readable import warehouse_reader
    from sql.warehouse import query_errors
    from tasks.measure.sweep_night import sweep_night
    from tasks.results.upgrade import read_upgrade
    from tasks.runner.executorch_versions import read_versions

    a, b = read_versions(asked.before), read_versions(asked.after)
    if a == b:
        raise InputError(f"both versions are {asked.before}; name two")
    from flows.cli.prefect_run import run_with_server, set_up_run

    set_up_run(f"upgrade from {asked.before} to {asked.after}", "upgrade", workspace.root)
    from flows.comparison.upgrade import check_upgrade, upgrade_sweep

    spec = upgrade_sweep(asked.spec, a, b, asked.sessions, asked.devices)
    selection = choose_devices(spec, str(asked.inventory), asked.devices)
    night = sweep_night(spec.name, date.today(), workspace.store.sweep_ids(), again=False)
    request = SweepRequest(spec, night.model_copy(update={"on_demand": True}), selection, workspace, "never")
    run_with_server(check_upgrade, {"request": request}, workspace, "upgrade")
    with warehouse_reader(workspace) as reader, query_errors():
        devices = [device.name for device in selection.devices]
        return read_upgrade(reader, night.sweep_id, a.runtime, b.runtime, devices)
