"""`etfarm devices certify`: the farm's acceptance on one device, a check after the other."""

import contextlib
import platform
import time
from collections.abc import Callable, Generator, Sequence
from datetime import UTC, date, datetime
from importlib.metadata import version
from pathlib import Path

from devices.errors import DeviceError, FarmError
from devices.foreign_text import one_line
from devices.inventory import DeviceSpec
from flows.certify.kill import kill_and_reattach
from flows.certify.measured import noise, sme_proof
from sql.errors import WarehouseError
from tasks.judge.certify import checks
from tasks.judge.certify.subject import Finding, Subject, opened
from tasks.pages.markdown import escaped

_MOST_LETTERS = 800
# Each check by its name, and the check without which it cannot be tried.
_CHECKS: dict[str, tuple[Callable[[Subject], Finding], str | None]] = {
    "reached": (checks.reached, None),
    "transfer": (checks.transfer, "reached"),
    "runner": (checks.runner, "reached"),
    "SME proof": (sme_proof, "runner"),
    "noise": (noise, "runner"),
    "kill and reattach": (kill_and_reattach, "runner"),
    "disk full": (checks.disk_full, "reached"),
    "left behind": (checks.left_behind, "reached"),
}


def certify(spec: DeviceSpec, var: Path, night: date) -> Generator[str, None, None]:
    """Yield a line `status: check, time: text` as each check ends; one that failed stops only those that need it.

    The device is left as it was.
    """
    with opened(spec, var, night) as subject:
        stopped: set[str] = set()
        try:
            for name, (run, needs) in _CHECKS.items():
                begin = time.monotonic()
                if needs in stopped:
                    finding = Finding("not tried", f"needs `{needs}`; fix that first")
                else:
                    finding = _finding(run, subject)
                if needs in stopped or finding.status == "failed":
                    stopped.add(name)
                yield f"{finding.status}: {name}, {time.monotonic() - begin:.1f} s: {finding.text}"
        finally:
            with contextlib.suppress(DeviceError):
                subject.clear()


def page(device: str, lines: Sequence[str], logs: Path) -> str:
    """Return what a certification printed as Markdown, to attach to a report of a bug; `logs` are of its sweeps."""
    host = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    about = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, etfarm {version('etfarm')} on {escaped(host)}."
    points = "\n".join(f"- {escaped(line)}" for line in lines)
    closing = f"The logs of the sweeps are in `{logs}`. Disks that are full have not been tried on macOS."
    return f"# Certification of {escaped(device)}\n\n{about}\n\n{points}\n\n{closing}\n"


def _finding(run: Callable[[Subject], Finding], subject: Subject) -> Finding:
    try:
        return run(subject)
    except (FarmError, WarehouseError) as error:
        return Finding("failed", one_line(str(error), _MOST_LETTERS))
