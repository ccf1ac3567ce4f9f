"""The logs of a run: a long one is cut in the middle, and only the end of one is read into memory."""

from pathlib import Path

from devices.device import Device
from tasks.bundle.names import MOST_LOG_BYTES

LOGS = ("stdout.txt", "stderr.txt")
_END_BYTES = 1 << 20
_TAIL_BYTES = 4000
_DEADLINE_S = 60.0
_CUT_HERE = f"\n[etfarm: this log has more than {MOST_LOG_BYTES} bytes; its middle was cut here]\n"
_SCRIPT = '[ -f "$1" ] && [ ! -L "$1" ] || exit 3; head -c "$2" "$1" && printf %s "$4" && tail -c "$3" "$1"'


def fetch_cut(device: Device, remote: str, local: Path) -> bool:
    """Write the beginning and the end of a device's long log to `local`, with a line where it was cut.

    Returns False if the device did not print it, for example because it is a link. Raises DeviceError.
    """
    sizes = [str(MOST_LOG_BYTES - _END_BYTES), str(_END_BYTES)]
    result = device.run(["sh", "-c", _SCRIPT, "sh", remote, *sizes, _CUT_HERE], deadline_s=_DEADLINE_S)
    if result.exit_code != 0:
        return False
    local.write_bytes(result.stdout)
    return True


def last_lines(log: Path, count: int) -> list[str]:
    """Return up to `count` lines at the end of a log, of its last 4000 bytes; none if it is missing or empty."""
    if not log.is_file():
        return []
    with log.open("rb") as stream:
        stream.seek(max(log.stat().st_size - _TAIL_BYTES, 0))
        text = stream.read(_TAIL_BYTES).decode(errors="replace")
    return text.strip().splitlines()[-count:]
