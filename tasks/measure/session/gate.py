"""The gate for the files of a session: how large each may be, and what stats.json may contain.

Everything else that a device sends has its limit where it is read: devices/untrusted.py and Device.output_limit_bytes.
"""

import logging
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from devices.device import Device
from devices.errors import FileMissing, FileRefused
from devices.untrusted import read_json, save_fetched
from tasks.bundle.names import ETDUMP, MOST_FILE_BYTES, MOST_LOG_BYTES, PROFILE, SELECTED, STATS
from tasks.bundle.runner_stats import Stats
from tasks.bundle.values import first_mistake
from tasks.export.exported import Export
from tasks.measure.plan import PlannedSession
from tasks.measure.session.check import Unsuccessful
from tasks.measure.session.logs import LOGS, fetch_cut
from tasks.runner.manifest import Runner

_log = logging.getLogger(__name__)
_MOST_STATS_BYTES = 64 << 20
_PROFILE_BYTES = 16 << 20
_EMPTY_BYTES = 1 << 20
# Generous: an event takes about 100 bytes, and a delegate can report several for one operator.
_EVENT_BYTES = 512
_EVENTS_PER_OPERATOR = 4
_EVENTS_PER_EXECUTION = 64
_DURATION_BYTES = 32  # of one execution in stats.json


def file_limits(session: PlannedSession, export: Export, runner: Runner) -> dict[str, int]:
    """Return the names of the files that a run may leave, each with its limit in bytes."""
    executions = session.cell.executions
    limits = dict.fromkeys(LOGS, MOST_LOG_BYTES)
    limits[ETDUMP] = _etdump_limit(executions, export)
    for number, entry in enumerate([*export.outputs, *export.case.taps]):
        limits[f"output-{number}.bin"] = (export.folder / entry["file"]).stat().st_size
    if runner.supports_farm_flags:
        limits[STATS] = min(_EMPTY_BYTES + 2 * executions * _DURATION_BYTES, _MOST_STATS_BYTES)
        if session.cell.mode == "profile":
            limits[PROFILE] = _PROFILE_BYTES
        if session.cell.mode == "selected":
            limits[SELECTED] = _PROFILE_BYTES
    return limits


def collect_files(
    device: Device, folder: str, limits: dict[str, int], sent: Mapping[str, bytes | None], to: Path, mode: str
) -> list[Unsuccessful]:
    """Write the files of a run that exist to the folder `to`; return why each of the others was refused.

    Those in `sent` came with the result of the job (None: the file did not exist), the others are fetched. A log that
    is too long is cut, except in mode `trace`, where it is the result. Raises DeviceError.
    """
    refused = []
    for name, limit_bytes in limits.items():
        remote = f"{folder}/{name}"
        try:
            if name not in sent:
                device.fetch(remote, to / name, limit_bytes=limit_bytes)
            elif (content := sent[name]) is not None:
                save_fetched(device.name, remote, [content], to / name, limit_bytes)
        except FileMissing:
            continue
        except FileRefused as error:
            if name in LOGS and mode != "trace" and fetch_cut(device, remote, to / name):
                continue
            code = "wrong_output" if name.startswith("output-") else "file_refused"
            refused.append(Unsuccessful("failed", code, str(error)))
    return refused


def read_stats(collected: Path) -> Stats | None:
    """Return what stats.json contains, None if there is no such file; Unsuccessful if it does not match its schema."""
    path = collected / STATS
    if not path.is_file():
        return None
    try:
        stats = read_json(Stats, path.read_bytes())
    except ValidationError as error:
        reason = f"{STATS} does not match its schema ({first_mistake(error)}); check the runner"
        raise Unsuccessful("failed", "bad_stats", reason) from None
    if stats.unknown:
        _log.warning("%s: this farm does not know %s; the bundle keeps them", STATS, ", ".join(stats.unknown))
    return stats


def _etdump_limit(executions: int, export: Export) -> int:
    operators = sum(int(entry["count"]) for entry in (*export.delegated, *export.portable))
    events = executions * (_EVENTS_PER_EXECUTION + _EVENTS_PER_OPERATOR * operators)
    return min(_EMPTY_BYTES + events * _EVENT_BYTES, MOST_FILE_BYTES)
