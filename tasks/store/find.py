"""The bundles in folders: of a sweep, of one device, or all."""

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from tasks.bundle.names import RECORD
from tasks.bundle.record import BundleError, SessionRecord
from tasks.store.files import UNFINISHED
from tasks.store.folder import read_record

_SESSION_ID = re.compile(r"[0-9a-f]{16}")
_COLLECTED = frozenset({"stdout.txt", "stderr.txt", "stats.json"})


def bundles_of(
    bundles: Path, sweep_id: str, *, device: str | None = None, skip_damaged: bool = False
) -> Iterator[SessionRecord]:
    """Yield the record of every bundle of a sweep, or of one of its devices, in the order of their ids.

    Raises BundleError where session.json is damaged, unless such bundles are skipped.
    """
    # Folders whose names begin with a dot are still being written.
    for path in sorted((bundles / sweep_id).glob(f"[!.]*/{RECORD}")):
        try:
            if device is None or _is_of(path, device):
                yield read_record(path.parent)
        except BundleError:
            if not skip_damaged:
                raise


def _is_of(record: Path, device: str) -> bool:
    try:
        return _device_of(record, record.stat().st_mtime_ns) == device
    except OSError:
        return True  # reading the record tells the cause


@lru_cache(maxsize=1 << 16)
def _device_of(record: Path, _changed_ns: int) -> str:
    """Return the name of a bundle's device; each of a hundred devices would read the records of all."""
    return read_record(record.parent).device.name


def find_results(path: Path) -> Iterator[Path]:
    """Yield the folders of bundles below `path`, and the .etdump files outside any bundle; unfinished ones are skipped.

    `path` itself may be a bundle, its session.json or a file. A bundle that lost its session.json is yielded as well:
    its ETDump is not a loose one, since it is one session of a cell and may already be loaded from a copy.
    """
    if path.is_file():
        found = path.resolve() if path.is_symlink() else path  # a link that the user names, unlike one below a folder
        yield found.parent if found.name == RECORD else found
    for folder, names, files in os.walk(path):
        names[:] = sorted(name for name in names if not name.startswith(UNFINISHED))
        if RECORD in files:
            names.clear()
            yield Path(folder)
        elif _was_bundle(Path(folder).name, files):
            yield Path(folder)
        else:
            yield from (file for name in sorted(files) if (file := Path(folder, name)).suffix == ".etdump")


def _was_bundle(name: str, files: list[str]) -> bool:
    """Return whether a folder without session.json looks like a bundle.

    Two of three signs decide: a name like a session's id, a file that the farm collects beside the ETDump, and an
    ETDump. A folder of ETDumps, or of the outputs of a runner under other names, shows only one.
    """
    signs = [_SESSION_ID.fullmatch(name), _COLLECTED.intersection(files), any(f.endswith(".etdump") for f in files)]
    return sum(map(bool, signs)) >= 2
