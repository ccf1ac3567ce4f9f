"""`etfarm doctor`: what killed sweeps left, and whether this machine is set up."""

import typer

from flows.cli.options import DEFAULT_DATA_DIR, DEFAULT_INVENTORY, DataDirOption, InventoryOption, TextOrJsonOption
from flows.terminal import show, show_pieces

app = typer.Typer(rich_markup_mode=None)


@app.command(epilog="Example: etfarm doctor --inventory deployments/inventories/local.yaml")
def doctor(
    inventory: InventoryOption = DEFAULT_INVENTORY,
    format: TextOrJsonOption = "text",
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
) -> None:
    """Check the set-up, and list what killed sweeps left.

    Prints a line per finding, then a line per check (`ok:` or `fix:`), with what to do; changes nothing.
    Exits with 1 if anything needs you.
    """
    from flows.server.settings import prepare_prefect
    from tasks.pages.rows import as_text
    from tasks.store.workspace import resolve_workspace

    workspace = resolve_workspace(str(data_dir))
    prepare_prefect(workspace.prefect_home)
    from flows.setup.checks import check_setup
    from flows.setup.leftovers import find_leftovers

    left, setup = find_leftovers(workspace, inventory), check_setup(workspace, inventory)
    needs_user = any(finding.needs_user for finding in left + setup)
    if format == "json":
        rows = [(finding.text, finding.needs_user) for finding in left + setup]
        show_pieces(as_text(("text", "needs_user"), [rows], "json"))
    else:
        show(*(["nothing found"] if not left and not needs_user else []), *(each.text for each in left + setup))
    raise typer.Exit(int(needs_user))
