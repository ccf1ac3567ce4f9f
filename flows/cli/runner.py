"""`etfarm runner`: the programs that go to devices."""

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import DEFAULT_INVENTORY, DEFAULT_VAR, InventoryOption, VarOption

app = typer.Typer(help="Build and register the runners that go to devices.", no_args_is_help=True)


@app.command(epilog="Example: etfarm runner build --platform linux-aarch64")
def build(
    platform: Annotated[str | None, typer.Option(help="One platform; without it, this machine's.")] = None,
    all: Annotated[bool, typer.Option("--all", help="Every platform of the inventory.")] = False,
    inventory: InventoryOption = DEFAULT_INVENTORY,
    var: VarOption = DEFAULT_VAR,
) -> None:
    """Build the runner bundle of a platform against the executorch wheel; print its folder."""
    from tasks.runner.build import PLATFORMS, build_runner, host_platform
    from tasks.var import Var

    wanted = [platform or host_platform()]
    if all:
        from devices.inventory import load_inventory

        listed = {device.platform for device in load_inventory(inventory).devices}
        wanted = [known for known in PLATFORMS if known in listed or (None in listed and known == host_platform())]
    for name in wanted:
        typer.echo(build_runner(name, Var(var).runners).folder)


@app.command(
    epilog="Example: etfarm runner register build/executor_runner --platform android-arm64 --variant sme2_off "
    '--mode trace --provenance "executorch 1.5.1, NDK r28, XNN_LOG_LEVEL=5"'
)
def register(
    program: Annotated[Path, typer.Argument(help="The program, or the folder that holds it and its libraries.")],
    platform: Annotated[str, typer.Option(help="The platform that it was built for.")],
    variant: Annotated[str, typer.Option(help="sme2_on or sme2_off: what it was built with.")],
    mode: Annotated[str, typer.Option(help="timing, or trace for one that logs XNNPACK's kernels.")],
    provenance: Annotated[str, typer.Option(prompt="Where does it come from (source, commit, flags)?", help="Source.")],
    model: Annotated[Path | None, typer.Option(help="A .pte of which it must write an ETDump, here and now.")] = None,
    var: VarOption = DEFAULT_VAR,
) -> None:
    """Take a source-built executor_runner into the farm: checked, hashed, its provenance kept."""
    from tasks.runner.build import register_runner
    from tasks.var import Var

    done = register_runner(
        program, Var(var).runners, platform=platform, variant=variant, mode=mode, provenance=provenance, model=model
    )
    typer.echo(done.folder)
