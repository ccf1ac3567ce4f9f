"""What is known of an export before it is made: for a plan, in milliseconds, without torch and without a change."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from devices.errors import FarmError
from tasks.export.entry import ModelEntry
from tasks.export.export import is_shared, skipped_path
from tasks.export.exported import Export, ExportError, read_exports
from tasks.export.key import export_key, files_to_read
from tasks.export.prebuilt import describe_prebuilt
from tasks.store.blob_store import BlobStore

_MOST_READ_BYTES = 100_000_000
State = Literal["ready", "shared", "to export", "skipped", "unknown", "wrong"]


@dataclass(frozen=True)
class KnownExport:
    """One model by one recipe: whether it is exported, and its cases if it is."""

    title: str
    state: State
    """shared: another machine has exported it; skipped: the recipe has no meaning for the model; unknown: only reading
    gigabytes would tell; wrong: it cannot be exported."""
    cases: tuple[Export, ...] | None = None
    """None unless it is ready, or skipped: then there are none."""
    note: str = ""
    """Why it is skipped, unknown or wrong."""


def known_export(
    entry: ModelEntry, recipe: str, exports_dir: Path, seed: int, shelf: BlobStore | None, *, taps: bool
) -> KnownExport:
    """Return what is known of the export of a model by a recipe; with `taps` also of the program of mode numerics.

    Files of an export are not compared with their hashes, as an export does. Raises BundleError if the storage with
    shared exports does not answer.
    """
    title = f"{entry.name} {recipe}"
    try:
        size = sum(path.stat().st_size for path in files_to_read(entry, recipe, exports_dir) if path.is_file())
        if size > _MOST_READ_BYTES:
            return KnownExport(title, "unknown", note=f"{size / 1e9:.1f} GB of files decide, and were not read")
        key = describe_prebuilt(entry, seed)[0] if entry.pte else export_key(entry, recipe, seed, exports_dir)
    except (FarmError, OSError) as error:
        return KnownExport(title, "wrong", note=str(error))
    if cases := _kept(exports_dir / key):
        tapped = _kept(exports_dir / export_key(entry, recipe, seed, exports_dir, taps=True)) if taps else None
        if tapped and len(tapped) == len(cases):
            cases = tuple(replace(case, tapped=each) for case, each in zip(cases, tapped, strict=True))
        return KnownExport(title, "ready", cases)
    skipped = skipped_path(exports_dir, key)
    if skipped.is_file():
        return KnownExport(title, "skipped", (), skipped.read_text(encoding="utf-8"))
    return KnownExport(title, "shared" if shelf and is_shared(shelf, key) else "to export")


def _kept(folder: Path) -> tuple[Export, ...] | None:
    """Return the cases of an export whose program is complete."""
    try:
        exports = read_exports(folder)
        return exports if exports[0].pte.stat().st_size == exports[0].pte_bytes else None
    except (ExportError, OSError):
        return None
