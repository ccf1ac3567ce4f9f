"""What a record may claim: each lie is refused with both figures, by each reader; what just fits is not."""

import json
from typing import Any

import pytest

from tasks.bundle.claims import real_serial
from tasks.bundle.record import BundleError
from tasks.bundle.session_json import parse_record
from tests.fixtures.plans import a_spec, ended, planned

ARM = {"platform": "linux-aarch64"}
LIES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (
        {"variant": "sme2_on", "device.facts": ARM | {"sme2": True}},
        {"variant": "sme2_on", "device.facts": ARM | {"sme2": False}},
        "the variant is sme2_on, but the device's facts state a processor without SME2",
    ),
    (
        {"variant": "sme1", "device.facts": ARM | {"sme": True, "sme2": False}},
        {"variant": "sme1", "device.facts": ARM | {"sme": False}},
        "the variant is sme1, but the device's facts state a processor without SME",
    ),
    (
        {"variant": "sme2_on", "stats": {"sme2_hardware": True}},
        {"variant": "sme2_on", "stats": {"sme2_hardware": False}},
        "the variant is sme2_on, but stats.json states a processor without SME2",
    ),
    (
        {"variant": "sme2_off", "runner.platform": "linux-x86_64"},
        {"variant": "sme2_on", "runner.platform": "linux-x86_64"},
        "the variant is sme2_on, but the runner is one for linux-x86_64",
    ),
    (
        {"device.facts": {"platform": None}},
        {"device.facts": {"platform": "android-arm64"}},
        "the runner is one for linux-aarch64, but the device's platform is android-arm64",
    ),
    (
        {"variant": "sme2_off", "runner": None, "device.facts": {"platform": "linux-x86_64", "sme2": False}},
        {"variant": "sme2_off", "runner": None, "device.facts": {"platform": "linux-x86_64", "sme2": True}},
        "in the device's facts, `platform` is linux-x86_64, but `sme2` is true",
    ),
    (
        {"executions": 20, "warmup_executions": 20},
        {"executions": 20, "warmup_executions": 21},
        "`warmup_executions` is 21, more than `executions`, 20",
    ),
    *(
        (
            {"stats": {key: 4096}, "device.facts": {"memory_bytes": 4096}},
            {"stats": {key: peak}, "device.facts": {"memory_bytes": 8 << 30}},
            f"stats.json states `{key}` {peak}, less than a page of 4096 bytes",
        )
        for key in ("peak_memory_bytes", "model_peak_memory_bytes")
        for peak in (0, 1)
    ),
    (
        {"stats": {"peak_memory_bytes": 9 << 30}, "device.facts": {"memory_bytes": 8 << 30, "swap_bytes": 1 << 30}},
        {"stats": {"peak_memory_bytes": (8 << 30) + 1}, "device.facts": {"memory_bytes": 8 << 30}},
        "stats.json states `peak_memory_bytes` 8589934593, but the device has 8589934592 bytes of memory and swap",
    ),
]
SCHEMA = [
    ("clock_ahead_s", -3600.0, 1e300, "less than or equal to 3600"),
    ("clock_ahead_s", 3600.0, -3601.0, "greater than or equal to -3600"),
    ("wall_s", 1.0, float("inf"), "finite"),
    *(
        (key, "größe 1", name, "is not a name: it is empty or contains NUL")
        for key in ("device.name", "model.name", "model.precision", "runner.platform", "farm_version")
        for name in ("", " ", "a\0b")
    ),
]


def record_text(**changes: Any) -> bytes:
    """A session that succeeded, with these values instead."""
    record = json.loads(ended(planned(a_spec())[1], "succeeded").model_dump_json())
    for path, value in changes.items():
        *parents, key = path.split(".")
        inner = record
        for parent in parents:
            inner = inner[parent]
        inner[key] = value
    return json.dumps(record).encode()


@pytest.mark.parametrize(("honest", "lie", "cause"), LIES)
def test_two_statements_that_contradict_each_other_are_refused_with_both_figures(
    honest: dict[str, Any], lie: dict[str, Any], cause: str
) -> None:
    parse_record(record_text(**honest), "session.json")
    with pytest.raises(BundleError) as refused:
        parse_record(record_text(**lie), "session.json")
    assert str(refused.value) == f"session.json: {cause}; check the runner and measure again"
    # and one that failed claims no figure
    parse_record(record_text(**lie | {"status": "failed"}), "session.json")


@pytest.mark.parametrize(("key", "honest", "lie", "cause"), SCHEMA)
def test_a_value_that_nothing_has_is_refused_with_its_key(key: str, honest: Any, lie: Any, cause: str) -> None:
    parse_record(record_text(**{key: honest}), "session.json")
    with pytest.raises(BundleError, match=f"^session.json: .*`{key}`.*{cause}"):
        parse_record(record_text(**{key: lie}), "session.json")


def test_a_key_that_is_there_twice_is_refused_with_both_values() -> None:
    twice = record_text().replace(b'"attempt": 1', b'"attempt": 1, "attempt": 2')
    with pytest.raises(BundleError, match="duplicate key `attempt`, with 1 and 2"):
        parse_record(twice, "session.json")


@pytest.mark.parametrize("serial", [None, "", "unknown", "0", "00000000", "0123456789ABCDEF"])
def test_only_a_serial_of_one_device_tells_that_two_names_are_the_same(serial: str | None) -> None:
    assert real_serial(serial, emulated=False) is None
    assert real_serial("8A1X", emulated=False) == "8A1X"
    assert real_serial("8A1X", emulated=True) is None
