"""`etfarm warehouse`: where the warehouse is, what is in it, whether it is right, and how to build it again."""

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import DEFAULT_VAR, BundlesOption, VarOption, WarehouseOption, opened_store, progress_on_stderr
from flows.terminal import show, show_pieces
from tasks.store.var import Var

app = typer.Typer(help="Find, check and rebuild the warehouse; its documentation.", no_args_is_help=True)


@app.command(epilog='Example: etfarm warehouse path (then: duckdb -readonly "$(etfarm warehouse path)")')
def path(var: VarOption = DEFAULT_VAR) -> None:
    """Print the path of the newest snapshot, to open read-only."""
    from tasks.analyse.snapshot import newest_snapshot

    show(newest_snapshot(Var(var).snapshots).absolute())


@app.command(epilog="Example: etfarm warehouse docs -o sql/DICTIONARY.md")
def docs(
    output: Annotated[Path | None, typer.Option("-o", "--output", help="File to write; printed if omitted.")] = None,
) -> None:
    """Write the data dictionary as Markdown: views, tables, columns."""
    from sql.dictionary import data_dictionary
    from tasks.store.files import write_complete

    if output is None:
        show_pieces([data_dictionary()])
        return
    write_complete(output, data_dictionary().encode())
    show(output)


@app.command(epilog="Example: etfarm warehouse rebuild --bundles s3://bucket/prefix")
def rebuild(var: VarOption = DEFAULT_VAR, bundles: BundlesOption = None, warehouse: WarehouseOption = None) -> None:
    """Build the warehouse again from all bundles and replace it.

    The views of both are compared first. Stopped at any time, the present warehouse stays as it is. Forgotten sessions
    stay forgotten; events that `etfarm prune` removed come back.
    """
    from flows.warehouse.rebuild import rebuild_warehouse

    with progress_on_stderr():
        done = rebuild_warehouse(opened_store(bundles, var), var, warehouse)
    for line in done.differing:
        show(line)
    compared = "nothing to compare with" if not done.compared else f"{len(done.differing)} views differ"
    compared = "all views are identical" if done.compared and not done.differing else compared
    thinned = f"; events of {done.thinned} thinned sessions are back" if done.thinned else ""
    show(f"{done.sessions} sessions, {compared}{thinned}")
    for sentence in done.refused:
        show(sentence, err=True)
    raise typer.Exit(1 if done.refused else 0)


@app.command(epilog="Example: etfarm warehouse check")
def check(var: VarOption = DEFAULT_VAR, bundles: BundlesOption = None, warehouse: WarehouseOption = None) -> None:
    """Compare tables, aggregates, snapshot and bundles.

    Prints a line per finding and exits with 1 if there is any.
    """
    from flows.warehouse.check import check_warehouse

    with progress_on_stderr():
        checked = check_warehouse(opened_store(bundles, var), var, warehouse)
    for finding in checked.findings:
        show(finding)
    if not checked.findings:
        show(checked.counts)
    raise typer.Exit(1 if checked.findings else 0)
