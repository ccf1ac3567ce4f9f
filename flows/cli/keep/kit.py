"""`etfarm kit`: import results of Arm's SME2 ExecuTorch profiling kit."""

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import DEFAULT_VAR, BundlesOption, VarOption
from flows.terminal import show

app = typer.Typer(help="Import from Arm's SME2 ExecuTorch profiling kit.", no_args_is_help=True)


@app.command("import", epilog="Example: etfarm kit import out_toy_cnn/runs/mac --device mac-m4")
def import_(
    folder: Annotated[Path, typer.Argument(help="Folder with the kit's results and configurations.")],
    device: Annotated[
        str | None, typer.Option(help="Name of the measured device, which the kit does not record.")
    ] = None,
    precision: Annotated[
        str | None, typer.Option(help="Precision of models whose file name does not contain it.")
    ] = None,
    var: VarOption = DEFAULT_VAR,
    bundles: BundlesOption = None,
) -> None:
    """Turn results into bundles.

    A file that cannot be used is left out: it is named on standard error, and the command exits with 1.
    """
    from flows.kit import import_results

    lines, left_out = import_results(folder, device, precision, var, bundles)
    show(*lines)
    show(*(f"left out: {sentence}" for sentence in left_out), err=True)
    raise typer.Exit(1 if left_out else 0)
