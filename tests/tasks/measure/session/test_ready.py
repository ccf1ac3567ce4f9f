"""What a session waits for before it starts, and what it records of that.

The conditions of the first tests are made up; the later ones are read on this machine, whose runner is a shell script
that takes the time of its calibration load from a file.
"""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from devices.inventory import DeviceSpec
from devices.local import LocalDevice
from devices.ondevice.conditions import Conditions
from devices.ondevice.facts import Facts
from devices.start_limits import Limits
from tasks.bundle.record import LimitCheck, SessionRecord
from tasks.measure.session import ready
from tasks.measure.session.check import Unsuccessful
from tasks.measure.session.context import SessionContext
from tasks.measure.session.ready import Calibration, baseline_ns, build_calibration, wait_until_ready
from tests.fixtures.stand_in import GOOD, a_farm_context, a_session, measured
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


@pytest.fixture
def phone(tmp_path: Path) -> SessionContext:
    return replace(a_farm_context(tmp_path, ""), device=LocalDevice("phone", "/nowhere"))


def test_a_device_that_cools_down_is_waited_for(monkeypatch: pytest.MonkeyPatch, phone: SessionContext) -> None:
    readings(monkeypatch, *[Conditions(temperature_c=each) for each in (50, 45, 39)])
    conditions, (check, other) = settled(phone, Limits(max_temperature_c=40, max_die_c=50))
    assert (other.limit, other.value, other.note) == ("max_die_c", None, "the device does not report it")
    assert conditions.temperature_c == 39
    assert (check.limit, check.bound, check.value, check.worst, check.note) == ("max_temperature_c", 40, 39, 50, None)
    assert check.waited_s > 0


def test_a_device_that_stays_hot_is_invalid_in_the_end(monkeypatch: pytest.MonkeyPatch, phone: SessionContext) -> None:
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


def test_what_only_the_farm_reads_is_added_to_what_the_job_recorded() -> None:
    settled = Conditions(load_1m=1, background_cpu_percent=3, calibration_ns=7)
    job = Conditions(load_1m=2)
    assert ready.with_readiness(job, settled) == Conditions(load_1m=2, background_cpu_percent=3, calibration_ns=7)
    assert (ready.with_readiness(job, None), ready.with_readiness(None, settled)) == (job, settled)
    assert ready.with_readiness(None, None) is None


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
    # given a device whose load took 150 ms four times, and now 180 ms, three times before it is cool again
    context = calibrating_context(tmp_path, *[180 * MS] * 3, 153 * MS)
    for _ in range(4):
        ready.build_calibration(context).add(150 * MS)
    # when two sessions are measured
    records = [measured(tmp_path, context, a_session(repetition=index)) for index in range(2)]
    # then the first one has no baseline yet and waits for nothing, slow as it may be
    assert {record.status for record in records} == {"succeeded"}
    first, last = map(slowdown, records)
    assert (first.note, first.waited_s) == ("no baseline yet: 4 of 5 calibrations before this one", 0)
    # and the second one waits until the device is as fast as it was
    assert (last.value, last.worst, last.note) == (2.0, 20.0, None)
    assert last.waited_s > 0
    times = [record.conditions["before"] for record in records]
    assert [each and each.calibration_ns for each in times] == [180 * MS, 153 * MS]
    # and one that stays slow is invalid, as with the other limits
    (tmp_path / "times").write_text(f"{165 * MS}\n", encoding="utf-8")
    record = measured(tmp_path, replace(context, settle_s=0), a_session(repetition=6))
    assert (record.status, record.reason_code) == ("invalid", "slowdown")
    reason = "before the session, slowdown: slowdown of the calibration load is 10 %, the limit is 5 %"
    assert record.reason == reason


