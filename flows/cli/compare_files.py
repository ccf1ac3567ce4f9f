"""`etfarm compare A.pte B.pte`: measure two .pte files interleaved on a device, and build their comparison.

With --base, the files are exports of a model at a commit of the user's repository, and as its files are now.
"""

import contextlib
import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from devices.errors import FarmError, InputError
from flows.terminal import show
from flows.warehouse.readable import warehouse_reader
from tasks.bundle.model_names import short_names
from tasks.bundle.names import SOURCES
from tasks.bundle.robust_statistics import MIN_SESSIONS
from tasks.results.changes import Comparison, SeriesChange, SideFacts
from tasks.results.compare import comparison_headline, measured_fields, read_file_commits, read_side_facts
from tasks.results.gate import commit_text, dirty_commit
from tasks.store.files import hash_file
from tasks.store.workspace import Workspace

if TYPE_CHECKING:
    from flows.comparison.interleaved import InterleavedResult
    from tasks.bundle.record import SweepNight


_NO_MODULES = (
    "modules are unknown: a .pte file alone does not state them; compare `model.pte` in the folders that "
    "`etfarm model export` and `etfarm model fetch` write"
)


def prepare_files(
    a: str | None,
    b: str | None,
    base: str | None,
    only: Mapping[str, str | None],
    sweep_id: str | None,
    workspace: Workspace,
) -> tuple["LabelledFile", "LabelledFile"] | None:
    """Return the .pte files A and B (with `base`, exported); None for stored results; InputError for bad options."""
    if base is None and (a is None or b is None):
        raise InputError("name A and B, or --model and --base; see `etfarm compare --help`")
    if base is not None and a is not None:
        raise InputError("--base is compared with the present files; leave A and B out")
    named = [Path(word) for word in (a, b) if word is not None and word.endswith(".pte")]
    if base is None and not named:
        return None
    if base is None and len(named) == 1:
        raise InputError(f"`{named[0]}` is a .pte file and the other is not; name two .pte files, or none")
    not_for_files = {} if base else {"model": only["model"], "precision": only["precision"]}
    for name, value in {**not_for_files, "variant": only["variant"], "sweep": sweep_id}.items():
        if value is not None:
            raise InputError(f"--{name} is not for .pte files; leave it out")
    if base is None:
        one, other = (LabelledFile(str(Path(*file.parts[-2:])), file, name=_file_name(file)) for file in named)
        return one, other
    return export_both(only["model"], only["precision"] or "fp32", base, workspace.root)


def _file_name(file: Path) -> str:
    return file.parent.name if file.name == "model.pte" else file.stem


@dataclass(frozen=True)
class LabelledFile:
    label: str
    """Its name in the output, without the folders of this machine."""
    file: Path
    commit: str | None = None
    """As in SideFacts."""
    name: str | None = None
    """Of the file, or of the folder of its export; None for an export of this command."""


@dataclass(frozen=True)
class FilesToCompare:
    a: LabelledFile
    b: LabelledFile
    device: str | None
    inventory: Path
    sessions: int
    priority: int
    margin: float
    """A fraction."""

    @property
    def files(self) -> tuple[Path, Path]:
        return self.a.file, self.b.file


def measure_files(request: FilesToCompare, workspace: Workspace) -> Comparison:
    """Measure two .pte files interleaved and compare them. Raises InputError before it measures, later FarmError."""
    files = request.files
    for file in files:
        if not file.is_file():
            raise InputError(f"{file}: no such file; name a .pte file")
    from flows.cli.options import choose_device
    from flows.cli.prefect_run import run_with_server, set_up_run

    device = choose_device(request.inventory, request.device)
    set_up_run(f"compare {files[0]} and {files[1]} on {device.name}", "comparison", workspace.root)
    workspace = replace(workspace, root=workspace.root.absolute())
    sweep, earlier = _name_sweeps(files, device.name, workspace.store.sweep_ids())
    from flows.comparison.interleaved import compare_files
    from flows.server.states import state_data

    parameters = {"a": files[0], "b": files[1], "device": device, "workspace": workspace, "sweep": sweep}
    parameters |= {"earlier": tuple(earlier), "sessions": request.sessions}
    parameters |= {"margin": request.margin, "priority": request.priority}
    result = state_data(run_with_server(compare_files, parameters, workspace, "comparison"))
    return _build_comparison(result, request, device.name, workspace)


def _name_sweeps(
    files: tuple[Path, Path], device: str, sweep_ids: Iterable[str]
) -> "tuple[SweepNight, list[SweepNight]]":
    """Return a new sweep for the sessions, and the earlier ones of today.

    The sweeps of two files on a device have a name in common: it contains a hash of both contents and the device.
    """
    from tasks.measure.sweep_night import sweep_night, sweeps_of_night

    content = " ".join([*(hash_file(file) for file in files), device])
    name = f"compare-{hashlib.sha256(content.encode()).hexdigest()[:8]}"
    today, existing = date.today(), list(sweep_ids)
    return sweep_night(name, today, existing, again=True), sweeps_of_night(name, today, existing)


