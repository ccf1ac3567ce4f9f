"""The deployment `health`: can every device of the inventory be reached?"""

from pathlib import Path
from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State

from flows.artifacts import show_devices
from flows.choose import stated_inventory
from flows.device.states import device_states
from flows.server.states import dated_name, end_state, with_sentence
from flows.words import listed
from tasks.store.workspace import stated_workspace


@flow(name="health", flow_run_name=dated_name("health"))
@with_sentence
def health(inventory_file: str | None = None, var: str | None = None) -> State[Any]:
    """Probe every device and record the result in its health; Failed, with their names, if any cannot be reached.

    Nothing heavy runs on a device, also if it is leased. Retired devices are shown, but need not be reached.

    Parameters:
        inventory_file: the list of devices; default: ETFARM_INVENTORY, or deployments/inventories/local.yaml.
        var: the folder for all results; default: ETFARM_VAR, or ./var.
    """
    states = device_states(Path(stated_inventory(inventory_file)), stated_workspace(var).root, record=True)
    show_devices(states)
    missed = [each for each in states if each.unreachable]
    named = [f"{each.spec.name}: {each.unreachable}" for each in missed if each.health.state != "retired"]
    counts = f"{len(states) - len(missed)} reachable, {len(missed)} unreachable"
    return end_state(None, counts + listed(named), is_bad=bool(named))
