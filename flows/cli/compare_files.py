"""`etfarm compare A.pte B.pte`: measure two files interleaved on a device, and print how they compare."""

import contextlib
import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from devices.errors import FarmError, InputError
from flows.cli.output import ComparisonOutput
from flows.terminal import show
from flows.warehouse.readable import readable_warehouse
from tasks.bundle.model_names import shown_names
from tasks.bundle.record import SweepNight
from tasks.bundle.robust_statistics import LEAST_SESSIONS
from tasks.export.prebuilt import exported_or_prebuilt
from tasks.measure.night import sweep_night, sweeps_of_night
from tasks.results.changes import Comparison, SeriesChange, SideFacts
from tasks.results.compare import headline, measured_fields, read_side_facts
from tasks.results.reader import open_reader
from tasks.store.files import sha256_of
from tasks.store.workspace import Workspace

if TYPE_CHECKING:
    from flows.comparison.interleaved import InterleavedResult


def words_of(a: str | None, b: str | None, base: str | None) -> tuple[str, str] | None:
    """Return A and B if they name measured results; None if they are .pte files, or with a commit `base` instead.

    Raises InputError if these are missing, if both are given, or if only one of A and B is a .pte file.
    """
    if base is not None:
        if a is not None:
            raise InputError("--base is compared with the present files; leave A and B out")
        return None
    if a is None or b is None:
        raise InputError("name A and B, or --model and --base; see `etfarm compare --help`")
    return None if _are_files((a, b)) else (a, b)


def files_of(
    a: str | None, b: str | None, base: str | None, model: str | None, precision: str | None, data_dir: Path
) -> tuple[tuple[Path, Path], tuple[str, str]]:
    """Return the .pte files to compare and their labels: A and B, or exports of a model at `base` and as it is now."""
    if base is not None:
        files = exported_sides(model, precision or "fp32", base, data_dir)
        return files, (f"{model} at {base}", f"{model} as it is now")
    before, after = (Path(word) for word in (a, b) if word is not None)  # labels leave out this machine's folders
    return (before, after), (str(Path(*before.parts[-2:])), str(Path(*after.parts[-2:])))


def _are_files(words: tuple[str, str]) -> bool:
    """Return whether two words name .pte files; raises InputError if only one does."""
    named = [word for word in words if word.endswith(".pte")]
    if len(named) == 1:
        raise InputError(f"`{named[0]}` is a .pte file and the other is not; name two .pte files, or none")
    return len(named) == 2


@dataclass(frozen=True)
class FilesToCompare:
    """Two .pte files to measure interleaved on one device."""

    files: tuple[Path, Path]
    labels: tuple[str, str]
    """Names of A and B in the output."""
    device: str | None
    inventory: Path
    sessions: int
    priority: int
    margin: float
    """A fraction."""


def run_compare_files(
    asked: FilesToCompare, refused: Mapping[str, str | None], fail_on: Collection[str], shown: ComparisonOutput
) -> int:
    """Measure and compare two .pte files, print the result, and return 1 if `fail_on` lists it, else 0.

    `refused` has the options that are not for files: all must be None. Raises InputError before it measures.
    """
    files = asked.files
    _check(files, refused)
    shown.check()
    from flows.cli.options import choose_device
    from flows.cli.prefect_run import announce, run_with_server

    device, workspace = choose_device(asked.inventory, asked.device), shown.workspace
    placed = replace(workspace, root=workspace.root.absolute())
    sweep, earlier = _sweeps_of(files, device.name, placed.store.sweep_ids())
    announce(f"compare {files[0]} and {files[1]} on {device.name}", "comparison", workspace.root)
    from flows.comparison.interleaved import compare_files
    from flows.server.states import data_of

    parameters = {"a": files[0], "b": files[1], "device": device, "workspace": placed, "sweep": sweep}
    parameters |= {"earlier": tuple(earlier), "sessions": asked.sessions}
    parameters |= {"margin": asked.margin, "priority": asked.priority}
    result = data_of(run_with_server(compare_files, parameters, workspace.root, "comparison"))
    comparison = _comparison(result, asked, device.name, placed)
    shown.show(comparison)
    return shown.exit_code(comparison, fail_on)


def _check(files: Iterable[Path], only: Mapping[str, str | None]) -> None:
    for name, value in only.items():
        if value is not None:
            raise InputError(f"--{name} is not for .pte files; leave it out")
    for file in files:
        if not file.is_file():
            raise InputError(f"{file}: no such file; name a .pte file")


