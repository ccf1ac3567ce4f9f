"""Model -> .pte, ETRecord, seeded reference inputs and eager outputs; made once per content, in a separate process.

That process is `python -m tasks.export` (child.py): the memory of torch, a crash or a hang of an export does not affect
the farm.
"""

import contextlib
import errno
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from devices.errors import FarmError
from devices.suggest import did_you_mean
from tasks.cell import RecordedPrecision
from tasks.export.key import EXPORT_VERSION, export_key, source_sha256, versions
from tasks.export.precision import PRECISIONS
from tasks.files import remove_leftovers, sha256_of

logger = logging.getLogger(__name__)
_LOOK_S = 1.0


class ExportError(FarmError):
    """A model cannot be exported; the text is one sentence: model, precision, cause, where the full log is."""


@dataclass(frozen=True)
class Export:
    """An exported model on disk: its folder and the content of export.json.

    `inputs` and `outputs` are {file, dtype, shape, sha256}, `delegated` {operator, count}, `portable` {operator, count,
    reason}; outputs are the eager reference in the same precision, of the fp32 model for int8.
    """

    folder: Path
    export_key: str
    model: str
    precision: RecordedPrecision
    seed: int
    pte_sha256: str
    pte_bytes: int
    versions: dict[str, str | None]
    inputs: list[dict[str, Any]]
    outputs: list[dict[str, Any]]
    delegated: list[dict[str, Any]]
    portable: list[dict[str, Any]]
    export_s: float
    source_sha256: str | None = None
    """Of the files that the model was made from; None in an export of an older farm."""

    @property
    def pte(self) -> Path:
        """The program that the runner loads."""
        return self.folder / "model.pte"

    @property
    def etrecord(self) -> Path:
        """The ETRecord, which maps the program's events to the source model."""
        return self.folder / "model.etrecord"


def export_model(model: str, precision: str, exports_dir: Path, *, seed: int = 0, deadline_s: float = 900) -> Export:
    """Return the export of `model` (a short name of the zoo, or package.module:factory); create it if it is missing.

    An existing export is checked against its hashes and made again if it does not match. Raises ExportError.
    """
    title = f"cannot export {model} as {precision}"
    if precision not in PRECISIONS:
        hint = did_you_mean(precision, PRECISIONS)
        raise ExportError(f"{title}: unknown precision; use one of {', '.join(PRECISIONS)}{hint}")
    exports_dir = exports_dir.absolute()
    try:
        key = export_key(model, precision, seed, exports_dir)
        found = _read_if_complete(exports_dir / key)
        if found is not None:
            (found.folder / "export.json").touch()  # in use: `etfarm prune` leaves it
            # An older farm did not record the hash of the source. The key, which it recorded, covers the same files.
            return replace(found, source_sha256=found.source_sha256 or source_sha256(model, exports_dir))
        missing = [name for name in ("torch", "executorch") if versions()[name] is None]
        if missing:
            raise ExportError(f"{title}: {' and '.join(missing)} not installed; install the farm's export extra")
        log = exports_dir / "logs" / f"{key}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        return _export_in_child(model, precision, exports_dir, seed, deadline_s, log)
    except ExportError:
        raise
    except FarmError as error:
        raise ExportError(f"{title}: {error}") from None
    except OSError as error:
        raise ExportError(f"{title}: {os_cause(error, exports_dir)}") from None


def read_export(folder: Path) -> Export:
    """Return the export in `folder`; raises ExportError if export.json is missing, damaged or of another version."""
    try:
        described = json.loads((folder / "export.json").read_bytes())
        if described.pop("export_version") != EXPORT_VERSION:
            raise ExportError(f"{folder / 'export.json'}: written by another version; export the model again")
        return Export(folder=folder, **described)
    except FileNotFoundError:
        raise ExportError(f"{folder}: export.json is missing; export the model again") from None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        cause = first_line(error)
        raise ExportError(f"{folder / 'export.json'}: the file is damaged ({cause}); export the model again") from None


def kept_export(exports_dir: Path, key: str | None, pte_sha256: str | None) -> Export:
    """Return an earlier export by its key and the hash of its .pte file; raises ExportError if it is not kept."""
    export = _read_if_complete(exports_dir / key) if key else None
    if export is None or export.pte_sha256 != pte_sha256:
        raise ExportError(f"its .pte file ({(pte_sha256 or 'unknown')[:8]}) is not in {exports_dir} any more")
    return export


