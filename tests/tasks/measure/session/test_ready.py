"""What a session waits for before it starts, and what it records of that.

The conditions of the first tests are made up; the later ones are read on this machine, whose runner is a shell script
that takes the time of its calibration load from a file.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from devices.errors import DeviceLost
from devices.local import LocalDevice
from devices.ondevice.conditions import Conditions
from devices.start_limits import Limits
from sql.warehouse import query
from tasks.bundle.record import LimitCheck, SessionRecord
from tasks.load.load import load_paths
from tasks.measure.session import ready
from tasks.measure.session.check import Unsuccessful
from tasks.measure.session.context import SessionContext
from tasks.measure.session.ready import wait_until_ready
from tests.fixtures.plans import NIGHT
from tests.fixtures.stand_in import GOOD, a_context, a_farm_context, a_session, measured
from tests.fixtures.waiting import ENOUGH_S, change_policy

MS = 1_000_000
STATS = {
    "load_ns": 1, "execution_ns": [1, 1, 1], "peak_memory_bytes": 5000, "threads_used": 1, "sme_hardware": False,
    "sme_reported": False, "sme2_hardware": False, "sme2_reported": False,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _poll_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    change_policy(monkeypatch, "SETTLE", pause_s=0.001)


def readings(monkeypatch: pytest.MonkeyPatch, *found: Conditions | Exception) -> list[tuple[Any, ...]]:
    """Let the conditions of every device be these in turn, the last one permanently; return the requests."""
    left, requests = list(found), []

    def read(_device: LocalDevice, *request: Any) -> Conditions:
        requests.append(request)
        now = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(now, Exception):
            raise now
        return now

    monkeypatch.setattr(ready, "read_conditions", read)
    return requests


def settled(phone: SessionContext, limits: Limits, settle_s: float = ENOUGH_S) -> tuple[Conditions, list[LimitCheck]]:
    """Wait for the phone; return its conditions and what the wait recorded."""
    limit_checks: list[LimitCheck] = []
    return wait_until_ready(replace(phone, limits=limits, settle_s=settle_s), limit_checks, None), limit_checks


def heat(*temperatures_c: float) -> Iterator[Conditions]:
    return (Conditions(temperature_c=each) for each in temperatures_c)


@pytest.fixture
def phone(tmp_path: Path) -> SessionContext:
    return replace(a_farm_context(tmp_path, ""), device=LocalDevice("phone", "/nowhere"))


def test_a_device_that_cools_down_is_waited_for(monkeypatch: pytest.MonkeyPatch, phone: SessionContext) -> None:
    readings(monkeypatch, *heat(50, 45, 39))

    conditions, (check,) = settled(phone, Limits(max_temperature_c=40))

    assert conditions.temperature_c == 39
    assert (check.limit, check.bound, check.value, check.worst, check.note) == ("max_temperature_c", 40, 39, 50, None)
    assert check.waited_s > 0


def test_a_device_that_stays_hot_is_invalid_when_its_time_is_over(
    monkeypatch: pytest.MonkeyPatch, phone: SessionContext
) -> None:
    # given a clock that only sleeping moves, and a device that is too hot and has too little memory
    now_s = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now_s.append(now_s.pop() + seconds))
    change_policy(monkeypatch, "SETTLE", pause_s=2.0)
    hot = Conditions(temperature_c=50, free_memory_bytes=10**8)
    requests = readings(monkeypatch, *[hot.model_copy(update={"temperature_c": each}) for each in (45, 60, 50)])
    limit_checks: list[LimitCheck] = []

    limits = Limits(max_temperature_c=40, min_free_memory_mb=500)
    with pytest.raises(Unsuccessful) as end:
        wait_until_ready(replace(phone, limits=limits, settle_s=7), limit_checks, None)

    reason = (
        "before the session, thermal: temperature_c is 50 °C, the limit is 40 °C; "
        "memory: free memory is 100 MB, the limit is 500 MB"
    )
    assert (end.value.status, end.value.code, str(end.value)) == ("invalid", "thermal", reason)
    assert [(check.value, check.worst, check.waited_s) for check in limit_checks] == [(50, 60, 7), (100, 100, 0)]
    assert (now_s, len(requests)) == ([7], 5)


def test_the_worst_value_is_the_lowest_of_a_lower_limit_and_never_one_inside(
    monkeypatch: pytest.MonkeyPatch, phone: SessionContext
) -> None:
    memory = [Conditions(temperature_c=30, free_memory_bytes=each * 10**6) for each in (300, 100, 400, 500)]
    readings(monkeypatch, *memory)

    _, limit_checks = settled(phone, Limits(max_temperature_c=40, min_free_memory_mb=500))

    assert [(check.value, check.worst) for check in limit_checks] == [(30, None), (500, 100)]


def test_what_only_the_farm_reads_is_added_to_what_the_job_recorded() -> None:
    settled = Conditions(load_1m=1, background_cpu_percent=3, calibration_ns=7)
    job = Conditions(load_1m=2)
    assert ready.with_readiness(job, settled) == Conditions(load_1m=2, background_cpu_percent=3, calibration_ns=7)
    assert (ready.with_readiness(job, None), ready.with_readiness(None, settled)) == (job, settled)
    assert ready.with_readiness(None, None) is None


def test_what_a_device_does_not_report_is_recorded_as_not_applied(
    monkeypatch: pytest.MonkeyPatch, phone: SessionContext
) -> None:
    readings(monkeypatch, Conditions())

    _, (check,) = settled(phone, Limits(max_die_c=50), 0)

    assert (check.limit, check.value, check.note) == ("max_die_c", None, "the device does not report it")


def test_what_was_read_just_now_is_enough_unless_a_limit_needs_more(
    monkeypatch: pytest.MonkeyPatch, phone: SessionContext
) -> None:
    requests, first = readings(monkeypatch, Conditions()), Conditions(load_1m=0.1)

    for limits in (Limits(max_load_1m=1), Limits(max_background_cpu_percent=9), Limits(max_slowdown_percent=5)):
        wait_until_ready(replace(phone, limits=limits), [], first)

    assert requests[0] == (0.5, [])
    sample_s, (program, flag) = requests[1]
    assert (sample_s, Path(program).name, flag, len(requests)) == (None, "executor_runner", "--calibrate", 2)


def test_waits_before_a_lost_connection_are_kept(monkeypatch: pytest.MonkeyPatch, phone: SessionContext) -> None:
    # given a device that is lost while it is waited for, and found again
    lost = DeviceLost("phone", "lost")
    readings(monkeypatch, *heat(50, 49), lost, *heat(30))
    limit_checks: list[LimitCheck] = []
    phone = replace(phone, limits=Limits(max_temperature_c=40), settle_s=ENOUGH_S)
    with pytest.raises(DeviceLost):
        wait_until_ready(phone, limit_checks, None)
    (before,) = limit_checks
    # when the farm waits again
    wait_until_ready(phone, limit_checks, None)
    # then it still knows the first wait
    (check,) = limit_checks
    assert (check.value, check.worst, check.waited_s) == (30, 50, before.waited_s)
    assert before.waited_s > 0


def calibrating_context(folder: Path, *times_ns: int) -> SessionContext:
    """Return a context whose runner's calibration load takes these times in turn, the last one permanently."""
    (folder / "times").write_text("".join(f"{time}\n" for time in times_ns), encoding="utf-8")
    (folder / "stats").write_text(json.dumps(STATS), encoding="utf-8")
    script = f"""
if [ "$1" = --calibrate ]; then
    cd '{folder}' && head -n 1 times
    if [ "$(wc -l <times)" -gt 1 ]; then tail -n +2 times >left && mv left times; fi
    exit 0
fi
cp '{folder}/stats' "$stats"
"""
    return replace(a_farm_context(folder, script + GOOD), limits=Limits(max_slowdown_percent=5), settle_s=ENOUGH_S)


