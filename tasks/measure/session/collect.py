"""The files that a run leaves on a device: how large each may be, its logs, and what stats.json may contain.

Everything else that a device sends has its limit where it is read: devices/untrusted.py and Device.output_limit_bytes.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from devices import retry
from devices.device import Device
from devices.errors import DeviceError, FileMissing, FileRefused
from devices.shell import call
from devices.untrusted import read_json, save_fetched
from tasks.bundle.names import COUNTS, ETDUMP, MAX_FILE_BYTES, MAX_LOG_BYTES, PROFILE, STATS
from tasks.bundle.runner_stats import Stats
from tasks.bundle.values import first_mistake
from tasks.export.exported import Export
from tasks.measure.plan import PlannedSession
from tasks.measure.session.check import Unsuccessful
from tasks.runner.manifest import Runner

_log = logging.getLogger(__name__)
LOGS = ("stdout.txt", "stderr.txt")
_END_BYTES = 1 << 20
_CUT_HERE = f"\n[etfarm: this log has more than {MAX_LOG_BYTES} bytes; its middle was cut here]\n"
_SCRIPT = '[ -f "$1" ] && [ ! -L "$1" ] || exit 3; head -c "$2" "$1" && printf %s "$4" && tail -c "$3" "$1"'
_PID_FILE = "runner.pid"
_MAX_ERROR_BYTES = 400
_MAX_STATS_BYTES = 64 << 20
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
    operators = sum(int(entry["count"]) for entry in (*export.delegated, *export.portable))
    events = executions * (_EVENTS_PER_EXECUTION + _EVENTS_PER_OPERATOR * operators)
    limits = dict.fromkeys(LOGS, MAX_LOG_BYTES)
    limits[ETDUMP] = min(_EMPTY_BYTES + events * _EVENT_BYTES, MAX_FILE_BYTES)
    for number, entry in enumerate([*export.outputs, *export.case.taps]):
        limits[f"output-{number}.bin"] = (export.folder / entry["file"]).stat().st_size
    if runner.supports_farm_flags:
        limits[STATS] = min(_EMPTY_BYTES + 2 * executions * _DURATION_BYTES, _MAX_STATS_BYTES)
        if session.cell.mode == "profile":
            limits[PROFILE] = _PROFILE_BYTES
        if session.cell.mode == "counts":
            limits[COUNTS] = _PROFILE_BYTES
    return limits


def collect_files(
    device: Device, folder: str, limits: dict[str, int], sent: Mapping[str, bytes | None], to: Path, mode: str
) -> list[Unsuccessful]:
    """Write the files named in `limits` that a run left in `folder` to the folder `to`; return why some were refused.

    A missing file is skipped; one above its limit of bytes, or that cannot be taken, is refused.

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
            if name in LOGS and mode != "trace" and _fetch_cut(device, remote, to / name):
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


def _fetch_cut(device: Device, remote: str, local: Path) -> bool:
    """Write beginning and end of a device's long log; False if it was not printed (a link). DeviceError."""
    sizes = [str(MAX_LOG_BYTES - _END_BYTES), str(_END_BYTES)]
    result = device.run(["sh", "-c", _SCRIPT, "sh", remote, *sizes, _CUT_HERE], deadline_s=retry.LOG.timeout_s)
    if result.exit_code != 0:
        return False
    local.write_bytes(result.stdout)
    return True


def recording_pid(command: Sequence[str]) -> list[str]:
    """Return the command with a prefix that writes its process id to `runner.pid` in its working folder."""
    return ["sh", "-c", f'echo $$ >{_PID_FILE}; exec "$@"', "sh", *command]


def logcat_moment(device: Device) -> str:
    """Return the device's time in the format of `logcat -T`: month-day hour:minute:second.000."""
    return call(device, ["date", "+%m-%d %H:%M:%S.000"]).strip()


def collect_logcat(device: Device, folder: str, since: str, local: Path) -> None:
    """Write to `local` what the process in `folder/runner.pid` logged since the time `since`.

    XNNPACK logs to logcat on a phone. The log of a shared device is never cleared. Raises DeviceError if logcat is
    missing or fails; `local` is then not written.
    """
    pid = call(device, ["cat", f"{folder}/{_PID_FILE}"]).strip()
    command = ["logcat", "-d", "-v", "threadtime", "-T", since, f"--pid={pid}"]
    result = device.run(command, deadline_s=retry.LOG.timeout_s)
    if result.exit_code != 0:
        printed = result.stderr[:_MAX_ERROR_BYTES].decode(errors="replace").strip()
        raise DeviceError(device.name, f"cannot read its log (logcat: {printed})", "check `adb shell logcat -d`")
    local.write_bytes(result.stdout)
