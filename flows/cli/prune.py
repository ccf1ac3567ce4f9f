"""`etfarm prune`: print what the rules would free, and free it with --yes."""

from datetime import date
from pathlib import Path

import typer

from flows.cli.options import progress_on_stderr
from flows.warehouse.prune import Rules, describe, plan_prune, prune
from tasks.store.store import open_store
from tasks.store.var import Var


def run_prune(rules: Rules, *, yes: bool, var: Path, bundles: str | None, warehouse: Path | None) -> int:
    """Print the plan, or carry it out; return 0, or 1 if a sweep could not be packed."""
    store = open_store(bundles, Var(var))
    plan = plan_prune(rules, store, var, warehouse, date.today())
    if plan.is_empty:
        typer.echo("nothing to prune")
        return 0
    if not yes:
        for line in describe(plan, store):
            typer.echo(line)
        typer.echo("nothing was changed; run the command again with --yes")
        return 0
    failed = False
    with progress_on_stderr():
        for line in prune(plan, store, var, warehouse):
            typer.echo(line)
            failed |= line.startswith("not packed")
    return int(failed)
