"""`etfarm validate`: all mistakes of sweep files and inventories at once, and their JSON schemas for editors."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from flows.terminal import show, show_pieces

if TYPE_CHECKING:
    from tasks.measure.sweep_file import SweepSpec

app = typer.Typer(rich_markup_mode=None)


@app.command(epilog="Example: etfarm validate sweep.yaml inventory.yaml")
def validate(
    files: Annotated[list[Path] | None, typer.Argument(help="Sweep files, inventories, etfarm.yaml.")] = None,
    schema: Annotated[
        Literal["sweep", "inventory", "settings"] | None,
        typer.Option(help="Print the JSON schema of such files instead."),
    ] = None,
) -> None:
    """List all mistakes of sweep files, inventories and settings, by line.

    Mistakes between entries, such as two devices with one name, follow when each entry is right. Nothing is
    started, and no device is contacted. Exits with 1 if a file has a mistake.

    An editor with a YAML language server shows the same while you write: save the schema, and begin the file with the
    comment `# yaml-language-server: $schema=sweep.schema.json`
    """
    from pydantic import BaseModel

    from devices.errors import InputError
    from devices.inventory import Inventory
    from devices.settings import Settings
    from tasks.measure.sweep_file import SweepSpec

    if schema is not None:
        kinds: dict[str, type[BaseModel]] = {"sweep": SweepSpec, "inventory": Inventory, "settings": Settings}
        dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
        show_pieces([json.dumps(dialect | kinds[schema].model_json_schema(), indent=1) + "\n"])
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
    """Describe a valid etfarm.yaml, sweep file or inventory (with `devices`); InputError with all mistakes."""
    from devices.checked_yaml import key_place, read_yaml
    from devices.errors import InputError
    from devices.inventory import load_inventory
    from devices.settings import FILE, load_settings
    from tasks.measure.sweep_file import read_sweep
    from tasks.results.text import counted

    if file.name == FILE.name:
        read = load_settings(file)
        # A relative path starts at the file's folder: commands read the file of the current folder only.
        if "inventory" in read.model_fields_set and not (file.parent / read.inventory).is_file():
            place = key_place(file, "inventory")
            raise InputError(f"{place}no file {read.inventory}; correct the path, or write that file")
        return f"settings: {', '.join(sorted(read.model_fields_set))}"
    written = read_yaml(file)
    if isinstance(written.get("devices"), list):
        return f"inventory, {counted(len(load_inventory(file).devices), 'device')}"
    spec = read_sweep(file)
    _check_functions(spec, file)
    return f"sweep {spec.name}, {counted(len(spec.pairs), 'export')}"


def _check_functions(spec: "SweepSpec", file: Path) -> None:
    """Raise InputError with a sentence for each function of yours that a sweep exports by and that does not exist."""
    from devices.checked_yaml import key_place
    from devices.errors import FarmError, Mistakes
    from tasks.export.key import check_user_function

    sentences = []
    for key_path, function, arguments in _functions(spec):
        try:
            check_user_function(function, arguments)
        except FarmError as error:
            sentences.append(f"{key_place(file, *key_path)}{error}")
    if sentences:
        raise Mistakes(sentences)


def _functions(spec: "SweepSpec") -> Iterator[tuple[tuple[str | int, ...], str | None, tuple[str, ...]]]:
    """Yield each function that a sweep exports by: its key in the file, its name and the arguments that it must have.

    The name of a model of the zoo, and None, are no functions of yours.
    """
    from tasks.bundle.delegates import user_partitioners
    from tasks.bundle.runtime import parse_runtime
    from tasks.export.key import RECIPE_ARGUMENTS
    from tasks.export.recipes import parse_recipe

    exported = [(parse_runtime(entry.name).delegate, recipe) for entry, recipe in spec.pairs if not entry.pte]
    delegates, recipes = {delegate for delegate, _ in exported}, {recipe for _, recipe in exported}
    for number, model in enumerate(spec.models):
        if not model.pte:
            yield ("models", number), model.factory, ()
            for partitioner in user_partitioners(model.delegate):
                yield ("models", number, "delegate"), partitioner, ()
    for number, recipe in enumerate(spec.precisions):
        if recipe in recipes:
            yield ("precisions", number), parse_recipe(recipe).user_function, RECIPE_ARGUMENTS
    for number, delegate in enumerate(spec.delegates):
        for partitioner in user_partitioners(delegate) if delegate in delegates else ():
            yield ("delegates", number), partitioner, ()
