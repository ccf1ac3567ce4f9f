"""The deployment `on-demand`: a sweep that is started from a form in Prefect's UI."""

from datetime import date
from pathlib import Path
from typing import Annotated, Any

from prefect import flow, runtime
from prefect.client.schemas.objects import State

from flows.choose import choose_devices, stated_inventory, with_labs
from flows.deployed.overrides import Overrides, changed_spec, named_devices, one_of
from flows.ending import notify_of_error
from flows.server.states import given_name, with_sentence
from flows.setup.leftovers import clear_leftovers
from flows.shutdown import shutdown_handler
from flows.sweep import measure_and_report, name_of, side_by_side
from tasks.measure.night import sweep_night
from tasks.measure.source import source_of
from tasks.measure.spec import read_sweep
from tasks.store.workspace import stated_workspace

_ROOT = Path(__file__).parents[2]


def _files(folder: str) -> list[str]:
    """Return the YAML files of a folder of the checkout, as deployments name them."""
    return sorted(path.relative_to(_ROOT).as_posix() for path in (_ROOT / folder).glob("*.yaml"))


SweepFile = Annotated[str, one_of(_files("deployments/sweeps"))]
InventoryFile = Annotated[str, one_of(_files("deployments/inventories"))]


def _flow_run_name() -> str:
    return given_name() or f"{name_of(runtime.flow_run.parameters['sweep_file'], None)} on demand"


@flow(name="on-demand", flow_run_name=_flow_run_name, task_runner=side_by_side)
@with_sentence
def on_demand(
    sweep_file: SweepFile = "deployments/sweeps/smoke.yaml",
    inventory_file: InventoryFile | None = None,
    overrides: Overrides = Overrides(),  # noqa: B008  frozen
    again: bool = False,
    var: str | None = None,
) -> State[Any]:
    """Measure a sweep now. With overrides it is a sweep of another name, which belongs to no series and no night.

    Parameters:
        sweep_file: what to measure, and how often.
        inventory_file: the list of devices; default: ETFARM_INVENTORY, or deployments/inventories/local.yaml.
        overrides: what to measure instead; the same overrides continue the same sweep within a night.
        again: measure again, even what was already measured today.
        var: the folder for all results; default: ETFARM_VAR, or ./var.
    """
    file, places, today = Path(sweep_file), stated_workspace(var), date.today()
    inventory = stated_inventory(inventory_file)
    with shutdown_handler(runtime.flow_run.id), notify_of_error(name_of(sweep_file, None)):
        written = read_sweep(file)
        spec = changed_spec(written, overrides, file.parent)
        named = named_devices(overrides.devices, Path(inventory))
        chosen = with_labs(named, inventory) if named else choose_devices(spec, inventory)
        store = places.store
        clear_leftovers(places)
        night = sweep_night(spec.name, today, store.sweep_ids(), again=again)
        night = night.model_copy(update={"source": source_of(file), "on_demand": spec is not written})
        return measure_and_report(spec, night, chosen, store, places, "regression")
