"""`etfarm export`: one model, without a sweep."""

from typing import Annotated

import typer

from flows.cli.options import DEFAULT_VAR, VarOption
from flows.terminal import show
from tasks.prepare.export.recipes import RECIPES

app = typer.Typer(rich_markup_mode=None)


@app.command(epilog="Example: etfarm export mobilenet_v2 --precision fp16")
def export(
    model: Annotated[str, typer.Argument(help="As in a sweep file: zoo, package.module:factory, file.py:factory, ...")],
    precision: Annotated[str, typer.Option(help=f"A recipe: {', '.join(RECIPES)}, or your own.")] = "fp32",
    seed: Annotated[int, typer.Option(help="Seed of weights and reference inputs.")] = 0,
    var: VarOption = DEFAULT_VAR,
) -> None:
    """Export one model to a .pte and execute it once on this machine; print its folder."""
    from tasks.prepare.export.export import export_model
    from tasks.store.var import Var

    done = export_model(model, precision, Var(var).exports, seed=seed)
    show(done.folder)
    if done.trial:
        show(f"executed once on this machine: {done.trial}", err=True)
