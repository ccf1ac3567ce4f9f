"""Export a model at a commit of the user's repository and as its files are now, to compare both."""

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from devices.errors import FarmError, InputError
from flows.terminal import show


def export_both(model: str | None, precision: str, base: str, data_dir: Path) -> tuple[Path, Path]:
    """Export a model at the commit `base` and as its files are now; return both .pte files.

    Raises InputError if there is no such commit or no git, FarmError if a side cannot be exported.
    """
    if model is None:
        raise InputError("--base: name the model, such as --model ./model.py:make")
    root = Path(_git("rev-parse", "--show-toplevel"))
    remedy = "name a commit that `git log` shows here, such as origin/main"
    words = ("rev-list", "--max-count=1", "--end-of-options", f"{base}^{{commit}}", "--")
    commit = _git(*words, option=f"--base {base}", remedy=remedy)
    data_dir = data_dir.absolute()
    with _worktree(root, commit) as tree:
        before = _export_in(model, precision, data_dir, tree / Path.cwd().relative_to(root), f"--base {base}")
    return before, _export_in(model, precision, data_dir, Path.cwd(), "the present files")


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
