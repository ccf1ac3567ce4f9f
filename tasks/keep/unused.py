"""Exports and built runners that no recent bundle refers to, and their archives that no lab uses."""

from collections.abc import Iterable
from pathlib import Path

from tasks.bundle.record import SessionRecord
from tasks.prepare.runner.manifest import MANIFEST, RunnerError, read_runner
from tasks.store.archives import SUFFIX


def unused_folders(exports: Path, runners: Path, recent: Iterable[SessionRecord], *, before_s: float) -> list[Path]:
    """Return the folders of exports and runners that `recent` bundles do not refer to and that are old.

    Old means written before `before_s` (seconds since 1970): what was made for a sweep that has just started is in no
    bundle yet. Registered runners are never returned, because the farm cannot build them again.
    """
    keys: set[str | None] = set()
    hashes: set[str] = set()
    for record in recent:
        keys.add(record.model.export_key)
        hashes |= {record.runner.runner_sha256} if record.runner else set()
    found = [
        path.parent
        for path in sorted(exports.glob("[!.]*/export.json"))
        if path.parent.name not in keys and path.stat().st_mtime < before_s
    ]
    for manifest in sorted(runners.glob(f"[!.]*/[!.]*/{MANIFEST}")):
        if manifest.stat().st_mtime < before_s and _is_built(manifest.parent, hashes):
            found.append(manifest.parent)
    return found


def unused_archives(shared: Path, *, before_s: float) -> list[Path]:
    """Return the archives of exports and runners that labs have not used since `before_s` (seconds since 1970)."""
    archives = (path for name in ("exports", "runners") for path in sorted((shared / name).rglob(f"[!.]*{SUFFIX}")))
    return [path for path in archives if path.stat().st_mtime < before_s]


def _is_built(folder: Path, used: set[str]) -> bool:
    try:
        runner = read_runner(folder)
    except RunnerError:
        return False
    return runner.kind != "registered" and runner.runner_sha256 not in used
