"""`etfarm compare --model ./model.py:make --base origin/main`: both versions of a model become .pte files."""

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from devices.errors import FarmError, InputError
from flows.terminal import show


def exported_sides(model: str | None, precision: str, base: str, var: Path) -> tuple[Path, Path]:
    """Return the .pte files of a model at the commit `base` and as its files are now, both exported.

    Raises InputError if there is no such commit or no git, FarmError if a side cannot be exported.
    """
    if model is None:
        raise InputError("--base: name the model, such as --model ./model.py:make")
    root = Path(_git("rev-parse", "--show-toplevel"))
    way_on = "name a commit that `git log` shows here, such as origin/main"
    words = ("rev-list", "--max-count=1", "--end-of-options", f"{base}^{{commit}}", "--")
    commit = _git(*words, told=f"--base {base}", way_on=way_on)
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
    """Export in a process of its own, whose modules are those of `folder`."""
    show(f"exporting {model} {precision}: {side}", err=True)
    if not folder.is_dir():
        raise InputError(f"{side}: this folder is not in that commit; run the command where the model's file was")
    # -P: a folder `flows` or `tasks` of the user is not the farm's.
    words = [
        sys.executable,
        "-P",
        "-m",
        "flows.cli.main",
        "model",
        "export",
        model,
        "--precision",
        precision,
        "--var",
        str(var),
    ]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["it printed nothing to standard error"])[-1]
        raise FarmError(f"{side}: {reason.removeprefix('etfarm: ')}")
    return Path(done.stdout.strip().splitlines()[-1], "model.pte")


def _git(*words: str, told: str = "--base", way_on: str = "run the command in the model's repository") -> str:
    try:
        done = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise InputError("--base needs git; install it, or compare two .pte files") from None
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["git failed"])[-1].removeprefix("fatal: ")
        raise InputError(f"{told}: {reason}; {way_on}")
    return done.stdout.strip()