@pytest.mark.parametrize(
    ("kind", "note"),
    [
        ("wheel", "the runner printed no time; build it again for --calibrate"),
        ("registered", "a registered runner has no calibration load"),
    ],
)
def test_a_runner_without_a_calibration_load_is_measured_and_noted(tmp_path: Path, kind: Any, note: str) -> None:
    context = calibrating_context(tmp_path)
    record = measured(tmp_path, replace(context, runner=replace(context.runner, kind=kind)))
    assert record.status == "succeeded"
    assert (slowdown(record).value, slowdown(record).note) == (None, note)


PHONE = Facts(os="android", serial="A1", build="b1")


@pytest.fixture
def load(tmp_path: Path) -> Calibration:
    return Calibration(["runner", "--calibrate"], tmp_path / "calibrations" / "phone.json", "key")


@pytest.mark.parametrize(
    ("times", "baseline"),
    [
        ([], None),
        ([100] * 4, None),
        ([140, 100, 150, 104, 160], 102),
        ([150] * 30 + [100, 101, 102] + [140] * 7, 140),
        ([130, 100, 101, 102, 120, 125, 119, 118], 100.5),
    ],
)
def test_the_baseline_is_the_median_of_the_fastest_quarter(times: list[int], baseline: float | None) -> None:
    assert baseline_ns(times) == baseline


def test_a_slow_processor_is_compared_with_its_own_earlier_times(load: Calibration) -> None:
    # given four calibrations: no baseline yet
    for ms in (150, 151, 160, 170):
        load.add(ms * MS)
    assert load.slowdown_percent(300 * MS) is None
    assert load.why_unknown(300 * MS) == "no baseline yet: 4 of 5 calibrations before this one"
    load.add(200 * MS)
    # then later ones are compared with the two fastest
    assert load.slowdown_percent(165 * MS) == 9.6
    assert load.slowdown_percent(148 * MS) == -1.7
    assert load.slowdown_percent(None) is None


def test_the_oldest_times_and_keys_are_dropped(load: Calibration) -> None:
    # given thirty fast times, and more of a device that became slower for good
    load.file.parent.mkdir()
    load.file.write_text(json.dumps({"key": [100 * MS] * 30 + [200 * MS] * 99}))
    load.add(200 * MS)
    assert load.slowdown_percent(200 * MS) == 0.0
    # when other builds follow, then the last twenty are known
    for number in range(19):
        replace(load, key=f"build {number}").add(MS)
    assert load.slowdown_percent(200 * MS) == 0.0
    replace(load, key="build 19").add(MS)
    assert load.slowdown_percent(200 * MS) is None


@pytest.mark.parametrize("content", ["{", "[]", '{"key": ["fast"]}', '{"key": [-1]}'])
def test_a_damaged_file_starts_the_baseline_again(load: Calibration, content: str) -> None:
    load.file.parent.mkdir()
    load.file.write_text(content, encoding="utf-8")
    assert load.slowdown_percent(MS) is None
    load.add(MS)
    assert load.why_unknown(MS) == "no baseline yet: 1 of 5 calibrations before this one"


def test_serial_build_runner_and_launcher_have_different_baselines(tmp_path: Path) -> None:
    spec = DeviceSpec(name="phone", transport="local")
    phone = replace(a_farm_context(tmp_path, ""), spec=spec, facts=PHONE, registry=tmp_path)
    cases = [
        phone,
        replace(phone, facts=PHONE.model_copy(update={"serial": "B2"})),
        replace(phone, facts=PHONE.model_copy(update={"build": "b2"})),
        replace(phone, runner=replace(phone.runner, runner_sha256="f" * 64)),
        replace(phone, spec=spec.model_copy(update={"cpu_affinity": [0]})),
    ]
    found = [build_calibration(case) for case in cases]
    assert len({load.key for load in found}) == 5
    assert {load.file for load in found} == {tmp_path / "calibrations" / "phone.json"}
    program = f"{phone.device.root}/trees/{phone.runner.runner_sha256}/executor_runner"
    assert found[0].command == [program, "--calibrate"]
    assert found[4].command == ["taskset", "1", program, "--calibrate"]