def _build_comparison(
    answer: "InterleavedResult", request: FilesToCompare, device: str, workspace: Workspace
) -> Comparison:
    from tasks.export.prebuilt import open_pte

    exports = [open_pte(file, workspace.exports) for file in request.files]
    names = short_names(export.model for export in exports)
    models, precisions = [names[export.model] for export in exports], [export.precision for export in exports]
    if request.a.name and request.a.name == request.b.name:  # exports of two machines may state different sources
        models = [request.a.name]
    result = answer.result
    with warehouse_reader(workspace) as reader:
        side_facts = read_side_facts(reader, [*answer.cells[0], *answer.cells[1]])
        commits = read_file_commits(reader, [export.pte_sha256 for export in exports])
    sides = [
        replace(
            next((side_facts[cell] for cell in reversed(cells) if cell in side_facts), SideFacts()),
            sessions=sessions,
            time_ms=None if time_ns is None else time_ns / 1e6,
            pte_bytes=side.file.stat().st_size,
            commit=side.commit or commits.get(export.pte_sha256),
        )
        for cells, sessions, time_ns, side, export in zip(
            answer.cells,
            (result.sessions_a, result.sessions_b),
            (result.time_a, result.time_b),
            (request.a, request.b),
            exports,
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
        cause=_cause(answer),
        **measured_fields(result, request.margin, " and ".join(answer.inaccurate_sides)),
    )
    answer_line = comparison_headline([change], request.margin)
    has_modules = all((export.folder / SOURCES).is_file() for export in exports)
    remarks = [*_remarks(answer), *([] if has_modules or answer.word != "different" else [_NO_MODULES])]
    return Comparison(a=request.a.label, b=request.b.label, changes=[change], headline=answer_line, remarks=remarks)


def _remarks(answer: "InterleavedResult") -> Iterator[str]:
    result = answer.result
    yield "A and B were measured interleaved on one device"
    if result.note:
        yield result.note
    if answer.calls > 1 and answer.since:
        since = answer.since.isoformat(" ", "minutes")
        counts = f"{result.sessions_a} sessions of A and {result.sessions_b} of B"
        yield f"from {counts}, of {answer.calls} calls since {since} UTC"
    if answer.word == "unknown" and result.more_sessions:
        fewest = (
            f" (the fewest of a call; {result.more_sessions} would do)" if result.more_sessions < MIN_SESSIONS else ""
        )
        more = max(result.more_sessions, MIN_SESSIONS)
        yield f"compare again with --sessions {more}{fewest}, which adds them to these"


def _cause(answer: "InterleavedResult") -> str | None:
    """Return the cause, and by module, too, if it names operators and modules differ."""
    if not answer.modules or answer.modules == answer.cause:
        return answer.cause
    return f"{answer.cause}; by module: {answer.modules}"


def export_both(model: str | None, precision: str, base: str, data_dir: Path) -> tuple[LabelledFile, LabelledFile]:
    """Return the .pte files of a model at a commit and as its files are now; InputError, or FarmError of a side."""
    from tasks.measure.sweep_night import read_source

    if model is None:
        raise InputError("--base: name the model, such as --model ./model.py:make")
    root = Path(_git("rev-parse", "--show-toplevel"))
    remedy = "name a commit that `git log` shows here, such as origin/main"
    words = ("rev-list", "--max-count=1", "--end-of-options", f"{base}^{{commit}}", "--")
    commit = _git(*words, option=f"--base {base}", remedy=remedy)
    data_dir = data_dir.absolute()
    with _worktree(root, commit) as tree:
        before = _export_in(model, precision, data_dir, tree / Path.cwd().relative_to(root), f"--base {base}")
    source = read_source(root / model)
    present = dirty_commit(source.commit, source.is_dirty) if source else None
    after = _export_in(model, precision, data_dir, Path.cwd(), "the present files")
    label = f"{model} at {commit_text(present)}" if present else f"{model} as it is now"
    return LabelledFile(f"{model} at {commit_text(commit)}", before, commit), LabelledFile(label, after, present)


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


def _export_in(model: str, precision: str, data_dir: Path, folder: Path, side: str) -> Path:
    """Export in another process, whose modules are those of `folder`; return the .pte file.

    `side` names the side in messages. Raises InputError without that folder, FarmError with the last line it printed.
    """
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


def _git(*words: str, option: str = "--base", remedy: str = "run the command in the model's repository") -> str:
    """Return what git prints; raises InputError, with `option` and `remedy`, if git is missing or fails."""
    try:
        done = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise InputError("--base needs git; install it, or compare two .pte files") from None
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["git failed"])[-1].removeprefix("fatal: ")
        raise InputError(f"{option}: {reason}; {remedy}")
    return done.stdout.strip()
