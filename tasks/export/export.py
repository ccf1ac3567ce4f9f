"""Export a model once for each content key, in a separate process: .pte, ETRecord, seeded inputs, eager outputs.

A crash or a hang of an export, and the memory of torch, do not affect the farm. Machines may share their exports: one
archive for each key in object storage.
"""

import logging
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from devices.errors import FarmError
from sql.schema import is_scalar_operator
from tasks.bundle.runtime import parse_runtime
from tasks.export.entry import ExportRequest
from tasks.export.exported import (
    Export,
    ExportError,
    NotApplicableError,
    NotHereError,
    os_cause,
    read_complete,
    read_exports,
)
from tasks.export.key import check_user_functions, export_key, versions
from tasks.export.lowering.delegates import Lowering
from tasks.export.process.environments import stated_environment
from tasks.export.recipes import parse_recipe
from tasks.store.archives import SUFFIX, ArchiveError, download_folder, upload_folder
from tasks.store.blob_store import BlobStore
from tasks.store.files import remove_leftovers, work_folder, write_complete

if TYPE_CHECKING:
    from tasks.export.process.run import OnStep

logger = logging.getLogger(__name__)


def export_cases(
    request: ExportRequest, *, shared_files: BlobStore | None = None, on_step: "OnStep" = lambda *_: None
) -> tuple[Export, ...]:
    """Return the cases of an export: the one on this machine, otherwise that in `shared_files`, otherwise a new one.

    A new one is uploaded to `shared_files`; `on_step` receives its steps. An export that does not match its hashes is
    made again. A prebuilt .pte file is copied, for any recipe. A failed download or upload is only logged.
    Raises ExportError; NotApplicableError if the recipe has no meaning for the model, or this machine cannot export it.
    """
    exports_dir, model = request.exports_dir.absolute(), request.model
    title = f"cannot export {model if isinstance(model, str) else model.name} as {request.precision}"
    try:
        request = replace(request, model=request.entry, exports_dir=exports_dir)
        if request.entry.pte and request.taps:
            raise ExportError(f"{title}: layers of a .pte file that exists already cannot be read; bring its model")
        environment = stated_environment(request.entry.name, exports_dir)
        if environment:
            environment.install(lambda step: on_step(step, False))
        exports = read_local_export(request)
        key = "" if request.entry.pte else export_key(request)
        if exports is None and shared_files:
            try:
                exports = fetch_export(shared_files, key, exports_dir) if is_shared(shared_files, key) else None
            except FarmError as error:
                logger.warning("%s; it will be exported here", error)
        if exports is not None:
            (exports[0].folder / "export.json").touch()  # marks it as used, so `etfarm warehouse prune` keeps it
            return exports
        if not environment:
            _check_possible(request, key)
        exports = _export_in_child(request, title, exports_dir / "logs" / f"{key}.log", on_step)
        if shared_files:
            try:
                upload_folder(shared_files, _archive_name(exports[0].folder.name), exports[0].folder)
            except FarmError as error:  # the next machine makes it itself
                logger.warning("the export %s could not be uploaded: %s", exports[0].folder.name, error)
        return exports
    except ExportError:
        raise
    except FarmError as error:
        raise ExportError(f"{title}: {error}") from None
    except OSError as error:
        raise ExportError(f"{title}: {os_cause(error, exports_dir)}") from None


def _check_possible(request: ExportRequest, key: str) -> None:
    """Raise a FarmError if packages are missing, NotApplicableError if the delegates cannot lower; imports no torch."""
    missing = [name for name in ("torch", "executorch") if versions()[name] is None]
    if missing:
        raise FarmError(f"{' and '.join(missing)} not installed; install the farm's export extra")
    try:
        Lowering(parse_runtime(request.entry.name).delegate).check_recipe(parse_recipe(request.precision))
    except NotHereError:  # another machine can
        raise
    except NotApplicableError as reason:
        write_complete(skipped_path(request.exports_dir, key), str(reason).encode())
        raise


