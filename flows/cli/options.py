"""Options that several commands share, and how a command says that something went wrong."""

import errno
from pathlib import Path
from typing import Annotated

import typer

VarOption = Annotated[
    Path,
    typer.Option("--var", envvar="ETFARM_VAR", help="Folder for everything that a run makes.", show_default="./var"),
]
WarehouseOption = Annotated[
    Path | None,
    typer.Option(
        "--warehouse", envvar="ETFARM_WAREHOUSE", help="A DuckDB file to use instead of the var folder's warehouse."
    ),
]
InventoryOption = Annotated[
    Path,
    typer.Option("--inventory", help="The inventory file: which devices there are."),
]
DEFAULT_VAR = Path("var")
DEFAULT_INVENTORY = Path("deployments/inventories/local.yaml")


def sentence_of(error: BaseException) -> str | None:
    """Return the one sentence of an error that a person can act on, or None if it is a fault of the farm's own."""
    from devices.checked_yaml import CheckedYamlError
    from devices.device import DeviceError
    from devices.health import RegistryError
    from sql.warehouse import WarehouseError
    from tasks.errors import FarmError

    if isinstance(error, FarmError | DeviceError | WarehouseError | CheckedYamlError | RegistryError):
        return str(error)
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{error.strerror}; free some where the output or the var folder goes and start again"
    return None
