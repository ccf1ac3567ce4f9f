"""`etfarm warehouse`: load bundles, check, rebuild and prune the warehouse, import results of the profiling kit."""

import contextlib
import logging
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import DEFAULT_DATA_DIR, BundlesOption, DataDirOption, WarehouseOption
from flows.terminal import show, show_pieces
from tasks.maintain import PACK_AFTER, THIN_AFTER, UNUSED_AFTER
from tasks.store.workspace import Workspace

app = typer.Typer(name="warehouse", help="Load, check, rebuild and prune the warehouse.", no_args_is_help=True)


@app.command(epilog="Example: etfarm warehouse load var/bundles some.etdump --warehouse w.duckdb")
def load(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Bundles, folders of bundles, loose .etdump files, or logs with a PyTorchObserver line; "
            "all of --bundles if omitted."
        ),
    ] = None,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    bundles: BundlesOption = None,
    warehouse: WarehouseOption = None,
) -> None:
    """Load bundles or ETDumps into the warehouse, each only once."""
    from flows.warehouse.publish import load_and_publish, load_store

    workspace = Workspace(data_dir, warehouse, bundles)
    result = load_and_publish(workspace, paths) if paths else load_store(workspace)
    forgotten = f", {result.forgotten} forgotten (left out)" if result.forgotten else ""
    counts = f"{result.loaded} loaded, {result.already} already in the warehouse, {len(result.refused)} refused"
    show(counts + forgotten)
    for _, sentence in result.refused:
        show(sentence, err=True)
    raise typer.Exit(1 if result.refused else 0)


@app.command(epilog='Example: etfarm warehouse path, or: duckdb -readonly "$(etfarm warehouse path)"')
def path(data_dir: DataDirOption = DEFAULT_DATA_DIR) -> None:
    """Print the path of the newest snapshot, to open read-only."""
    from tasks.load.snapshot import newest_snapshot

    show(newest_snapshot(Workspace(data_dir).snapshots).absolute())


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
def rebuild(
    data_dir: DataDirOption = DEFAULT_DATA_DIR, bundles: BundlesOption = None, warehouse: WarehouseOption = None
) -> None:
    """Build the warehouse again from all bundles and replace it.

    The views of both are compared first. Stopped at any time, the present warehouse stays as it is. Forgotten sessions
    stay forgotten; events that `etfarm warehouse prune` removed come back.
    """
    from flows.warehouse.rebuild import rebuild_warehouse
    from tasks.results.text import numbered

    with _progress_on_stderr():
        done = rebuild_warehouse(Workspace(data_dir, warehouse, bundles))
    for line in done.differing:
        show(line)
    views = numbered(len(done.differing), "view differs", "views differ")
    compared = views if done.differing else "all views are identical"
    compared = compared if done.compared else "nothing to compare with"
    thinned = f"; events of {done.thinned} thinned sessions are back" if done.thinned else ""
    show(f"{done.sessions} sessions, {compared}{thinned}")
    for sentence in done.refused:
        show(sentence, err=True)
    raise typer.Exit(1 if done.refused else 0)


@app.command(epilog="Example: etfarm warehouse check")
def check(
    data_dir: DataDirOption = DEFAULT_DATA_DIR, bundles: BundlesOption = None, warehouse: WarehouseOption = None
) -> None:
    """Compare tables, aggregates, snapshot and bundles.

    Prints a line per finding and exits with 1 if there is any.
    """
    from tasks.maintain.check import check_warehouse

    with _progress_on_stderr():
        checked = check_warehouse(Workspace(data_dir, warehouse, bundles))
    for finding in checked.findings:
        show(finding)
    if not checked.findings:
        show(checked.counts)
    raise typer.Exit(1 if checked.findings else 0)


