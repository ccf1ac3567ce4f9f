"""`etfarm validate`: all mistakes of sweep files and inventories at once, and their JSON schemas for editors."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from flows.terminal import show, show_pieces

app = typer.Typer(rich_markup_mode=None)


@app.command(epilog="Example: etfarm validate deployments/sweeps/nightly.yaml deployments/inventories/local.yaml")
def validate(
    files: Annotated[list[Path] | None, typer.Argument(help="Sweep files and inventories.")] = None,
    schema: Annotated[
        Literal["sweep", "inventory"] | None, typer.Option(help="Print the JSON schema of such files instead.")
    ] = None,
) -> None:
    """List all mistakes of sweep files and inventories, by line.

    Nothing is started, and no device is contacted. Exits with 1 if a file has a mistake.

    An editor with a YAML language server shows the same while you write: save the schema, and begin the file with the
    comment `# yaml-language-server: $schema=sweep.schema.json`
    """
    from devices.errors import InputError
    from devices.inventory import Inventory
    from tasks.measure.sweep_file import SweepSpec

    if schema is not None:
        kind = SweepSpec if schema == "sweep" else Inventory
        dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
        show_pieces([json.dumps(dialect | kind.model_json_schema(), indent=1) + "\n"])
        return
    if not files:
        raise InputError("name the files to check, or a schema to print with --schema")
    wrong = False
    for file in files:
        try:
            show(f"{file}: {_describe_valid(file)}")
        except InputError as error:
            wrong = True
            show(*error.sentences)
    raise typer.Exit(int(wrong))


def _describe_valid(file: Path) -> str:
    """Return a few words about a valid sweep file or inventory (with `devices`); InputError with all mistakes."""
    from devices.checked_yaml import read_yaml
    from devices.inventory import load_inventory
    from tasks.measure.sweep_file import read_sweep
    from tasks.results.text import counted

    written = read_yaml(file)
    if isinstance(written.get("devices"), list):
        return f"inventory, {counted(len(load_inventory(file).devices), 'device')}"
    spec = read_sweep(file)
    return f"sweep {spec.name}, {counted(len(spec.pairs), 'pair')} of model and recipe"
