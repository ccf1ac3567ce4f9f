"""Every time limit and every retry of a device, one row each, and the loop that follows a row.

To change how long the farm waits for an operation, or how often it tries again, change its row. A caller that reads a
row does so at every use (`retry.SCRIPT.timeout_s`), so that a test can replace it.
"""

import logging
import math
import time
from dataclasses import dataclass

from devices.device import Device
from devices.errors import DeadlineExceeded, DeviceLost, DeviceRefused

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Policy:
    """How long one attempt may take; after which errors, how often and for how long it is repeated."""

    timeout_s: float = math.inf
    """Of one attempt."""
    attempts: float = 1
    """The most attempts; math.inf if only time limits them."""
    within_s: float = math.inf
    """No attempt begins later than this after the first one; a caller may state another time."""
    pause_s: float = 0.0
    """Before the second attempt; doubled before each later one (exponential backoff), up to `max_pause_s`."""
    max_pause_s: float = 0.0
    """Not above `pause_s`: the pause stays the same."""
    errors: tuple[type[Exception], ...] = ()
    """After others there is no further attempt."""
    back_within_s: float = 0.0
    """How long a device that was lost may take to answer again."""


_LOST = (DeviceLost, DeviceRefused)  # a phone that is offline, or a host that restarts, refuses before it is back

# The adb server and a phone. ADB_ANSWER: one answer. ADB_RECONNECT: until a phone is usable after it was reconnected.
ADB_ANSWER = Policy(timeout_s=8)
ADB_SERVER_START = Policy(timeout_s=20)
ADB_RECONNECT = Policy(attempts=math.inf, within_s=5, pause_s=0.05)
# After this silence of a running command, the device must give a sign of life within the same time again.
ADB_SILENCE = Policy(timeout_s=6)
SSH_SILENCE = Policy(timeout_s=6)
SSH_CONNECT = Policy(timeout_s=8)  # to each hop
SSH_AUTHENTICATE = Policy(timeout_s=15)
SSH_CONFIG = Policy(timeout_s=10)  # `ssh -G`
# How TCP and SSH find a cut link: a probe after `within_s` of silence, then every `pause_s`; after so many attempts, or
# `timeout_s` without an acknowledgement, the link is cut.
SSH_KEEPALIVE = Policy(timeout_s=8, attempts=3, within_s=3, pause_s=2)

# `true`: a login shell that reads long start-up files delays every command. Repeated, for `within_s`, at the start of a
# sweep and after a session that failed.
PROBE = Policy(timeout_s=10, attempts=math.inf, within_s=5, pause_s=1, errors=_LOST)
SCRIPT = Policy(timeout_s=30)  # a script of the farm
TERM = Policy(timeout_s=0.5)  # from TERM to KILL, for a command of this machine at its deadline
TRANSFER = Policy(timeout_s=300)  # a script that reads or removes files of the store
# The files of a session, pushed before it and collected after it; both are repeatable.
PUSH = Policy(attempts=2, errors=_LOST, back_within_s=120)
COLLECT = Policy(attempts=2, errors=_LOST, back_within_s=120)
LOG = Policy(timeout_s=60)  # the log of a run that is fetched by a command
# Attaching to a running job: `within_s` counts from its deadline, `timeout_s` is what its end may take beyond that.
JOB = Policy(timeout_s=12, attempts=math.inf, within_s=120, errors=(DeviceLost,), back_within_s=120)
TRIAL = Policy(timeout_s=10)  # the job of a trial, which is not attached to again
# Requests to a device in use disturb what its holder measures, so they become rarer. LEASE_LOST: a device that is lost
# while a process waits for it.
LEASE = Policy(attempts=math.inf, pause_s=0.5, max_pause_s=5)
LEASE_BEYOND_JOB = Policy(timeout_s=300)  # how long a lease lasts beyond a job: pushes over a slow link, and collecting
LEASE_LOST = Policy(attempts=2, errors=_LOST, back_within_s=120)
SETTLE = Policy(attempts=math.inf, pause_s=2)  # checks of the conditions before a session
RUNNER_VERSION = Policy(timeout_s=30)


class Attempts:
    """The attempts of one operation so far; the first begins now."""

    def __init__(self, policy: Policy, within_s: float | None = None) -> None:
        self._policy = policy
        self._end = time.monotonic() + (policy.within_s if within_s is None else within_s)
        self._pause_s = policy.pause_s
        self._count = 1

    @property
    def left_s(self) -> float:
        """The time in which another attempt may begin; 0 or less if there is none."""
        return self._end - time.monotonic() if self._count < self._policy.attempts else 0.0

    def pause(self) -> None:
        """Wait as the policy states, at most until its time is over, and count the next attempt."""
        time.sleep(max(min(self._pause_s, self.left_s), 0.0))
        self._pause_s = min(2 * self._pause_s, max(self._policy.pause_s, self._policy.max_pause_s))
        self._count += 1

    def wait_or_raise(self, error: Exception) -> None:
        """Wait before the next attempt; raise `error` if it was the last one or is not one to repeat after."""
        if not isinstance(error, self._policy.errors) or self.left_s <= 0:
            raise error
        self.pause()

    def reconnect_or_raise(self, device: Device, error: DeviceLost | DeviceRefused) -> None:
        """Wait until a device that was lost answers, and count the next attempt; raise `error` if there is none.

        Raises DeviceLost if it is not back in time. After the first loss, a refusal counts as another one: a device
        that comes back may refuse at first.
        """
        if not (isinstance(error, self._policy.errors) or self._count > 1) or self.left_s <= 0:
            raise error
        _log.warning("%s: lost (%s), reconnecting", device.name, error.cause)
        self._count += 1
        within_s = self._policy.back_within_s
        try:
            probe_with_retry(device, within_s)
        except (DeviceLost, DeviceRefused) as last:
            cause = f"is not back within {within_s:g} s ({last.cause})"
            raise DeviceLost(device.name, cause, last.remedy) from None


def probe(device: Device) -> None:
    """Run `true`; raises DeviceLost or DeviceRefused if that fails. Opening a connection has a separate deadline."""
    try:
        result = device.run(["true"], deadline_s=PROBE.timeout_s)
    except DeadlineExceeded:
        cause = f"did not run `true` within {PROBE.timeout_s:g} s"
        raise DeviceLost(device.name, cause, "check what else runs on it, or restart it") from None
    if result.exit_code != 0:
        printed = result.stderr.decode(errors="replace").strip()
        cause = f"`true` ended with {result.exit_code or result.signal} ({printed})"
        raise DeviceRefused(device.name, cause, "log in to it, and correct what its shell runs at the start")


def probe_with_retry(device: Device, within_s: float | None = None) -> None:
    """Probe until the device answers, over a new connection after a failure; raise the last error after `within_s`."""
    attempts = Attempts(PROBE, within_s)
    while True:
        try:
            return probe(device)
        except (DeviceLost, DeviceRefused) as error:
            attempts.wait_or_raise(error)
            _log.warning("%s; trying again", error)
            device.close()