def _sweeps_of(files: tuple[Path, Path], device: str, sweep_ids: Iterable[str]) -> tuple[SweepNight, list[SweepNight]]:
    """Return a new sweep for the sessions, and the earlier ones of the same files on the same device and day."""
    content = " ".join([*(sha256_of(file) for file in files), device])
    name = f"compare-{hashlib.sha256(content.encode()).hexdigest()[:8]}"
    today, known = date.today(), list(sweep_ids)
    return sweep_night(name, today, known, again=True), sweeps_of_night(name, today, known)


def _comparison(answer: "InterleavedResult", asked: FilesToCompare, device: str, workspace: Workspace) -> Comparison:
    """Return the result as the comparison of one series, as for stored results."""
    exports = [exported_or_prebuilt(file, workspace.exports) for file in asked.files]
    shown = shown_names(export.model for export in exports)
    models, precisions = [shown[export.model] for export in exports], [export.precision for export in exports]
    result = answer.result
    with readable_warehouse(workspace) as readable, open_reader(readable) as reader:
        side_facts = read_side_facts(reader, [*answer.cells[0], *answer.cells[1]])
    sides = [
        replace(
            _last(side_facts, cells),
            sessions=sessions,
            time_ms=None if time_ns is None else time_ns / 1e6,
            pte_bytes=file.stat().st_size,
        )
        for cells, sessions, time_ns, file in zip(
            answer.cells,
            (result.sessions_a, result.sessions_b),
            (result.time_a, result.time_b),
            asked.files,
            strict=True,
        )
    ]
    change = SeriesChange(
        model=" -> ".join(dict.fromkeys(models)),
        device=device,
        precision=" -> ".join(dict.fromkeys(precisions)),
        variant=answer.variant,
        threads=1,
        a=sides[0],
        b=sides[1],
        cause=answer.cause,
        **measured_fields(result, asked.margin, " and ".join(answer.inaccurate_sides)),
    )
    a, b = asked.labels
    answer_line = headline([change], asked.margin)
    return Comparison(a=a, b=b, changes=[change], headline=answer_line, remarks=list(_remarks(answer)))


def _last(known: Mapping[str, SideFacts], cells: Sequence[str]) -> SideFacts:
    return next((known[cell] for cell in reversed(cells) if cell in known), SideFacts())


def _remarks(answer: "InterleavedResult") -> Iterator[str]:
    result = answer.result
    yield "A and B were measured in turns on one device"
    if result.note:
        yield result.note
    if answer.calls > 1 and answer.since:
        since = answer.since.isoformat(" ", "minutes")
        counts = f"{result.sessions_a} sessions of A and {result.sessions_b} of B"
        yield f"from {counts}, of {answer.calls} calls since {since} UTC"
    if answer.word == "unknown" and result.more_sessions:
        more = max(result.more_sessions, LEAST_SESSIONS)
        yield f"compare again with --sessions {more}, which adds them to these"


def exported_sides(model: str | None, precision: str, base: str, data_dir: Path) -> tuple[Path, Path]:
    """Export a model at the commit `base` and as its files are now; return both .pte files.

    Raises InputError if there is no such commit or no git, FarmError if a side cannot be exported.
    """
    if model is None:
        raise InputError("--base: name the model, such as --model ./model.py:make")
    root = Path(_git("rev-parse", "--show-toplevel"))
    way_on = "name a commit that `git log` shows here, such as origin/main"
    words = ("rev-list", "--max-count=1", "--end-of-options", f"{base}^{{commit}}", "--")
    commit = _git(*words, option=f"--base {base}", way_on=way_on)
    data_dir = data_dir.absolute()
    with _worktree(root, commit) as tree:
        before = _exported(model, precision, data_dir, tree / Path.cwd().relative_to(root), f"--base {base}")
    return before, _exported(model, precision, data_dir, Path.cwd(), "the present files")


@contextlib.contextmanager
def _worktree(root: Path, commit: str) -> Iterator[Path]:
    """Check a commit out into a temporary folder for the block; the user's checkout stays as it is."""
    with tempfile.TemporaryDirectory(prefix="etfarm-base-") as folder:
        tree = Path(folder, "tree").resolve()
        _git("-C", str(root), "worktree", "add", "--quiet", "--detach", str(tree), commit)
        try:
            yield tree
        finally:
            _git("-C", str(root), "worktree", "remove", "--force", str(tree))


def _exported(model: str, precision: str, data_dir: Path, folder: Path, side: str) -> Path:
    """Export in another process, whose modules are those of `folder`; return the .pte file."""
    show(f"exporting {model} {precision}: {side}", err=True)
    if not folder.is_dir():
        raise InputError(f"{side}: this folder is not in that commit; run the command where the model's file was")
    # -P: a folder `flows` or `tasks` of the user is not the farm's.
    words = [sys.executable, "-P", "-m", "flows.cli.main", "model", "export", model]
    words += ["--precision", precision, "--data-dir", str(data_dir)]
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