@app.command(epilog="Example: etfarm warehouse prune --pack-after 60 --yes")
def prune(
    yes: Annotated[bool, typer.Option("--yes", help="Do it; otherwise print what would be done.")] = False,
    thin_after: Annotated[
        int, typer.Option(min=0, help="Days after which the events of a night are removed; figures stay.")
    ] = THIN_AFTER,
    pack_after: Annotated[
        int, typer.Option(min=0, help="Days after which the bundles of a sweep become one archive.")
    ] = PACK_AFTER,
    unused_after: Annotated[
        int, typer.Option(min=0, help="Days after which exports and built runners without a bundle are removed.")
    ] = UNUSED_AFTER,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    bundles: BundlesOption = None,
    warehouse: WarehouseOption = None,
) -> None:
    """Free space: thin old nights, pack old bundles, drop caches.

    Prints what would be done unless --yes is given. The newest night, and what it uses, is never touched.
    """
    from tasks.maintain import prune as rules

    workspace = Workspace(data_dir, warehouse, bundles)
    plan = rules.plan_prune(rules.Rules(thin_after, pack_after, unused_after), workspace, date.today())
    if plan.is_empty:
        show("nothing to prune")
        return
    if not yes:
        show(*rules.describe(plan, workspace), "nothing was changed; run the command again with --yes")
        return
    failed = False
    with _progress_on_stderr():
        for step in rules.prune(plan, workspace):
            show(step.line)
            failed |= step.is_failure
    raise typer.Exit(int(failed))


@app.command(epilog="Example: etfarm warehouse import-kit out_toy_cnn/runs/mac --device mac-m4")
def import_kit(
    folder: Annotated[Path, typer.Argument(help="Folder with the kit's results and configurations.")],
    device: Annotated[
        str | None, typer.Option(help="Name of the measured device, which the kit does not record.")
    ] = None,
    precision: Annotated[
        str | None, typer.Option(help="Precision of models whose file name does not contain it.")
    ] = None,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    bundles: BundlesOption = None,
) -> None:
    """Turn results of Arm's SME2 ExecuTorch profiling kit into bundles.

    A file that cannot be used is left out: it is named on standard error, and the command exits with 1.
    """
    from devices.errors import InputError
    from devices.inventory import check_name
    from tasks.export.recipes import RECIPES
    from tasks.maintain.kit.bundles import import_kit
    from tasks.maintain.kit.config import read_configs
    from tasks.maintain.kit.results import find_kit_results

    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; pass a results folder of the kit or its checkout")
    if precision and precision not in RECIPES:
        raise InputError(f"--precision {precision}: unknown precision; use one of {', '.join(RECIPES)}")
    if device is not None:
        try:
            check_name(device, "device")
        except ValueError as error:
            raise InputError(f"--device {device}: {error}; rename it") from None
    configs, unread = read_configs(folder)
    results, unknown = find_kit_results(folder, configs, precision)
    if not results:
        nothing = f"{folder}: contains no results of the kit (*_t<threads>.etdump or *_xnntrace.log)"
        raise InputError([*unknown, *unread, nothing][0])
    store = Workspace(data_dir, None, bundles).store
    new, refused = import_kit(results, folder, store, device=device)
    counts = Counter(record.status for record in new)
    ends = ", ".join(f"{count} {status}" for status, count in counts.items()) or "nothing new"
    present = len(results) - len(new) - len(refused)
    show(f"{len(new)} bundles written to {store.location} ({ends}), {present} already stored")
    show(*(f"{each.imported.files[0]}: {each.reason}" for each in new if each.imported and each.reason))
    show("load them with: etfarm warehouse load")
    left_out = [*unread, *unknown, *refused]
    show(*(f"left out: {sentence}" for sentence in left_out), err=True)
    raise typer.Exit(1 if left_out else 0)


@contextlib.contextmanager
def _progress_on_stderr() -> Iterator[None]:
    """Print what the flows and tasks log inside the block to standard error, a line each."""
    handler, loggers = logging.StreamHandler(), [logging.getLogger(layer) for layer in ("flows", "tasks")]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
