"""A row of devices/retry.py decides after which errors, how often and for how long an operation is repeated."""

import math
import time
from typing import Any

import pytest

from devices.device import CommandResult
from devices.errors import DeviceLost, DeviceRefused
from devices.local import LocalDevice
from devices.retry import Attempts, Policy

LOST, REFUSED = DeviceLost("phone", "lost"), DeviceRefused("phone", "offline")


class Phone(LocalDevice):
    """Answers a probe with these errors in turn, then as it should."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__("phone", "/nowhere")
        self._errors = [*errors]

    def run(self, argv: Any, **_: Any) -> CommandResult:
        if self._errors:
            raise self._errors.pop(0)
        return CommandResult(0, None, b"", b"")


@pytest.fixture(autouse=True)
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that only sleeping moves; the pauses so far."""
    pauses: list[float] = []
    monkeypatch.setattr(time, "monotonic", lambda: sum(pauses))
    monkeypatch.setattr(time, "sleep", pauses.append)
    return pauses


def repeated(policy: Policy, error: Exception) -> None:
    attempts = Attempts(policy)
    while True:
        attempts.wait_or_raise(error)


GROWING = Policy(attempts=math.inf, within_s=20, pause_s=1, max_pause_s=5, errors=(DeviceLost,))


@pytest.mark.parametrize(
    ("policy", "error", "pauses"),
    [
        (Policy(attempts=3, pause_s=2, errors=(DeviceLost,)), LOST, [2, 2]),
        (GROWING, LOST, [1, 2, 4, 5, 5, 3]),
        (Policy(attempts=9, errors=(DeviceLost,)), REFUSED, []),
    ],
    ids=["number of attempts", "growing pauses until the time is over", "another error"],
)
def test_attempts_end_with_their_number_or_time_or_another_error(
    slept: list[float], policy: Policy, error: Exception, pauses: list[float]
) -> None:
    with pytest.raises(type(error)):
        repeated(policy, error)
    assert slept == pauses


def test_a_device_is_waited_for_and_a_refusal_counts_as_a_loss_only_after_one() -> None:
    policy = Policy(attempts=math.inf, errors=(DeviceLost,), back_within_s=10)
    with pytest.raises(DeviceRefused):
        Attempts(policy).reconnect_or_raise(Phone(), REFUSED)
    attempts = Attempts(policy)
    attempts.reconnect_or_raise(Phone(REFUSED, LOST), LOST)
    attempts.reconnect_or_raise(Phone(), REFUSED)
    # and one that is not back in time is lost with its last error
    attempts = Attempts(Policy(attempts=2, errors=(DeviceLost,), back_within_s=10))
    with pytest.raises(DeviceLost, match=r"^phone: is not back within 10 s \(offline\)$"):
        attempts.reconnect_or_raise(Phone(*[REFUSED] * 50), LOST)
