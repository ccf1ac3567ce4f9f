"""`etfarm devices certify`: the farm's acceptance on one device, a check after the other."""

import contextlib
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from devices.errors import DeviceError, FarmError, one_line
from devices.inventory import DeviceSpec
from flows.certify.kill import kill_and_reattach
from flows.certify.measured import noise, sme_proof
from sql.errors import WarehouseError
from tasks.analyse.certify import checks
from tasks.analyse.certify.finding import Finding
from tasks.analyse.certify.subject import Subject, opened

_MOST_LETTERS = 800


@dataclass(frozen=True)
class Check:
    """A check: its name, what it does, and the check without which it cannot be tried."""

    name: str
    run: Callable[[Subject], Finding]
    needs: str | None = "reached"


@dataclass(frozen=True)
class Ended:
    """A check that has ended, and how long it took."""

    check: str
    finding: Finding
    took_s: float


CHECKS = (
    Check("reached", checks.reached, None),
    Check("transfer", checks.transfer),
    Check("runner", checks.runner),
    Check("SME proof", sme_proof, "runner"),
    Check("noise", noise, "runner"),
    Check("kill and reattach", kill_and_reattach, "runner"),
    Check("disk full", checks.disk_full),
    Check("left behind", checks.left_behind),
)


def certify(spec: DeviceSpec, var: Path, night: date) -> Generator[Ended, None, None]:
    """Yield each check as it ends; one that failed stops only those that need it. The device is left as it was."""
    with opened(spec, var, night) as subject:
        stopped: set[str] = set()
        try:
            for check in CHECKS:
                begin = time.monotonic()
                if check.needs in stopped:
                    finding = Finding("not tried", f"needs `{check.needs}`; fix that first")
                    stopped.add(check.name)
                else:
                    finding = _run(check, subject)
                    stopped |= {check.name} if finding.status == "failed" else set()
                yield Ended(check.name, finding, time.monotonic() - begin)
        finally:
            with contextlib.suppress(DeviceError):
                subject.clear()


def _run(check: Check, subject: Subject) -> Finding:
    try:
        return check.run(subject)
    except (FarmError, WarehouseError) as error:
        return Finding("failed", one_line(str(error), _MOST_LETTERS))
