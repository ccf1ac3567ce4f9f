"""`etfarm compare A.pte B.pte`: measure two files interleaved on a device, and print how they compare.

With `--model ./model.py:make --base origin/main`, both versions of a model become .pte files first.
"""

import contextlib
import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from devices.errors import FarmError, InputError
from flows.cli.compare import explained, told
from flows.cli.options import choose_device
from flows.cli.outputs import check_outputs
from flows.terminal import show
from flows.warehouse.readable import readable_warehouse
from sql.cage.connection import open_readable
from tasks.bundle.model_names import shown_names
from tasks.bundle.robust_statistics import LEAST_SESSIONS
from tasks.export.prebuilt import exported_or_prebuilt
from tasks.judge.compare.found import besides
from tasks.judge.compare.outcome import SLOWER, Beside, Line, Outcome
from tasks.measure.night import sweep_night, sweeps_of_night
from tasks.store.files import sha256_of
from tasks.store.workspace import Workspace

if TYPE_CHECKING:
    from flows.comparison.interleaved import InterleavedResult


@dataclass(frozen=True)
class FileComparison:
    """Two .pte files to measure, where, and how."""

    files: tuple[Path, Path]
    labels: tuple[str, str]
    """The names of A and B."""
    device: str | None
    """None: the only one of the inventory."""
    inventory: Path
    sessions: int
    """Of each file."""
    margin: float
    """A fraction of the time."""
    priority: int
    workspace: Workspace


def words_of(a: str | None, b: str | None, base: str | None) -> tuple[str, str] | None:
    """Return A and B if what they name was measured already; None if it is .pte files, or both sides of a commit.

    Raises InputError unless A and B, or a commit, are given, and if only one of A and B is a .pte file.
    """
    if base is not None:
        if a is not None:
            raise InputError("--base is compared with the present files; leave A and B out")
        return None
    if a is None or b is None:
        raise InputError("name A and B, or --model and --base; see `etfarm compare --help`")
    named = [word for word in (a, b) if word.endswith(".pte")]
    if len(named) == 1:
        raise InputError(f"`{named[0]}` is a .pte file and the other is not; name two .pte files, or none")
    return None if named else (a, b)


def check_files(files: Sequence[Path], refused: Mapping[str, str | None]) -> None:
    """Raise InputError for a file that is missing, and for a `refused` option that has a value."""
    for name, value in refused.items():
        if value is not None:
            raise InputError(f"--{name} is not for .pte files; leave it out")
    for file in files:
        if not file.is_file():
            raise InputError(f"{file}: no such file; name a .pte file")


def run_compare_files(request: FileComparison, fail_on: Collection[str], form: str, outputs: Sequence[Path]) -> int:
    """Print how two .pte files compare; return 1 if the result is what `fail_on` lists, else 0.

    Raises InputError before anything is measured.
    """
    check_outputs(outputs)
    from flows.cli.prefect_run import announce, run_with_server

    files, device = request.files, choose_device(request.inventory, request.device)
    var, warehouse = request.workspace.root, request.workspace.warehouse_file
    workspace = replace(request.workspace, root=var.absolute())
    # New sessions belong to one sweep a call; those of the same files, device and day count, too.
    content = " ".join([*(sha256_of(file) for file in files), device.name])
    name = f"compare-{hashlib.sha256(content.encode()).hexdigest()[:8]}"
    today, sweep_ids = date.today(), list(workspace.store.sweep_ids())
    sweep, earlier = sweep_night(name, today, sweep_ids, again=True), sweeps_of_night(name, today, sweep_ids)
    announce(f"compare {files[0]} and {files[1]} on {device.name}", "comparison", var)
    from flows.comparison.interleaved import compare_files
    from flows.server.states import data_of

    parameters = {"a": files[0], "b": files[1], "device": device, "workspace": workspace, "sweep": sweep}
    parameters |= {"earlier": tuple(earlier), "sessions": request.sessions}
    parameters |= {"margin": request.margin, "priority": request.priority}
    result = data_of(run_with_server(compare_files, parameters, var, "comparison"))
    outcome = _outcome(result, request, device.name)
    return told(explained(outcome, form, outputs, var, warehouse), fail_on, form, outputs)


