"""`etfarm doctor`: what killed sweeps left, whether this machine and its devices can be used, and all settings."""

import tempfile
from pathlib import Path

import typer

from flows.cli.options import (
    DEFAULT_DATA_DIR,
    DEFAULT_INVENTORY,
    DataDirOption,
    InventoryOption,
    TextOrJsonOption,
    WarehouseOption,
    is_passed,
)
from flows.terminal import show, show_pieces

app = typer.Typer(rich_markup_mode=None)


@app.command(epilog="Example: etfarm doctor --inventory inventory.yaml")
def doctor(
    context: typer.Context,
    inventory: InventoryOption = DEFAULT_INVENTORY,
    format: TextOrJsonOption = "text",
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    warehouse: WarehouseOption = None,
) -> None:
    """Check the set-up and all devices, and list what killed sweeps left.

    Prints a line for each finding: `ok:`, `fix:` with what to do, or `note:` where you need not act. Then a line for
    each setting with its origin. Changes nothing. Exits with 1 if anything needs you.
    """
    from flows.server.settings import prepare_prefect
    from tasks.pages.rows import as_text
    from tasks.store.workspace import resolve_workspace

    workspace = resolve_workspace(str(data_dir), warehouse=warehouse)
    passed = {"data_dir": data_dir, "inventory": inventory, "warehouse": warehouse}
    with tempfile.TemporaryDirectory() as scratch:  # Prefect creates its folder when it is imported
        prepare_prefect(workspace.prefect_home if workspace.prefect_home.exists() else Path(scratch))
        from flows.setup.checks import check_all, list_settings

        findings = check_all(workspace, inventory)
    findings += list_settings({name: value for name, value in passed.items() if is_passed(context, name)})
    needs_user = any(finding.needs_user for finding in findings)
    if format == "json":
        rows = [(finding.text, finding.needs_user) for finding in findings]
        show_pieces(as_text(("text", "needs_user"), [rows], "json"))
    else:
        show(*(finding.text for finding in findings))
    raise typer.Exit(int(needs_user))
