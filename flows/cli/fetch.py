"""`etfarm model fetch`: the newest good .pte file of a model, as what a change is compared with."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import DEFAULT_VAR, BundlesOption, VarOption, WarehouseOption
from flows.terminal import show


def fetch(
    model: Annotated[str, typer.Argument(help="As in the sweep file, or as pages show it.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write: model.pte, its inputs and outputs.")],
    precision: Annotated[str, typer.Option(help="A recipe, such as fp16.")] = "fp32",
    branch: Annotated[str | None, typer.Option(help="Only nights of this branch, such as main.")] = None,
    night: Annotated[str | None, typer.Option(help="Only this night, such as 2026-11-02.")] = None,
    var: VarOption = DEFAULT_VAR,
    bundles: BundlesOption = None,
    warehouse: WarehouseOption = None,
) -> None:
    """Fetch the newest good .pte file that nights measured; print its path.

    A file is good if no device got slower or inaccurate in its night. If there is none, the newest file is fetched, and
    a line states it.
    """
    folder, told = newest_good(model, precision, branch, night, var, bundles, warehouse)
    show(told, err=True)
    shutil.copytree(folder, output, dirs_exist_ok=False)
    show(output / "model.pte")


def newest_good(
    model: str,
    precision: str,
    branch: str | None,
    night: str | None,
    var: Path,
    bundles: str | None,
    warehouse: Path | None,
) -> tuple[Path, str]:
    """Return the folder of the newest good export and a line about it; raises InputError if nothing is found."""
    from devices.errors import InputError
    from devices.suggest import did_you_mean
    from flows.warehouse.publish import ask_warehouse
    from tasks.bundle.model_names import model_named, shown_names
    from tasks.export.exported import ExportError, kept_export
    from tasks.export.shared import fetch_export
    from tasks.store.workspace import Workspace

    workspace = Workspace(var, warehouse, bundles)
    known = shown_names(name for (name,) in ask_warehouse("measured_models", workspace))
    name = model_named(model, known)
    if name is None:
        raise InputError(f"no night measured the model `{model}`{did_you_mean(model, known.values())}")
    asked = {"model": name, "precision": precision, "branch": branch, "night": night}
    exports, shelf = workspace.exports, workspace.store.shelf
    for key, sha256, case, of_night, commit, is_worse in ask_warehouse("newest_good_file", workspace, **asked):
        try:
            fetch_export(shelf, key, exports)
            found = kept_export(exports, key, sha256, case)
        except ExportError:
            continue
        why = "; no night without a change for the worse has one" if is_worse else ""
        of_commit = f", commit {commit[:7]}" if commit else ""
        return found.folder, f"{known[name]} {precision} of {of_night}{of_commit}, .pte {sha256[:8]}{why}"
    limits = "".join(f", {key} {value}" for key, value in (("branch", branch), ("night", night)) if value)
    raise InputError(f"no .pte file of {known[name]} {precision}{limits} is kept; measure one with `etfarm sweep`")
