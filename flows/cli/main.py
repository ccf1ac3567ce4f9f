"""The command line: the same words as the flows, one sentence for every error, an example for every command."""

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from flows.cli import asking as cli_asking
from flows.cli import backup as cli_backup
from flows.cli import bisect as cli_bisect
from flows.cli import decisions as cli_decisions
from flows.cli import devices as cli_devices
from flows.cli import kit as cli_kit
from flows.cli import model as cli_model
from flows.cli import runner as cli_runner
from flows.cli import server as cli_server
from flows.cli import warehouse as cli_warehouse
from flows.cli.options import (
    DEFAULT_AUTOMATIONS,
    DEFAULT_INVENTORY,
    DEFAULT_VAR,
    BundlesOption,
    InventoryOption,
    VarOption,
    WarehouseOption,
    error_message,
)
from tasks.prepare.export.recipes import RECIPES

app = typer.Typer(
    help="Measure ExecuTorch models on a farm of devices.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(cli_asking.app)
app.add_typer(cli_backup.app)
app.add_typer(cli_bisect.app)
app.add_typer(cli_server.app)
app.add_typer(cli_runner.app, name="runner")
app.add_typer(cli_devices.app, name="devices")
app.add_typer(cli_warehouse.app, name="warehouse")
app.add_typer(cli_kit.app, name="kit")
app.add_typer(cli_model.app, name="model")
app.add_typer(cli_decisions.baseline, name="baseline")
app.add_typer(cli_decisions.night, name="night")
app.add_typer(cli_decisions.app, name="decisions")


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"etfarm {version('etfarm')}")
        raise typer.Exit


