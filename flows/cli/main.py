"""The command line: the same words as the flows, a sentence for every mistake, an example with every command."""

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from flows.cli import devices as cli_devices
from flows.cli import runner as cli_runner
from flows.cli.options import (
    DEFAULT_INVENTORY,
    DEFAULT_VAR,
    InventoryOption,
    VarOption,
    WarehouseOption,
    sentence_of,
)

app = typer.Typer(
    help="Measure ExecuTorch models on a farm of devices.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(cli_runner.app, name="runner")
app.add_typer(cli_devices.app, name="devices")


@app.callback()
def everywhere(
    var: Annotated[Path | None, typer.Option("--var", help="As --var of a command, before it.")] = None,
    warehouse: Annotated[Path | None, typer.Option("--warehouse", help="As --warehouse of a command.")] = None,
) -> None:
    """Measure ExecuTorch models on a farm of devices."""
    for name, value in (("ETFARM_VAR", var), ("ETFARM_WAREHOUSE", warehouse)):
        if value is not None:
            os.environ[name] = str(value)


@app.command(epilog="Example: etfarm sweep deployments/sweeps/smoke.yaml")
def sweep(
    file: Annotated[Path, typer.Argument(help="The sweep file: what to measure, and how often.")],
    inventory: InventoryOption = DEFAULT_INVENTORY,
    again: Annotated[bool, typer.Option("--again", help="Measure anew what this night has measured already.")] = False,
    var: VarOption = DEFAULT_VAR,
    warehouse: WarehouseOption = None,
) -> None:
    """Measure every cell of a sweep, load the warehouse and write the report; what is done is not run again."""
    from flows.cli.sweep import run_sweep

    raise typer.Exit(run_sweep(file, inventory, again=again, var=var, warehouse=warehouse))


@app.command(epilog="Example: etfarm export mobilenet_v2 --precision fp16")
def export(
    model: Annotated[str, typer.Argument(help="A short name from the zoo, or package.module:factory.")],
    precision: Annotated[str, typer.Option(help="fp32, fp16, int8_static or int8_dynamic.")] = "fp32",
    seed: Annotated[int, typer.Option(help="Seed of weights and reference inputs.")] = 0,
    var: VarOption = DEFAULT_VAR,
) -> None:
    """Export one model to a .pte with its ETRecord, reference inputs and outputs; print the folder."""
    from tasks.export.export import export_model
    from tasks.var import Var

    done = export_model(model, precision, Var(var).exports, seed=seed)
    typer.echo(done.folder)


@app.command(epilog="Example: etfarm load var/bundles some.etdump --warehouse w.duckdb")
def load(
    paths: Annotated[list[Path], typer.Argument(help="Bundles, folders of bundles, or loose .etdump files.")],
    var: VarOption = DEFAULT_VAR,
    warehouse: WarehouseOption = None,
) -> None:
    """Load results into the warehouse; what is there already is not loaded twice."""
    from flows.publish import load_and_publish

    result = load_and_publish(paths, var, warehouse)
    typer.echo(f"loaded {result.loaded}, there already {result.already}, refused {len(result.refused)}")
    for _, sentence in result.refused:
        typer.echo(sentence, err=True)
    raise typer.Exit(1 if result.refused else 0)


@app.command(epilog="Example: etfarm report")
def report(
    sweep_id: Annotated[str | None, typer.Argument(help="A sweep's id; without one, the newest.")] = None,
    var: VarOption = DEFAULT_VAR,
    warehouse: WarehouseOption = None,
) -> None:
    """Write the combined report of a sweep (HTML and Markdown) and print where it is."""
    from flows.publish import write_report

    typer.echo(write_report(sweep_id, var, warehouse))


@app.command(epilog='Example: etfarm sql "SELECT model, median_ms FROM session_latency" --format csv')
def sql(
    query: Annotated[str, typer.Argument(help="SQL text, or the path of a .sql file.")],
    format: Annotated[Literal["table", "csv", "json"], typer.Option("--format", help="Of the rows.")] = "table",
    var: VarOption = DEFAULT_VAR,
    warehouse: WarehouseOption = None,
) -> None:
    """Ask the warehouse; every view and column is described by `etfarm sql "SELECT * FROM duckdb_views()"`."""
    from flows.cli.sql import ask

    typer.echo(ask(query, format, var, warehouse), nl=False)


@app.command(epilog="Example: etfarm inspect model.etdump")
def inspect(file: Annotated[Path, typer.Argument(help="An ETDump.")]) -> None:
    """Show an ETDump's executions and its heaviest operators, without a warehouse."""
    from flows.cli.inspect import inspect_etdump

    inspect_etdump(file)


def main() -> None:
    """Run the command line; a mistake ends it with one sentence and exit code 2."""
    try:
        app()
    except Exception as error:
        sentence = sentence_of(error)
        if sentence is None:
            raise
        typer.echo(f"etfarm: {sentence}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
