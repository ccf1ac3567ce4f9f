"""The git commit of the repository that a sweep file lies in: it explains what changed between two nights."""

import logging
import os
import subprocess
from pathlib import Path

from devices.untrusted import excerpt
from tasks.bundle.record import Source

_ANSWER_S = 10.0
_MOST_NAME = 200
# Never take the user's lock on the index, and never run a program that the repository names.
_GIT = ("git", "--no-optional-locks", "-c", "core.fsmonitor=false")
_log = logging.getLogger(__name__)


def source_of(sweep_file: Path) -> Source | None:
    """Return the commit that is checked out where a sweep file lies; None without git, a repository or a commit."""
    folder = sweep_file.absolute().parent
    newest = _printed(folder, "log", "-1", "--no-show-signature", "--format=%H %an")
    if not newest:
        return None
    commit, _, author = newest.strip().partition(" ")
    changes = _printed(folder, "status", "--porcelain", "--untracked-files=no")
    branch = _printed(folder, "symbolic-ref", "--quiet", "--short", "HEAD") or ""
    return Source(
        commit=commit,
        is_dirty=None if changes is None else bool(changes),
        author=excerpt(author, _MOST_NAME) or None,
        branch=excerpt(branch, _MOST_NAME) or None,
    )


def _printed(folder: Path, *arguments: str) -> str | None:
    """Return what git prints; None if it is not installed, fails or takes too long."""
    # Variables such as GIT_DIR, which git sets for its hooks, name another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = [*_GIT, "-C", os.fspath(folder), *arguments]
    try:
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=_ANSWER_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        _log.info("%s: the commit of the sweep file is not recorded: %s", folder, error)
        return None
    return done.stdout if done.returncode == 0 else None
