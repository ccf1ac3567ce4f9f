"""Export a model: .pte, ETRecord, seeded inputs and eager outputs; made once per content, in a separate process.

process/run.py starts it: a crash or a hang of an export, and the memory of torch, do not affect the farm.
"""

import logging
from pathlib import Path

from devices.errors import FarmError
from sql.schema import is_scalar_operator
from tasks.export.entry import ModelEntry, entry_of
from tasks.export.exported import Export, ExportError, os_cause, read_complete, read_exports
from tasks.export.given import given_export
from tasks.export.key import check_own, export_key, versions
from tasks.export.process.child import Request
from tasks.export.process.run import Tell, run_export
from tasks.export.shared import fetch, publish
from tasks.store.blob_store import BlobStore
from tasks.store.files import remove_leftovers, write_complete

logger = logging.getLogger(__name__)


class NotApplicableError(ExportError):
    """A recipe has no meaning for a model, so that the pair is skipped; the text is one sentence with the reason."""


def export_cases(
    model: str | ModelEntry,
    precision: str,
    exports_dir: Path,
    *,
    seed: int = 0,
    deadline_s: float = 900,
    shelf: BlobStore | None = None,
    taps: bool = False,
    tell: Tell = lambda *_: None,
) -> tuple[Export, ...]:
    """Return the cases of the export of a model by a recipe; export it if it is missing here and on the `shelf`.

    With `taps`, its program returns the values of the model's layers as well, and is not the one to measure.
    `tell` gets the steps of an export that is made.
    An existing export is checked against its hashes and made again if it does not match. A .pte file that exists
    already is copied, whatever the recipe. Raises ExportError, and NotApplicableError for a pair without meaning.
    """
    title = f"cannot export {model if isinstance(model, str) else model.name} as {precision}"
    exports_dir = exports_dir.absolute()
    try:
        entry = entry_of(model)
        if entry.pte and taps:
            raise ExportError(f"{title}: layers of a .pte file that exists already cannot be read; bring its model")
        found = kept_cases(entry, precision, exports_dir, seed=seed, taps=taps)
        key = "" if entry.pte else export_key(entry, precision, seed, exports_dir, taps=taps)
        if found is None and shelf and fetch(shelf, key, exports_dir):
            found = read_complete(exports_dir / key)
        if found is not None:
            (found[0].folder / "export.json").touch()  # in use: `etfarm warehouse prune` leaves it
            return found
        missing = [name for name in ("torch", "executorch") if versions()[name] is None]
        if missing:
            raise ExportError(f"{title}: {' and '.join(missing)} not installed; install the farm's export extra")
        log = exports_dir / "logs" / f"{key}.log"
        request = Request(entry, precision, exports_dir, seed, taps, log, deadline_s)
        made = _export_in_child(request, tell)
        if shelf:
            publish(shelf, made[0].folder)
        return made
    except ExportError:
        raise
    except FarmError as error:
        raise ExportError(f"{title}: {error}") from None
    except OSError as error:
        raise ExportError(f"{title}: {os_cause(error, exports_dir)}") from None


def kept_cases(
    entry: ModelEntry, precision: str, exports_dir: Path, *, seed: int = 0, taps: bool = False
) -> tuple[Export, ...] | None:
    """Return the cases of an export that is complete here, or of a .pte file; None if the export must be made.

    Raises FarmError for an unknown model or recipe, and NotApplicableError for a pair without meaning.
    """
    if entry.pte:
        return given_export(entry, exports_dir, seed)
    check_own(entry, precision)
    key = export_key(entry, precision, seed, exports_dir, taps=taps)
    found = read_complete(exports_dir / key)
    if found is None:
        _raise_if_skipped(exports_dir, key)
    return found


def export_model(
    model: str | ModelEntry, precision: str, exports_dir: Path, *, seed: int = 0, deadline_s: float = 900
) -> Export:
    """Return the first case of the export of a model, its only one unless it has several methods or shapes."""
    return export_cases(model, precision, exports_dir, seed=seed, deadline_s=deadline_s)[0]


def skipped_path(exports_dir: Path, key: str) -> Path:
    """Return the file with the reason why a recipe has no meaning for the model of this key, if that was found."""
    return exports_dir / "skipped" / f"{key}.txt"


def _raise_if_skipped(exports_dir: Path, key: str) -> None:
    """Raise NotApplicableError if an earlier export of the same content found that the recipe has no meaning."""
    path = skipped_path(exports_dir, key)
    if path.is_file():
        raise NotApplicableError(path.read_text(encoding="utf-8"))


def _export_in_child(request: Request, tell: Tell) -> tuple[Export, ...]:
    """Export in a child process and return the published export."""
    entry, precision, exports_dir, log = request.entry, request.precision, request.exports_dir, request.log
    title = f"{entry.name} {precision}"
    logger.info("exporting %s", title)
    log.parent.mkdir(parents=True, exist_ok=True)
    try:
        answer = run_export(request, tell)
    finally:
        for folder in (exports_dir, exports_dir / "used"):
            remove_leftovers(folder)
    if reason := answer.get("skipped"):
        # Under the key as it is now: what the export has used is known only since it ran.
        key = export_key(entry, precision, request.seed, exports_dir, taps=request.taps)
        write_complete(skipped_path(exports_dir, key), reason.encode())
        raise NotApplicableError(reason)
    if "error" in answer:
        raise ExportError(f"cannot export {entry.name} as {precision}: {answer['error']}; the full log is {log}")
    exports = read_exports(exports_dir / answer["folder"])
    export = exports[0]
    logger.info(
        "exported %s in %.1f s: %.2f MB, %d delegated and %d portable operators",
        title,
        export.export_s,
        export.pte_bytes / 1e6,
        sum(entry["count"] for entry in export.delegated),
        sum(entry["count"] for entry in export.portable if not is_scalar_operator(entry["operator"])),
    )
    return exports