def slowdown(record: SessionRecord) -> LimitCheck:
    (check,) = record.limit_checks
    assert (check.limit, check.bound) == ("max_slowdown_percent", 5)
    return check


def test_a_throttled_processor_is_waited_for_once_there_is_a_baseline(tmp_path: Path) -> None:
    # given a device whose load takes 150 ms, and later twice 180 ms before it is cool again
    slow = [150 * MS] * 3 + [180 * MS] * 2 + [180 * MS] * 2 + [153 * MS]
    context = calibrating_context(tmp_path, *slow)
    # when six sessions are measured
    records = [measured(tmp_path, context, a_session(repetition=index)) for index in range(6)]
    # then the first five record their times and wait for nothing, slow as they may be
    assert {record.status for record in records} == {"succeeded"}
    assert [slowdown(record).note for record in records[:5]] == [
        f"no baseline yet: {earlier} of 5 calibrations before this one" for earlier in range(5)
    ]
    assert {slowdown(record).waited_s for record in records[:5]} == {0}
    # and the sixth waits until the device is as fast as it was
    last = slowdown(records[5])
    assert (last.value, last.worst, last.note) == (2.0, 20.0, None)
    assert last.waited_s > 0
    times = [record.conditions["before"] for record in records]
    assert [each and each.calibration_ns for each in times] == [150 * MS] * 3 + [180 * MS] * 2 + [153 * MS]
    # and one that stays slow is invalid, as with the other limits, and the warehouse has the reason
    (tmp_path / "times").write_text(f"{165 * MS}\n", encoding="utf-8")
    record = measured(tmp_path, replace(context, settle_s=0), a_session(repetition=6))
    assert (record.status, record.reason_code) == ("invalid", "slowdown")
    reason = "before the session, slowdown: slowdown of the calibration load is 10 %, the limit is 5 %"
    assert record.reason == reason
    warehouse = tmp_path / "warehouse.duckdb"
    load_paths([tmp_path / "bundles"], warehouse)
    asked = "SELECT session_id, value FROM session_readiness WHERE is_outside"
    assert query(warehouse, asked)[1] == [(record.session_id, 10.0)]
    asked = "SELECT sessions, outside_sessions, unread_sessions, bound FROM device_wait"
    assert query(warehouse, asked)[1] == [(7, 1, 5, 5.0)]
    calibrated = f"SELECT count(calibration_ns) FROM session_conditions WHERE sweep_id = '{NIGHT.sweep_id}'"
    assert query(warehouse, calibrated)[1] == [(6,)]


