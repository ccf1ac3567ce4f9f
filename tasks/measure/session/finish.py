"""The end of a session: there is always a record, and the load accepts every record of success."""

import contextlib
import logging
import traceback
from collections.abc import Callable
from pathlib import Path

from pydantic import ValidationError

from devices.errors import FarmError
from devices.inventory import DeviceSpec
from devices.ondevice.facts import Facts
from devices.untrusted import excerpt
from tasks.bundle.names import RECORD
from tasks.bundle.record import FileRecord, SessionRecord
from tasks.bundle.session_json import record_text
from tasks.bundle.values import first_mistake
from tasks.etdump.tree import Runs
from tasks.measure.plan import PlannedSession
from tasks.measure.session.check import Unsuccessful
from tasks.measure.session.record import Findings, now, session_record
from tasks.rows.rows import rows_of_bundle
from tasks.runner.manifest import Runner
from tasks.store.files import scratch_folder, sha256_of
from tasks.store.store import BundleStore

_log = logging.getLogger(__name__)
_ERROR_FILE = "farm_error.txt"


def unexpected(error: Exception, title: str, collected: Path) -> Unsuccessful:
    """Return the end of a session that an unforeseen error stopped; its trace is kept in the bundle."""
    cause = excerpt(f"{type(error).__name__}: {error}")
    text = "".join(traceback.format_exception(error)).encode(errors="replace")
    with contextlib.suppress(OSError):  # publishing the bundle reports a full disk
        (collected / _ERROR_FILE).write_bytes(text)
    _log.error("%s: unexpected error (%s)", title, cause)
    return Unsuccessful("failed", "farm_error", f"unexpected error ({cause}); report it with {_ERROR_FILE}")


def checked_record(
    build: Callable[[Findings, Facts], SessionRecord], found: Findings, facts: Facts, title: str, collected: Path
) -> SessionRecord:
    """Return the record of a session from `build`, or that of a failure if the load would refuse its bundle."""
    try:
        record = build(found, facts)
        check_loadable(record, collected, found.runs)
        return record
    except ValidationError as error:
        end = _not_loadable(first_mistake(error))
    except FarmError as error:
        end = _not_loadable(str(error).replace(f"{collected}/", ""))
    except Exception as error:
        end = unexpected(error, title, collected)
    # What the device sent is left out, since a part of it is wrong; if the facts are that part, they are too.
    bare = Findings(command=found.command, gates=found.gates, end=found.end or end)
    with contextlib.suppress(Exception):
        record = build(bare, facts)
        check_loadable(record, collected)
        return record
    return build(bare, Facts())


def _not_loadable(cause: str) -> Unsuccessful:
    return Unsuccessful("failed", "not_loadable", f"the warehouse would refuse its bundle: {cause}")


def check_loadable(record: SessionRecord, collected: Path, runs: Runs | None = None) -> None:
    """Read the bundle as the load will; raises FarmError with the reason why it would be refused.

    `collected` are its files; `runs` are those of its ETDump if this process has just read them.
    """
    files = {
        path.name: FileRecord(sha256=sha256_of(path), bytes=path.stat().st_size)
        for path in collected.iterdir()
        if path.is_file()
    }
    path = collected / RECORD
    try:
        path.write_bytes(record_text(record.model_copy(update={"files": files})))
        rows_of_bundle(collected, runs)
    finally:
        path.unlink(missing_ok=True)


def record_unmeasured(
    session: PlannedSession,
    spec: DeviceSpec,
    facts: Facts,
    runner: Runner | None,
    code: str,
    reason: str,
    bundles: BundleStore,
) -> SessionRecord:
    """Write the bundle of a session that could not start (export or runner missing, device lost) as failed.

    `runner` is the runner of the plan; it is part of the session's identity, which the next start compares.
    """
    found = Findings(end=Unsuccessful("failed", code, reason))
    record = session_record(session, spec, facts, None, runner, found, now(), None)
    with scratch_folder() as nothing:
        return bundles.publish(record, nothing)
