"""Pack the bundles of a sweep into one archive; the folders go only after the archive was read back completely."""

import contextlib
import fcntl
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from devices.errors import FarmError
from tasks.bundle.names import RECORD
from tasks.bundle.record import BundleError
from tasks.store.archives import archive_of, pack_bundles, packed_records, unpack, verify_archive
from tasks.store.files import UNFINISHED, complete_file, remove_at_once, remove_leftovers, size_bytes, work_folder
from tasks.store.folder import bundle_sha256, read_bundle

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Packed:
    """Sizes of a sweep's bundles before and after they were packed."""

    bundles: int
    before_bytes: int
    after_bytes: int


@contextlib.contextmanager
def only_one(root: Path) -> Iterator[None]:
    """Keep other processes that prune the bundles in `root` out of the block; raises FarmError if one is there."""
    root.mkdir(parents=True, exist_ok=True)
    with (root / ".prune.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise FarmError(f"{root}: another `etfarm prune` is running; wait until it ends") from None
        yield


def pack_sweep(root: Path, sweep_id: str) -> Packed:
    """Move the bundles of `root/<sweep_id>` into the sweep's archive, beside those that it contains already.

    Killed at any time, each bundle is in its folder or in the archive. Raises BundleError if a bundle is damaged, the
    folder contains anything else, or the disk is full; the folders then stay. Call it inside `only_one`.
    """
    folder, archive = root / sweep_id, archive_of(root, sweep_id)
    remove_leftovers(folder)
    bundles = {path.name: path for path in sorted(folder.iterdir()) if not path.name.startswith(UNFINISHED)}
    wanted = {session_id: _checked(path) for session_id, path in bundles.items()}
    before = size_bytes(folder)
    try:
        with work_folder(root) as scratch:
            packed = {session_id for session_id, _ in packed_records(archive)}
            older = {session_id: scratch / sweep_id / session_id for session_id in packed - set(bundles)}
            if older:
                unpack(archive, scratch, older)
            wanted |= {session_id: bundle_sha256(path) for session_id, path in older.items()}
            _log.info("packing %s: %d bundles", sweep_id, len(bundles))
            with complete_file(archive) as stream:
                pack_bundles(stream, sweep_id, {**older, **bundles})
                stream.flush()
                _require_complete(Path(stream.name), sweep_id, wanted)
                _log.info("verified %s", sweep_id)
    except OSError as error:
        raise BundleError(f"{archive}: cannot be written ({error.strerror}); the bundles stay in {folder}") from None
    _log.info("removing the folder of %s", sweep_id)
    for path in bundles.values():
        remove_at_once(path)
    with contextlib.suppress(OSError):  # a bundle was published meanwhile
        folder.rmdir()
    _log.info("packed %s", sweep_id)
    return Packed(len(bundles), before, archive.stat().st_size)


def _checked(bundle: Path) -> str:
    """Return the hash of a bundle's session.json; raises BundleError unless its files are complete and nothing else."""
    if not bundle.is_dir():
        raise BundleError(f"{bundle}: not a bundle, so its sweep is not packed; move it elsewhere")
    record = read_bundle(bundle)
    others = sorted({path.name for path in bundle.iterdir()} - {*record.files, RECORD})
    if others:
        raise BundleError(
            f"{bundle / others[0]}: not a file of its bundle, so its sweep is not packed; move it elsewhere"
        )
    return bundle_sha256(bundle)


def _require_complete(archive: Path, sweep_id: str, wanted: dict[str, str]) -> None:
    verified = list(verify_archive(archive, sweep_id))
    damage = next((bundle.damage for bundle in verified if bundle.damage), None)
    if damage or {bundle.session_id: bundle.sha256 for bundle in verified} != wanted:
        raise BundleError(f"{sweep_id}: the archive differs from the bundles when read back; check the disk")
