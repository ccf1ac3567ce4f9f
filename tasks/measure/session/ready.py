"""Wait until a device is ready for a session, and keep what each limit waited for."""

import time
from collections.abc import Iterable

from devices.device import Device
from devices.limits import Check, Limits, start_checks
from devices.ondevice.conditions import Conditions, read_conditions
from tasks.bundle.record import GateRecord
from tasks.measure import prometheus
from tasks.measure.session.calibration import Calibration
from tasks.measure.session.check import Unsuccessful

POLL_S = 2.0
_SAMPLE_S = 0.5


def settle(
    device: Device,
    limits: Limits,
    longest_s: float,
    gates: list[GateRecord],
    *,
    calibration: Calibration,
    first: Conditions | None = None,
) -> Conditions:
    """Wait until the device is inside the limits and return its conditions; Unsuccessful after `longest_s`.

    `gates` gets an entry for each limit that is set, also if the wait is in vain or the device is lost; those that it
    has from an earlier call keep their times. `first` are conditions that were read just now, without a sample of the
    background load and without calibration: if a limit needs these, everything is read again.
    """
    calibrates = limits.max_slowdown_percent is not None
    sample_s = _SAMPLE_S if limits.max_background_cpu_percent is not None else None
    command = calibration.command if calibrates else []
    end = time.monotonic() + longest_s
    conditions = first if sample_s is None and not command else None
    while True:
        conditions = conditions or read_conditions(device, sample_s, command)
        slowdown = calibration.slowdown_percent(conditions.calibration_ns) if calibrates else None
        checks = list(start_checks(conditions, limits, slowdown))
        gates[:] = _updated(gates, checks, calibration.why_unknown(conditions.calibration_ns) if calibrates else None)
        outside = [check for check in checks if check.is_outside]
        left_s = end - time.monotonic()
        if not outside or left_s <= 0:
            break
        since = time.monotonic()
        time.sleep(min(POLL_S, left_s))
        conditions = read_conditions(device, sample_s, command)
        _add_wait(device, gates, outside[0], time.monotonic() - since)
    if conditions.calibration_ns is not None:
        calibration.add(conditions.calibration_ns)
    if outside:
        raise Unsuccessful("invalid", outside[0].kind, f"before the session, {'; '.join(map(str, outside))}")
    return conditions


def with_readiness(before: Conditions | None, settled: Conditions | None) -> Conditions | None:
    """Return the conditions that the job recorded, with those that are only read while the farm waits (`settled`)."""
    if before is None or settled is None:
        return before or settled
    return before.model_copy(update=settled.model_dump(include={"background_cpu_percent", "calibration_ns"}))


def _updated(gates: Iterable[GateRecord], checks: Iterable[Check], why_no_slowdown: str | None) -> list[GateRecord]:
    """Return the entries of `checks`; what they waited and their worst values are taken over from `gates`."""
    before = {gate.limit: gate for gate in gates}
    updated = []
    for check in checks:
        known = before.get(check.limit)
        note = None
        if check.value is None:
            note = why_no_slowdown if check.limit == "max_slowdown_percent" else "the device does not report it"
        updated.append(
            GateRecord(
                limit=check.limit,
                bound=check.bound,
                value=check.value,
                worst=_worst(check, known.worst if known else None),
                waited_s=known.waited_s if known else 0,
                note=note,
            )
        )
    return updated


def _worst(check: Check, before: float | None) -> float | None:
    found = [value for value in (before, check.value if check.is_outside else None) if value is not None]
    return (min if check.limit.startswith("min_") else max)(found, default=None)


def _add_wait(device: Device, gates: list[GateRecord], check: Check, waited_s: float) -> None:
    prometheus.record("etfarm_wait_seconds", waited_s, device=device.name, cause=check.kind)
    for at, gate in enumerate(gates):
        if gate.limit == check.limit:
            gates[at] = gate.model_copy(update={"waited_s": round(gate.waited_s + waited_s, 3)})
