"""The deployment `on-demand`: a sweep from a form in Prefect's UI, with overrides."""

import hashlib
from datetime import date
from pathlib import Path
from typing import Annotated, Any

from prefect import flow, runtime
from prefect.client.schemas.objects import State
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from devices.errors import InputError
from devices.inventory import DeviceSpec, find_device
from flows.device_selection import SweepRequest, choose_devices, inventory_path, with_labs
from flows.server.states import errors_as_failed, user_run_name
from flows.setup.leftovers import clear_leftovers
from flows.shutdown import shutdown_handler
from flows.sweep import PARALLEL_STEPS, default_run_name, run_sweep
from flows.sweep_result import notify_of_error
from tasks.bundle.cell import ROOF, Variant
from tasks.bundle.delegates import DELEGATES, PORTABLE
from tasks.bundle.values import first_mistake
from tasks.export.recipes import RECIPES
from tasks.export.zoo import MODELS
from tasks.measure.sweep_file import SweepSpec, read_sweep
from tasks.measure.sweep_night import read_source, sweep_night
from tasks.store.workspace import resolve_workspace

_ROOT = Path(__file__).parents[2]
_DIGITS = 8


def one_of(names: list[str]) -> Any:
    """Return a field that Prefect's UI shows as a choice of these names; the server refuses any other text."""
    return Field(json_schema_extra={"enum": list(names)})


class Overrides(BaseModel):
    """Values that replace those of the sweep file; an empty one replaces nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    models: list[Annotated[str, one_of(sorted(MODELS.keys() - {ROOF}))]] = Field(
        default=[], description="Models of the zoo."
    )
    precisions: list[Annotated[str, one_of(list(RECIPES))]] = Field(default=[], description="Recipes.")
    variants: list[Variant] = Field(default=[], description="What XNNPACK may use: SME2, SME without SME2, or neither.")
    delegates: list[Annotated[str, one_of([*DELEGATES, PORTABLE])]] = Field(
        default=[], description="What models are lowered to."
    )
    devices: list[str] = Field(
        default=[], description="Names of devices of the inventory, instead of the labels in the sweep file."
    )
    sessions: int | None = Field(
        default=None, ge=1, le=1000, description="Sessions per cell, exactly: none ends early (`interval_percent`)."
    )

    @property
    def digest(self) -> str:
        """Eight hexadecimal digits, equal for equal overrides; those without delegates are as before there were any."""
        text = self.model_dump_json(exclude=None if self.delegates else {"delegates"})
        return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def apply_overrides(spec: SweepSpec, overrides: Overrides, folder: Path) -> SweepSpec:
    """Return the sweep with the overrides and another name; `spec` itself if there are no overrides.

    The name contains the digest of the overrides. So the sweep shares a sweep id, and thus a cell, with no other sweep.
    Raises InputError if the result is not a valid sweep.
    """
    if overrides == Overrides():
        return spec
    changes: dict[str, Any] = {name: value for name, value in overrides if value and name != "devices"}
    if overrides.devices:
        changes["devices"] = {}  # the named devices replace those that its labels select
    if overrides.sessions:
        changes["interval_percent"] = None
    changes["name"] = f"{spec.name}-on-demand-{overrides.digest}"
    try:
        return SweepSpec.model_validate({**dict(spec), **changes}, context={"folder": folder})
    except ValidationError as error:
        raise InputError(f"overrides: {first_mistake(error)}") from None


def select_devices(names: list[str], inventory: Path) -> list[DeviceSpec]:
    """Return these devices of the inventory in this order; raises InputError for an unknown or repeated name."""
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"overrides: duplicate device `{name}`; remove one")
    return [find_device(inventory, name) for name in names]


def _list_yaml(folder: str) -> list[str]:
    """Return the YAML files of a folder of the checkout, relative to its root and sorted."""
    return sorted(path.relative_to(_ROOT).as_posix() for path in (_ROOT / folder).glob("*.yaml"))


SweepFile = Annotated[str, one_of(_list_yaml("deployments/sweeps"))]
InventoryFile = Annotated[str, one_of(_list_yaml("deployments/inventories"))]


def _flow_run_name() -> str:
    return user_run_name() or f"{default_run_name(runtime.flow_run.parameters['sweep_file'], None)} on demand"


@flow(name="on-demand", flow_run_name=_flow_run_name, task_runner=PARALLEL_STEPS)
@errors_as_failed
def on_demand(
    sweep_file: SweepFile = "deployments/sweeps/smoke.yaml",
    inventory_file: InventoryFile | None = None,
    overrides: Overrides = Overrides(),  # noqa: B008  frozen
    again: bool = False,
    data_dir: str | None = None,
) -> State[Any]:
    """Measure a sweep now. With overrides, its results belong to no series and no night.

    Parameters:
        sweep_file: what to measure, and how often.
        inventory_file: the list of devices; default: the setting `inventory`.
        overrides: what to measure instead; the same overrides continue the same sweep within a night.
        again: measure again, even what was already measured today.
        data_dir: the folder for all results; default: the setting `data_dir`.
    """
    file, workspace, today = Path(sweep_file), resolve_workspace(data_dir), date.today()
    inventory = inventory_path(inventory_file)
    with shutdown_handler(runtime.flow_run.id), notify_of_error(default_run_name(sweep_file, None)):
        original = read_sweep(file)
        spec = apply_overrides(original, overrides, file.parent)
        devices = select_devices(overrides.devices, Path(inventory))
        selection = with_labs(devices, inventory) if devices else choose_devices(spec, inventory)
        clear_leftovers(workspace)
        night = sweep_night(spec.name, today, workspace.store.sweep_ids(), again=again)
        night = night.model_copy(update={"source": read_source(file), "on_demand": spec is not original})
        return run_sweep(SweepRequest(spec, night, selection, workspace))
