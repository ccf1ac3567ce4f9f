"""Backups of what cannot be measured again: bundles, with decisions and forgotten sessions, and the devices' health.

A backup folder contains each content once, as `objects/<2 digits>/<sha256>`, and per backup a list of all its files,
`backup-<time>.json`, which is written last: a backup is complete or absent, and a stopped one resumes where it stopped.
"""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from devices.errors import FarmError, InputError
from tasks.store.files import UNFINISHED, sha256_of, write_complete
from tasks.store.local import SHARED_FOLDER
from tasks.store.var import Var

FOLDERS = ("bundles", "devices")
_TRIES = 3


class BackupError(FarmError):
    """A backup cannot be written or restored; the text is one sentence."""


class Kept(BaseModel):
    """One file of a backup."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    size_bytes: int
    mtime_ns: int

    def object_in(self, folder: Path) -> Path:
        """Return where the backup folder keeps the content."""
        return folder / "objects" / self.sha256[:2] / self.sha256


class Manifest(BaseModel):
    """All files of a backup, by path below the var folder."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[1] = 1
    files: dict[str, Kept]

    @field_validator("files")
    @classmethod
    def _check_paths(cls, files: dict[str, Kept]) -> dict[str, Kept]:
        for name in files:
            parts = PurePosixPath(name).parts
            if not parts or parts[0] not in FOLDERS or ".." in parts:
                raise ValueError(f"{name} is not a path in {' or '.join(FOLDERS)}")
        return files


@dataclass(frozen=True)
class Backup:
    """A complete backup: its list of files, and what was new in it."""

    manifest: Manifest
    copied: int
    copied_bytes: int


def back_up(places: Var, target: Path) -> Backup:
    """Copy to the folder `target` what it does not contain yet, and then write the list of all files.

    A file whose size and time are those of the last backup is not read again. Raises InputError, BackupError, OSError.
    """
    if not any((places.root / name).is_dir() for name in FOLDERS):
        raise InputError(f"{places.root}: contains neither {' nor '.join(FOLDERS)}; set --var to the farm's folder")
    if not target.is_dir():  # a disk that is not mounted, for example
        raise InputError(f"{target}: not a folder; create it once, on another disk or machine")
    if target.resolve().is_relative_to(places.root.resolve()):
        raise InputError(f"{target}: inside {places.root}, with which it would be lost; use another disk or machine")
    manifests = _manifests(target)
    known = _read_manifest(manifests[-1]).files if manifests else {}
    for _ in range(_TRIES):
        try:
            done = _copy(places.root, target, known)
        except FileNotFoundError:  # a sweep was packed meanwhile
            continue
        name = f"backup-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}.json"
        write_complete(target / name, done.manifest.model_dump_json().encode())
        return done
    raise BackupError(f"{places.root}: files disappeared while they were copied; run the backup again after the sweep")


def restore(source: Path, places: Var) -> Manifest:
    """Restore the newest backup in the folder `source` to the var folder, which must be empty or absent.

    Files are copied to `<var>.restoring`, compared with their hashes, and the folder is renamed at the end; a stopped
    restore resumes there. Raises InputError, BackupError, OSError.
    """
    root = places.root.resolve()
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise InputError(f"{places.root}: not an empty folder; name a new one with --var, or move this one away")
    manifests = _manifests(source)
    if not manifests:
        raise InputError(f"{source}: contains no complete backup; name a folder that `etfarm backup` wrote")
    manifest = _read_manifest(manifests[-1])
    aside = root.with_name(f"{root.name}.restoring")
    aside.mkdir(parents=True, exist_ok=True)
    damaged = [name for name, kept in manifest.files.items() if not _restore_file(kept, source, aside / name)]
    if damaged:
        raise BackupError(
            f"{source}: damaged or missing: {len(damaged)} of {len(manifest.files)} files, first {damaged[0]}; "
            f"all others are in {aside}; restore another copy of the backup"
        )
    for path in _files(aside):
        if path.relative_to(aside).as_posix() not in manifest.files:  # of an older backup, restored in part
            path.unlink()
    aside.rename(root)
    return manifest


def _copy(root: Path, target: Path, known: dict[str, Kept]) -> Backup:
    files: dict[str, Kept] = {}
    copied = copied_bytes = 0
    for path in (path for name in FOLDERS if (root / name).is_dir() for path in _files(root / name)):
        name, about = path.relative_to(root).as_posix(), path.stat()
        kept = known.get(name)
        if not (kept and (kept.size_bytes, kept.mtime_ns) == (about.st_size, about.st_mtime_ns)):
            kept = None
        if kept is None or not _is_kept(kept, target):
            # The farm replaces files and never changes them, so what was opened stays as it is.
            with path.open("rb") as stream:
                about = os.fstat(stream.fileno())
                sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
                kept = Kept(sha256=sha256, size_bytes=about.st_size, mtime_ns=about.st_mtime_ns)
                if not _is_kept(kept, target):
                    stream.seek(0)
                    write_complete(kept.object_in(target), stream)
                    copied, copied_bytes = copied + 1, copied_bytes + kept.size_bytes
        files[name] = kept
    return Backup(Manifest(files=files), copied, copied_bytes)


def _restore_file(kept: Kept, source: Path, path: Path) -> bool:
    """Copy one file unless it is there; return whether its content is right."""
    if not (path.is_file() and sha256_of(path) == kept.sha256):
        try:
            with kept.object_in(source).open("rb") as stream:
                write_complete(path, stream)
        except FileNotFoundError:
            return False
        if sha256_of(path) != kept.sha256:
            path.unlink()
            return False
    os.utime(path, ns=(kept.mtime_ns, kept.mtime_ns))
    return True


def _is_kept(kept: Kept, target: Path) -> bool:
    path = kept.object_in(target)
    return path.is_file() and path.stat().st_size == kept.size_bytes


def _files(folder: Path) -> Iterator[Path]:
    """Yield all complete files below a folder, but not what labs share, which can be made again.

    Raises FileNotFoundError if a folder disappears meanwhile.
    """
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith((UNFINISHED, SHARED_FOLDER)):
            continue
        if entry.is_dir():
            yield from _files(entry)
        else:
            yield entry


def _manifests(folder: Path) -> list[Path]:
    return sorted(folder.glob("backup-*.json"))


def _read_manifest(path: Path) -> Manifest:
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except ValidationError as error:
        cause = error.errors()[0]["msg"]
        raise BackupError(f"{path}: damaged ({cause}); move it away to use the backup before it") from None