@pytest.mark.parametrize(
    ("kind", "note"),
    [
        ("wheel", "the runner printed no time; build it again for --calibrate"),
        ("registered", "a registered runner has no calibration load"),
    ],
)
def test_a_runner_without_a_calibration_load_is_measured_and_that_is_recorded(
    tmp_path: Path, kind: Any, note: str
) -> None:
    (tmp_path / "stats").write_text(json.dumps(STATS), encoding="utf-8")
    script = f"""[ "$1" != --calibrate ] || {{ echo "unknown flag '--calibrate'" >&2; exit 2; }}
[ -z "$stats" ] || cp '{tmp_path}/stats' "$stats"
"""
    context = a_context(tmp_path, script + GOOD)
    context = replace(context, runner=replace(context.runner, kind=kind), limits=Limits(max_slowdown_percent=5))

    record = measured(tmp_path, context)

    assert record.status == "succeeded"
    assert (slowdown(record).value, slowdown(record).note) == (None, note)


def test_the_background_load_is_recorded_with_the_conditions_before_a_session(tmp_path: Path) -> None:
    context = replace(a_context(tmp_path, GOOD), limits=Limits(max_background_cpu_percent=100))

    record = measured(tmp_path, context)

    (check,) = record.limit_checks
    assert check.value is not None
    assert [each and each.background_cpu_percent for each in record.conditions.values()] == [check.value, None]


def test_a_session_without_limits_records_none(tmp_path: Path) -> None:
    assert measured(tmp_path, a_context(tmp_path, GOOD)).limit_checks == []
