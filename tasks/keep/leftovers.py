"""Files and folders that the farm's killed processes left on this machine."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tasks.store.files import UNFINISHED, is_of_dead_process, leftovers, remove, remove_unfinished, scratch_parent
from tasks.store.var import Var

# Archives of runners on their way to a device; see devices/ondevice/store.py.
_TREE = "etfarm-tree-"


def local_leftovers(places: Var) -> list[Path]:
    """Return what processes that have ended left unfinished: in the var folder, and scratch folders of this user."""
    folders = {path.parent for depth in ("*", "*/*") for path in places.root.glob(f"{depth}/{UNFINISHED}*")}
    found = [path for folder in sorted({places.root, scratch_parent(), *folders}) for path in leftovers(folder)]
    return found + [path for path in _trees() if is_of_dead_process(path, _TREE)]


def remove_local_leftovers(places: Var) -> None:
    """Remove what `local_leftovers` returns."""
    for path in local_leftovers(places):
        remove(path)


def remove_own() -> None:
    """Remove what this process is writing, before it ends without leaving its blocks."""
    remove_unfinished()
    for path in _trees():
        if path.name.startswith(f"{_TREE}{os.getpid()}-"):
            remove(path)


def size_bytes(path: Path) -> int:
    """Return the size of a file, or of all files in a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.lstat().st_size for file in files if file.is_file())


def _trees() -> Iterator[Path]:
    return Path(tempfile.gettempdir()).glob(f"{_TREE}*")
