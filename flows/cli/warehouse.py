"""`etfarm warehouse`: where the warehouse is, and what is in it."""

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import DEFAULT_VAR, VarOption

app = typer.Typer(help="Find the warehouse and its documentation.", no_args_is_help=True)


@app.command(epilog='Example: etfarm warehouse path (then: duckdb -readonly "$(etfarm warehouse path)")')
def path(var: VarOption = DEFAULT_VAR) -> None:
    """Print the path of the newest snapshot, to open read-only."""
    from tasks.snapshot import newest_snapshot
    from tasks.var import Var

    typer.echo(newest_snapshot(Var(var).snapshots).absolute())


@app.command(epilog="Example: etfarm warehouse docs -o sql/DICTIONARY.md")
def docs(
    output: Annotated[Path | None, typer.Option("-o", "--output", help="File to write; printed if omitted.")] = None,
) -> None:
    """Write the data dictionary as Markdown: views, tables, columns."""
    from sql.dictionary import data_dictionary
    from tasks.files import write_complete

    if output is None:
        typer.echo(data_dictionary(), nl=False)
        return
    write_complete(output, data_dictionary().encode())
    typer.echo(output)
