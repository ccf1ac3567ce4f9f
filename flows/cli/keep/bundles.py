"""`etfarm load`, `forget` and `prune`: from bundles to the warehouse, and what leaves both."""

from datetime import date
from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import DEFAULT_VAR, BundlesOption, VarOption, WarehouseOption, opened_store, progress_on_stderr
from flows.terminal import show

app = typer.Typer(rich_markup_mode=None)


@app.command(epilog="Example: etfarm load var/bundles some.etdump --warehouse w.duckdb")
def load(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Bundles, folders of bundles, loose .etdump files, or logs with a PyTorchObserver line; "
            "all of --bundles if omitted."
        ),
    ] = None,
    var: VarOption = DEFAULT_VAR,
    bundles: BundlesOption = None,
    warehouse: WarehouseOption = None,
) -> None:
    """Load bundles or ETDumps into the warehouse, each only once."""
    from flows.warehouse.publish import load_and_publish, load_store

    store = opened_store(bundles, var)
    result = load_and_publish(paths, var, warehouse, store) if paths else load_store(store, None, var, warehouse)
    forgotten = f", {result.forgotten} forgotten (left out)" if result.forgotten else ""
    counts = f"{result.loaded} loaded, {result.already} already in the warehouse, {len(result.refused)} refused"
    show(counts + forgotten)
    for _, sentence in result.refused:
        show(sentence, err=True)
    raise typer.Exit(1 if result.refused else 0)


@app.command(epilog='Example: etfarm forget smoke-2026-11-20 --reason "wrong governor"')
def forget(
    target: Annotated[str, typer.Argument(help="Id of a sweep or a session.")],
    reason: Annotated[str, typer.Option("--reason", help="Why; recorded beside the bundles.")],
    var: VarOption = DEFAULT_VAR,
    bundles: BundlesOption = None,
    warehouse: WarehouseOption = None,
) -> None:
    """Leave sessions out of all figures; their bundles stay.

    The sweep measures them again, as new sessions, when it is started again in the same night.
    """
    from flows.warehouse.forget import forget_target

    show(forget_target(target, reason, opened_store(bundles, var), var, warehouse))


@app.command(epilog="Example: etfarm prune --pack-after 60 --yes")
def prune(
    yes: Annotated[bool, typer.Option("--yes", help="Do it; otherwise print what would be done.")] = False,
    thin_after: Annotated[
        int, typer.Option(min=0, help="Days after which the events of a night are removed; figures stay.")
    ] = 180,
    pack_after: Annotated[
        int, typer.Option(min=0, help="Days after which the bundles of a sweep become one archive.")
    ] = 30,
    unused_after: Annotated[
        int, typer.Option(min=0, help="Days after which exports and built runners without a bundle are removed.")
    ] = 30,
    var: VarOption = DEFAULT_VAR,
    bundles: BundlesOption = None,
    warehouse: WarehouseOption = None,
) -> None:
    """Free space: thin old nights, pack old bundles, drop caches.

    Prints what would be done unless --yes is given. The newest night, and what it uses, is never touched.
    """
    from flows.warehouse.prune import Rules, describe, plan_prune
    from flows.warehouse.prune import prune as carry_out

    rules = Rules(thin_days=thin_after, pack_days=pack_after, unused_days=unused_after)
    store = opened_store(bundles, var)
    plan = plan_prune(rules, store, var, warehouse, date.today())
    if plan.is_empty:
        show("nothing to prune")
        return
    if not yes:
        for line in describe(plan, store):
            show(line)
        show("nothing was changed; run the command again with --yes")
        return
    failed = False
    with progress_on_stderr():
        for line in carry_out(plan, store, var, warehouse):
            show(line)
            failed |= line.startswith("not packed")
    raise typer.Exit(int(failed))
