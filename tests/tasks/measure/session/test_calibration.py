"""The baseline of a device's calibration load: from the fastest of its earlier times, kept per device and build."""

from dataclasses import replace
from pathlib import Path

import pytest

from devices.inventory import DeviceSpec
from devices.ondevice.facts import Facts
from tasks.measure.session.ready import Calibration, baseline_ns, build_calibration
from tests.fixtures.stand_in import a_farm_context

MS = 1_000_000
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
    # when there is a fifth
    load.add(200 * MS)
    # then later ones are compared with the two fastest
    assert load.slowdown_percent(165 * MS) == 9.6
    assert load.slowdown_percent(148 * MS) == -1.7
    assert load.slowdown_percent(None) is None


def test_the_oldest_times_and_keys_are_dropped(load: Calibration) -> None:
    # given thirty fast times, and more of a device that became slower for good
    for ms in [100] * 30 + [200] * 50:
        load.add(ms * MS)
    assert load.slowdown_percent(200 * MS) == 100.0
    for _ in range(50):
        load.add(200 * MS)
    assert load.slowdown_percent(200 * MS) == 0.0
    # when other builds follow, then the last twenty are known
    for number in range(19):
        replace(load, key=f"build {number}").add(MS)
    assert load.slowdown_percent(200 * MS) == 0.0
    replace(load, key="build 19").add(MS)
    assert load.slowdown_percent(200 * MS) is None


@pytest.mark.parametrize("content", ["", "{", "[]", '{"key": ["fast"]}', '{"key": [-1]}'])
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