@app.callback()
def everywhere(
    var: Annotated[Path | None, typer.Option("--var", help="Same as the command's --var.")] = None,
    warehouse: Annotated[Path | None, typer.Option("--warehouse", help="Same as the command's --warehouse.")] = None,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Measure ExecuTorch models on a farm of devices."""
    for name, value in (("ETFARM_VAR", var), ("ETFARM_WAREHOUSE", warehouse)):
        if value is not None:
            os.environ[name] = str(value)


@app.command(epilog="Example: etfarm sweep deployments/sweeps/smoke.yaml")
def sweep(
    file: Annotated[Path, typer.Argument(help="Sweep file: what to measure, and how often.")],
    inventory: InventoryOption = DEFAULT_INVENTORY,
    again: Annotated[
        bool, typer.Option("--again", help="Measure again, even what was already measured that night.")
    ] = False,
    night: Annotated[
        str | None,
        typer.Option("--night", help="Night that the results belong to, such as 2026-11-01; today if omitted."),
    ] = None,
    var: VarOption = DEFAULT_VAR,
    bundles: BundlesOption = None,
    warehouse: WarehouseOption = None,
    fail_on: Annotated[
        Literal["regression", "suspected", "never"],
        typer.Option(
            "--fail-on", help="Verdict on a series that makes the exit code 1; suspected includes regression."
        ),
    ] = "regression",
    priority: Annotated[
        int | None,
        typer.Option(
            "--priority",
            min=-100,
            max=100,
            help="Instead of the file's: the highest gets a device of a shared server first, between two sessions.",
        ),
    ] = None,
) -> None:
    """Run a sweep and write its report; resumes where it stopped."""
    from flows.cli.sweep import run_sweep

    raise typer.Exit(
        run_sweep(
            file,
            inventory,
            again=again,
            night=night,
            var=var,
            bundles=bundles,
            warehouse=warehouse,
            fail_on=fail_on,
            priority=priority,
        )
    )


@app.command(epilog="Example: etfarm lab berlin --bundles s3://farm/bundles")
def lab(
    site: Annotated[str, typer.Argument(help="The site: as `labs` and `site` of the inventory name it.")],
    var: VarOption = DEFAULT_VAR,
    bundles: BundlesOption = None,
) -> None:
    """Measure the devices of this lab for sweeps that run elsewhere.

    The sweeps must use the same Prefect server (PREFECT_API_URL) and the same --bundles. Ctrl-C and SIGTERM end what it
    measures cleanly first.
    """
    from flows.cli.lab import run_lab

    raise typer.Exit(run_lab(site, var, bundles))


@app.command(epilog="Example: etfarm export mobilenet_v2 --precision fp16")
def export(
    model: Annotated[str, typer.Argument(help="As in a sweep file: zoo, package.module:factory, file.py:factory, ...")],
    precision: Annotated[str, typer.Option(help=f"A recipe: {', '.join(RECIPES)}, or your own.")] = "fp32",
    seed: Annotated[int, typer.Option(help="Seed of weights and reference inputs.")] = 0,
    var: VarOption = DEFAULT_VAR,
) -> None:
    """Export one model to a .pte; print its folder."""
    from tasks.prepare.export.export import export_model
    from tasks.store.var import Var

    done = export_model(model, precision, Var(var).exports, seed=seed)
    typer.echo(done.folder)


@app.command(epilog="Example: etfarm load var/bundles some.etdump --warehouse w.duckdb")
def load(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(help="Bundles, folders of bundles, or loose .etdump files; all of --bundles if omitted."),
    ] = None,
    var: VarOption = DEFAULT_VAR,
    bundles: BundlesOption = None,
    warehouse: WarehouseOption = None,
) -> None:
    """Load bundles or ETDumps into the warehouse, each only once."""
    from flows.warehouse.publish import load_and_publish, load_store
    from tasks.store.store import open_store
    from tasks.store.var import Var

    store = open_store(bundles, Var(var))
    result = load_and_publish(paths, var, warehouse, store) if paths else load_store(store, None, var, warehouse)
    forgotten = f", {result.forgotten} forgotten (left out)" if result.forgotten else ""
    counts = f"{result.loaded} loaded, {result.already} already in the warehouse, {len(result.refused)} refused"
    typer.echo(counts + forgotten)
    for _, sentence in result.refused:
        typer.echo(sentence, err=True)
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
    from tasks.store.store import open_store
    from tasks.store.var import Var

    typer.echo(forget_target(target, reason, open_store(bundles, Var(var)), var, warehouse))


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
    from flows.cli.prune import run_prune
    from flows.warehouse.prune import Rules

    rules = Rules(thin_days=thin_after, pack_days=pack_after, unused_days=unused_after)
    raise typer.Exit(run_prune(rules, yes=yes, var=var, bundles=bundles, warehouse=warehouse))


@app.command(epilog="Example: etfarm doctor --inventory deployments/inventories/local.yaml")
def doctor(inventory: InventoryOption = DEFAULT_INVENTORY, var: VarOption = DEFAULT_VAR) -> None:
    """Check the set-up, and list what killed sweeps left.

    Prints a line per finding, then a line per check (`ok:` or `fix:`), with what to do; changes nothing.
    Exits with 1 if anything needs you.
    """
    from flows.cli.doctor import run_doctor

    raise typer.Exit(run_doctor(inventory, var))


@app.command(epilog="Example: etfarm worker")
def worker() -> None:
    """Run the sweeps that a Prefect server starts.

    Needs PREFECT_API_URL and starts in the checkout's root. Ctrl-C and SIGTERM end the running sweep cleanly first.
    """
    from flows.server.worker import POOL, run_worker

    raise typer.Exit(run_worker(POOL))


@app.command(epilog="Example: etfarm automate")
def automate(
    file: Annotated[Path, typer.Argument(help="What the server does by itself.")] = DEFAULT_AUTOMATIONS,
) -> None:
    """Let the Prefect server end dead runs and report lost workers.

    Creates or updates automations at PREFECT_API_URL: runs of killed processes become Crashed. The server
    notifies the services in ETFARM_NOTIFY, and stores their URLs encrypted.
    """
    from flows.server.automations import deploy_automations

    for line in deploy_automations(file, os.environ.get("ETFARM_NOTIFY", "")):
        typer.echo(line)


def main() -> None:
    """Run the command line; an error of the user ends it with one sentence and exit code 2."""
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # a full disk shows here, not after the exit code is decided
    except BrokenPipeError:
        _drop_output()
        sys.exit(1)
    except Exception as error:
        message = error_message(error)
        if message is None:
            raise
        _drop_output()
        typer.echo(f"etfarm: {message}", err=True)
        sys.exit(2)


def _drop_output() -> None:
    """Drop what could not be written; otherwise the interpreter tries again at its end, and changes the exit code."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