def _outcome(measured: "InterleavedResult", request: FileComparison, device: str) -> Outcome:
    """Return the comparison as a line; no path is in it, since folders are of this machine alone."""
    exports = [exported_or_prebuilt(file, request.workspace.exports) for file in request.files]
    shown = shown_names(export.model for export in exports)
    models, precisions = [shown[export.model] for export in exports], [export.precision for export in exports]
    result, is_slower = measured.result, (measured.result.low or 0) > 1
    with readable_warehouse(request.workspace) as readable, open_readable(readable) as connection:
        known = besides(connection, [*measured.cells[0], *measured.cells[1]])
    sides = [
        replace(
            next((known[cell] for cell in reversed(cells) if cell in known), Beside()),
            sessions=sessions,
            pte_bytes=file.stat().st_size,
        )
        for cells, sessions, file in zip(
            measured.cells, (result.sessions_a, result.sessions_b), request.files, strict=True
        )
    ]
    time_a, time_b = (None if time_ns is None else time_ns / 1e6 for time_ns in (result.time_a, result.time_b))
    line = Line(
        model=" -> ".join(dict.fromkeys(models)),
        device=device,
        precision=" -> ".join(dict.fromkeys(precisions)),
        variant=measured.variant,
        threads="1",
        result=replace(result, time_a=time_a, time_b=time_b),
        word=(SLOWER if is_slower else "faster") if measured.word == "different" else measured.word,
        a=sides[0],
        b=sides[1],
        cause=measured.cause,
        inaccurate_sides=" and ".join(measured.inaccurate_sides),
        is_regression=result.answer == "different" and is_slower and (result.ratio or 0) > 1 + request.margin,
    )
    return Outcome(*request.labels, [line], request.margin, list(_remarks(measured)))


def _remarks(measured: "InterleavedResult") -> Iterator[str]:
    result = measured.result
    yield "A and B were measured in turns on one device"
    if result.note:
        yield result.note
    if measured.calls > 1 and measured.since:
        since = measured.since.isoformat(" ", "minutes")
        counts = f"{result.sessions_a} sessions of A and {result.sessions_b} of B"
        yield f"from {counts}, of {measured.calls} calls since {since} UTC"
    if measured.word == "unknown" and result.more_sessions:
        more = max(result.more_sessions, LEAST_SESSIONS)
        yield f"compare again with --sessions {more}, which adds them to these"


def exported_sides(model: str | None, precision: str, base: str, var: Path) -> tuple[Path, Path]:
    """Return the .pte files of a model at the commit `base` and as its files are now, both exported.

    Raises InputError if there is no such commit or no git, FarmError if a side cannot be exported.
    """
    if model is None:
        raise InputError("--base: name the model, such as --model ./model.py:make")
    root = Path(_git("rev-parse", "--show-toplevel"))
    way_on = "name a commit that `git log` shows here, such as origin/main"
    words = ("rev-list", "--max-count=1", "--end-of-options", f"{base}^{{commit}}", "--")
    commit = _git(*words, option=f"--base {base}", way_on=way_on)
    var = var.absolute()
    with _worktree(root, commit) as tree:
        before = _exported(model, precision, var, tree / Path.cwd().relative_to(root), f"--base {base}")
    return before, _exported(model, precision, var, Path.cwd(), "the present files")


@contextlib.contextmanager
def _worktree(root: Path, commit: str) -> Iterator[Path]:
    """Check a commit out into a folder for the block alone; the user's own folder stays as it is."""
    with tempfile.TemporaryDirectory(prefix="etfarm-base-") as folder:
        tree = Path(folder, "tree").resolve()
        _git("-C", str(root), "worktree", "add", "--quiet", "--detach", str(tree), commit)
        try:
            yield tree
        finally:
            _git("-C", str(root), "worktree", "remove", "--force", str(tree))


def _exported(model: str, precision: str, var: Path, folder: Path, side: str) -> Path:
    """Export in another process, whose modules are those of `folder`."""
    show(f"exporting {model} {precision}: {side}", err=True)
    if not folder.is_dir():
        raise InputError(f"{side}: this folder is not in that commit; run the command where the model's file was")
    # -P: a folder `flows` or `tasks` of the user is not the farm's.
    words = [sys.executable, "-P", "-m", "flows.cli.main", "model", "export", model]
    words += ["--precision", precision, "--var", str(var)]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["it printed nothing to standard error"])[-1]
        raise FarmError(f"{side}: {reason.removeprefix('etfarm: ')}")
    return Path(done.stdout.strip().splitlines()[-1], "model.pte")


def _git(*words: str, option: str = "--base", way_on: str = "run the command in the model's repository") -> str:
    try:
        done = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise InputError("--base needs git; install it, or compare two .pte files") from None
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["git failed"])[-1].removeprefix("fatal: ")
        raise InputError(f"{option}: {reason}; {way_on}")
    return done.stdout.strip()
