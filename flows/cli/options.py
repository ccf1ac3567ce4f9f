"""Options that several commands share, and the message that a command prints for an error."""

import errno
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

if TYPE_CHECKING:
    from devices.inventory import DeviceSpec


def _from_settings(context: typer.Context, parameter: typer.CallbackParam, value: Any) -> Any:
    """Return the value on the command line, after or before the command's name, else the setting of the same name."""
    from devices.settings import settings

    name = str(parameter.name)
    passing = _passing_context(context, name)
    if passing is context:
        return value
    return passing.params[name] if passing else getattr(settings(), name)


def is_passed(context: typer.Context, name: str) -> bool:
    """Return whether an option with a setting is on the command line."""
    return _passing_context(context, name) is not None


def _passing_context(context: typer.Context, name: str) -> typer.Context | None:
    """Return the command, or the innermost group before it, after which the option is; None if it is nowhere."""
    source = context.get_parameter_source(name)
    if source is not None and source.name == "COMMANDLINE":
        return context
    return _passing_context(cast(typer.Context, context.parent), name) if context.parent else None


# `envvar` is for `--help`: the settings come from `_from_settings`, which also reads the file.
DataDirOption = Annotated[
    Path,
    typer.Option(
        "--data-dir",
        envvar="ETFARM_DATA_DIR",
        callback=_from_settings,
        help="Folder for all results.",
        show_default="./var",
    ),
]
WarehouseOption = Annotated[
    Path | None,
    typer.Option(
        "--warehouse",
        envvar="ETFARM_WAREHOUSE",
        callback=_from_settings,
        help="DuckDB file instead of the one in --data-dir.",
    ),
]
BundlesOption = Annotated[
    str | None,
    typer.Option(
        "--bundles",
        envvar="ETFARM_BUNDLES",
        callback=_from_settings,
        help="Folder or URL of all bundles, such as s3://bucket/prefix; default: in --data-dir.",
        show_default=False,
    ),
]
InventoryOption = Annotated[
    Path,
    typer.Option(
        "--inventory",
        envvar="ETFARM_INVENTORY",
        callback=_from_settings,
        help="Inventory file: the list of devices; without one, this machine.",
        show_default=False,
    ),
]
ModelOption = Annotated[str | None, typer.Option("--model", help="Only this model.")]
PrecisionOption = Annotated[str | None, typer.Option("--precision", help="Only this precision.")]
DelegateOption = Annotated[
    str | None,
    typer.Option(
        "--delegate",
        help="What it is lowered to instead of XNNPACK: portable, openvino, coreml, mlx, your own partitioner as "
        "package.module:function, or a list by priority such as openvino+xnnpack.",
    ),
]
VariantOption = Annotated[str | None, typer.Option("--variant", help="Only this variant, such as sme2_off.")]
DeviceOption = Annotated[str | None, typer.Option("--device", help="Only this device.")]
FormatOption = Annotated[Literal["table", "csv", "json", "markdown"], typer.Option("--format", help="Output format.")]
WideOption = Annotated[
    bool,
    typer.Option("--wide", help="All columns, each row on one line, as in a pipe."),
]
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


DEFAULT_AUTOMATIONS = Path("deployments/automations.yaml")
# `_from_settings` replaces both.
DEFAULT_DATA_DIR = Path("var")
DEFAULT_INVENTORY = Path()


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
