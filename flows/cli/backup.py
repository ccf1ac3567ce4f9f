"""`etfarm backup` and `etfarm restore`."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import DEFAULT_VAR, VarOption
from tasks.store.var import Var

app = typer.Typer()


@app.command(epilog="Example: etfarm backup /mnt/backup/etfarm")
def backup(
    target: Annotated[Path, typer.Argument(help="Existing folder, on another disk or machine.")],
    var: VarOption = DEFAULT_VAR,
) -> None:
    """Back up bundles and the devices' health.

    Bundles include decisions and forgotten sessions. Only new contents are copied.
    """
    from tasks.keep.backup import back_up

    done = back_up(Var(var), target)
    counts = _counts(done.manifest.files)
    typer.echo(f"{counts} in the backup; {done.copied} new contents copied ({done.copied_bytes / 1e6:.1f} MB)")


@app.command(epilog="Example: etfarm restore /mnt/backup/etfarm --var var")
def restore(
    source: Annotated[Path, typer.Argument(help="Folder that `etfarm backup` wrote; its newest backup is used.")],
    var: VarOption = DEFAULT_VAR,
) -> None:
    """Restore a backup to an empty --var folder.

    Every file is verified by its hash. Run the same command to resume a stopped restore.
    """
    from tasks.keep.backup import restore as restore_backup

    manifest = restore_backup(source, Var(var))
    typer.echo(f"{_counts(manifest.files)} restored and verified; run `etfarm load` to build the warehouse")


def _counts(names: Iterable[str]) -> str:
    by_folder = Counter(name.partition("/")[0] for name in names)
    return f"{by_folder['bundles']} files of bundles and {by_folder['devices']} of devices"