def _read_if_complete(folder: Path) -> Export | None:
    """Return the export in `folder` if every file matches its hash; remove a damaged export and return None."""
    if not folder.is_dir():
        return None
    try:
        export = read_export(folder)
        wanted = {"model.pte": export.pte_sha256} | {
            entry["file"]: entry["sha256"] for entry in (*export.inputs, *export.outputs)
        }
        damaged = [name for name, sha256 in wanted.items() if sha256_of(folder / name) != sha256]
        if not damaged and export.etrecord.is_file():
            return export
        cause = f"{', '.join(damaged) or 'model.etrecord'} differs from what was written"
    except (ExportError, OSError, TypeError, KeyError) as error:
        cause = first_line(error)
    logger.warning("the export in %s is damaged and will be made again: %s", folder, cause)
    aside = folder.with_name(f".part-{os.getpid()}-{uuid.uuid4().hex[:8]}")
    with contextlib.suppress(FileNotFoundError):  # another process may have moved it first
        folder.rename(aside)
    shutil.rmtree(aside, ignore_errors=True)
    return None


def _export_in_child(model: str, precision: str, exports_dir: Path, seed: int, deadline_s: float, log: Path) -> Export:
    """Export in a child process and return the published export."""
    logger.info("exporting %s %s", model, precision)
    arguments = [model, precision, os.fspath(exports_dir), "--seed", str(seed), "--parent", str(os.getpid())]
    try:
        answer = _run_child(arguments, log, deadline_s)
    finally:
        for folder in (exports_dir, exports_dir / "used"):
            remove_leftovers(folder)
    if "error" in answer:
        raise ExportError(f"cannot export {model} as {precision}: {answer['error']}; the full log is {log}")
    export = read_export(exports_dir / answer["folder"])
    logger.info(
        "exported %s %s in %.1f s: %.2f MB, %d delegated and %d portable operators",
        model,
        precision,
        export.export_s,
        export.pte_bytes / 1e6,
        sum(entry["count"] for entry in export.delegated),
        sum(entry["count"] for entry in export.portable),
    )
    return export


def _run_child(arguments: list[str], log: Path, deadline_s: float) -> dict[str, str]:
    """Run `main` in a separate process group, killed at the deadline; return its answer or an error."""
    # -P: the folder of the models must not hide the farm's packages; PYTHONPATH: the child uses those of this process.
    command = [sys.executable, "-P", "-m", "tasks.export", *arguments]
    path = os.pathsep.join(filter(None, [os.fspath(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]))
    # With a fixed hash seed, sets of names have the same order and the same model gives the same bytes.
    environment = os.environ | {"PYTHONPATH": path, "PYTHONHASHSEED": "0"}
    # The answer goes to a file and not to a pipe: a process that the model leaves running would keep a pipe open.
    with tempfile.TemporaryFile() as output, log.open("wb") as stream:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=stream, env=environment, start_new_session=True
        )
        try:
            child.wait(deadline_s)
        except subprocess.TimeoutExpired:
            return {"error": f"the export did not finish within {deadline_s:g} s"}
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        output.seek(0)
        answer: dict[str, str] = json.loads(output.read() or b"{}") or {"error": _exit_cause(child.returncode)}
        return answer


def _exit_cause(returncode: int) -> str:
    if returncode == -signal.SIGKILL:
        return "the export process was killed, possibly out of memory"
    if returncode < 0:
        return f"the export process was killed by {signal.Signals(-returncode).name}"
    return f"the export process exited with code {returncode}"


def os_cause(error: OSError, exports_dir: Path) -> str:
    """Return the cause of an operating system error; for a full disk, also what to do."""
    if error.errno == errno.ENOSPC:
        return f"no space left on the disk of {exports_dir}; free space and export again"
    return f"{error.strerror}: {error.filename}" if error.filename else first_line(error)


def first_line(error: Exception) -> str:
    """Return the first line of an error's text, after the name of its class unless it is an ExportError."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else ""
    return text if isinstance(error, ExportError) else f"{type(error).__name__}: {text}"[:400].rstrip(": ")
