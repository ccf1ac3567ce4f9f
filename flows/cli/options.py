"""Options that several commands share, and the message that a command prints for an error."""

import errno
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from devices.inventory import DeviceSpec

DataDirOption = Annotated[
    Path, typer.Option("--data-dir", envvar="ETFARM_DATA_DIR", help="Folder for all results.", show_default="./var")
]
WarehouseOption = Annotated[
    Path | None,
    typer.Option("--warehouse", envvar="ETFARM_WAREHOUSE", help="DuckDB file instead of the one in --data-dir."),
]
BundlesOption = Annotated[
    str | None,
    typer.Option(
        "--bundles",
        envvar="ETFARM_BUNDLES",
        help="Folder or URL of all bundles, such as s3://bucket/prefix; default: in --data-dir.",
        show_default=False,
    ),
]
InventoryOption = Annotated[
    Path, typer.Option("--inventory", envvar="ETFARM_INVENTORY", help="Inventory file: the list of devices.")
]
ModelOption = Annotated[str | None, typer.Option("--model", help="Only this model.")]
PrecisionOption = Annotated[str | None, typer.Option("--precision", help="Only this precision.")]
VariantOption = Annotated[str | None, typer.Option("--variant", help="Only this variant, such as sme2_off.")]
DeviceOption = Annotated[str | None, typer.Option("--device", help="Only this device.")]
FormatOption = Annotated[Literal["table", "csv", "json", "markdown"], typer.Option("--format", help="Output format.")]
TextOrJsonOption = Annotated[Literal["text", "json"], typer.Option("--format", help="Output format.")]
OutputsOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--output",
        "-o",
        help="File to write, may be repeated: .md for a pull request, .json, .xml (JUnit), .svg (badge).",
    ),
]


class FailOn(StrEnum):
    """Results of a comparison that can end a command with exit code 1."""

    REGRESSION = "regression"
    DIFFERENT = "different"
    UNKNOWN = "unknown"
    INACCURATE = "inaccurate"


DEFAULT_DATA_DIR = Path("var")
DEFAULT_AUTOMATIONS = Path("deployments/automations.yaml")
DEFAULT_INVENTORY = Path("deployments/inventories/local.yaml")


def choose_device(inventory: Path, name: str | None) -> "DeviceSpec":
    """Return the device of that name, or the only one of an inventory; raises InputError."""
    from devices.errors import InputError
    from devices.inventory import load_inventory, reached_device

    if name is not None:
        return reached_device(inventory, name)
    listed = load_inventory(inventory)
    if len(listed.reached) == 1:
        return listed.reached[0]
    names = sorted(device.name for device in listed.devices)
    raise InputError(f"{inventory} lists {len(names)} devices; name one with --device: {', '.join(names)}")


def error_message(error: BaseException) -> str | None:
    """Return the message of an error that the user can act on; None for any other, which is a bug."""
    from devices.errors import FarmError
    from sql.errors import WarehouseError

    if isinstance(error, FarmError | WarehouseError):
        return str(error)
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{error.strerror}; free space for the output or the --data-dir folder, then run the command again"
    return None