def read_local_export(request: ExportRequest) -> tuple[Export, ...] | None:
    """Return the cases of a complete or prebuilt export; None if it must be made. FarmError, NotApplicableError."""
    if request.entry.pte:
        from tasks.export.prebuilt import import_prebuilt

        return import_prebuilt(request.entry, request.exports_dir, request.seed)
    check_user_functions(request)
    environment = stated_environment(request.entry.name, request.exports_dir)
    if environment and not environment.is_installed:  # what it contains is part of the key
        return None
    key = export_key(request)
    exports = read_complete(request.exports_dir / key)
    skipped = skipped_path(request.exports_dir, key)
    if exports is None and skipped.is_file():
        raise NotApplicableError(skipped.read_text(encoding="utf-8"))
    return exports


def skipped_path(exports_dir: Path, key: str) -> Path:
    """Return the path of the file with the reason why this export was skipped; it exists only if it was."""
    return exports_dir / "skipped" / f"{key}.txt"


def failed_path(exports_dir: Path, key: str) -> Path:
    """Return the path of the file with the error of this export; only one for the mode numerics writes it."""
    return exports_dir / "failed" / f"{key}.txt"


def _export_in_child(request: ExportRequest, title: str, log: Path, on_step: "OnStep") -> tuple[Export, ...]:
    """Export in a child process and return the cases; errors begin with `title`. Records why an export is skipped."""
    from tasks.export.process.run import run_export  # imports multiprocessing, and a plan exports nothing

    name, precision, exports_dir = request.entry.name, request.precision, request.exports_dir
    logger.info("exporting %s %s", name, precision)
    log.parent.mkdir(parents=True, exist_ok=True)
    try:
        answer = run_export(request, log, on_step)
    finally:
        for folder in (exports_dir, exports_dir / "used"):
            remove_leftovers(folder)
    if answer.skipped and answer.is_of_machine:
        raise NotHereError(answer.skipped)
    if answer.skipped:
        # Under the new key, which includes the files that the export used.
        write_complete(skipped_path(exports_dir, export_key(request)), answer.skipped.encode())
        raise NotApplicableError(answer.skipped)
    if answer.folder is None:
        raise ExportError(f"{title}: {answer.error}", answer.log or log)
    exports = read_exports(exports_dir / answer.folder)
    export = exports[0]
    logger.info(
        "exported %s %s in %.1f s: %.2f MB, %d delegated and %d portable operators",
        name,
        precision,
        export.export_s,
        export.pte_bytes / 1e6,
        sum(operator["count"] for operator in export.delegated),
        sum(operator["count"] for operator in export.portable if not is_scalar_operator(operator["operator"])),
    )
    return exports


def fetch_export(shared_files: BlobStore, key: str, exports_dir: Path) -> tuple[Export, ...]:
    """Return the cases of a shared export, fetched unless it is here; ExportError or BundleError if it cannot be."""
    if exports := read_complete(exports_dir / key):
        return exports
    with work_folder(exports_dir) as aside:
        unpacked = aside / key
        try:
            if not download_folder(shared_files, _archive_name(key), unpacked):
                raise ExportError(f"the export {key} is not shared")
        except ArchiveError as error:
            raise ExportError(f"the shared export {key} cannot be used: {error.cause}") from None
        exports = read_complete(unpacked)
        if exports is None or exports[0].export_key != key:
            raise ExportError(f"the shared export {key} is incomplete or another one")
        if not (exports_dir / key).is_dir():
            unpacked.rename(exports_dir / key)
    logger.info("fetched the export %s of %s %s", key, exports[0].model, exports[0].precision)
    return read_complete(exports_dir / key) or exports


def is_shared(shared_files: BlobStore, key: str) -> bool:
    """Return whether the storage has the export of this key; raises BundleError if it does not answer."""
    return shared_files.has(_archive_name(key))


def share_export(shared_files: BlobStore, folder: Path) -> str:
    """Upload an export unless it is shared; return its key. Raises BundleError if the storage does not answer."""
    if not is_shared(shared_files, folder.name):
        upload_folder(shared_files, _archive_name(folder.name), folder)
    return folder.name


def _archive_name(key: str) -> str:
    return f"exports/{key}{SUFFIX}"
