"""What a record may state: each lie is refused with both figures, each impossible value with its key."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from tasks.bundle.claims import real_serial
from tasks.bundle.record import BundleError, DeviceRecord, parse_record
from tests.fixtures.plans import a_spec, ended, planned

DAY = timedelta(days=1)
FILE = {"sha256": "0" * 64, "bytes": 1}
FUTURE = "`sweep.night`: {} is more than a day in the future"


def sweep_of(night: str) -> dict[str, str]:
    return {"sweep_id": f"smoke-{night}", "name": "smoke", "night": night}


def facts(**facts: Any) -> dict[str, Any]:
    return {"device.facts": facts}


def arm(variant: str, **more: Any) -> dict[str, Any]:
    return {"variant": variant} | facts(platform="linux-aarch64", **more)


def memory(memory_bytes: int, swap_bytes: int = 0, **stats: int) -> dict[str, Any]:
    return {"stats": stats} | facts(memory_bytes=memory_bytes, swap_bytes=swap_bytes)


GIB = 1 << 30
SME2, X86 = {"variant": "sme2_on"}, {"runner.platform": "linux-x86_64"}
LAPTOP, MODEL_PEAK = {"platform": "linux-x86_64"}, "model_peak_memory_bytes"
FOREIGN: dict[str, Any] = {"variant": "sme2_off", "runner": None}
# What is believed, what is refused, and the figures that the sentence has.
LIES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (arm("sme2_on", sme2=True), arm("sme2_on", sme2=False), "sme2_on, .* facts state a processor without SME2"),
    (arm("sme1", sme=True, sme2=False), arm("sme1", sme=False), "sme1, .* facts state a processor without SME"),
    (SME2 | {"stats": {"sme2_hardware": True}}, SME2 | {"stats": {"sme2_hardware": False}}, "sme2_on, .* without SME2"),
    (X86 | {"variant": "sme2_off"}, X86 | SME2, "sme2_on, .* linux-x86_64"),
    (facts(platform=None), facts(platform="android-arm64"), "aarch64, .* android-arm64"),
    (FOREIGN | facts(**LAPTOP, sme2=False), FOREIGN | facts(**LAPTOP, sme2=True), "linux-x86_64, but `sme2` is true"),
    ({"executions": 20, "warmup_executions": 20}, {"executions": 20, "warmup_executions": 21}, "is 21, .*, 20"),
    (memory(4096, peak_memory_bytes=4096), memory(GIB, peak_memory_bytes=1), "`peak_memory_bytes` 1, .* 4096"),
    (memory(4096, **{MODEL_PEAK: 4096}), memory(GIB, **{MODEL_PEAK: 0}), f"`{MODEL_PEAK}` 0, "),
    (memory(GIB, GIB, peak_memory_bytes=2 * GIB), memory(GIB, peak_memory_bytes=GIB + 1), f"{GIB + 1}, .* {GIB} bytes"),
]
NAMES = ("device.name", "model.name", "model.precision", "runner.platform", "farm_version")
NO_NAME = "is not a name: it is empty or contains NUL"


def record_text(**changes: Any) -> bytes:
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
    with pytest.raises(BundleError, match=f"^session.json: .*{cause}.*; check the runner and measure again$"):
        parse_record(record_text(**lie), "session.json")
    # and one that failed claims no figure
    parse_record(record_text(**lie | {"status": "failed"}), "session.json")


@pytest.mark.parametrize("serial", [None, "", "unknown", "0", "00000000", "0123456789ABCDEF"])
def test_only_the_serial_of_one_device_identifies_it_under_two_names(serial: str | None) -> None:
    assert real_serial(serial, emulated=False) is None
    assert real_serial("8A1X", emulated=False) == "8A1X"
    assert real_serial("8A1X", emulated=True) is None


@pytest.mark.parametrize(
    ("key", "value", "cause"),
    [
        *((key, " ", f"`{key}`: ' ' {NO_NAME}") for key in NAMES),
        *((key, "a\0b", f"`{key}`: 'a\N{REPLACEMENT CHARACTER}b' {NO_NAME}") for key in NAMES),
        ("clock_ahead_s", 3601.0, "`clock_ahead_s`: Input should be less than or equal to 3600"),
        ("clock_ahead_s", -3601.0, "`clock_ahead_s`: Input should be greater than or equal to -3600"),
        ("wall_s", float("inf"), "`wall_s`: Input should be a finite number"),
        ("executions", 0, "`executions`: Input should be greater than or equal to 1"),
        ("repetition", -2, "`repetition`: Input should be greater than or equal to -1"),
        ("model.pte_bytes", -5, "`model.pte_bytes`: Input should be greater than or equal to 0"),
        ("model.delegated", [{"operator": "a", "count": -2}], "`model.delegated.count` is -2, which is negative"),
        ("files", {"a": FILE | {"bytes": -1}}, "`files.a.bytes`: Input should be greater than or equal to 0"),
        ("stats", {"execution_ns": [5, -7]}, "`stats.execution_ns.1`: Input should be greater than or equal to 0"),
        ("stats", {"newer_ns": -7}, "`stats`: `newer_ns` is -7, which is negative"),
        ("device.facts", {"cores": -8}, "`device.facts.cores` is -8, which is negative"),
        ("exit_code", 1, "`status` is succeeded, but `exit_code` is 1"),
        ("signal", 11, "`status` is succeeded, but `signal` is 11"),
        ("reason_code", "thermal", "`status` is succeeded, but `reason_code` is 'thermal'"),
        ("reason", "too\nhot", r"`status` is succeeded, but `reason` is 'too\nhot'"),
        ("session_id", "../0123456789abcdef", "`session_id`: String should match pattern"),
        ("ended_at", "2026-01-02T03:04:04+00:00", "`ended_at` is 2026-01-02T03:04:04+00:00, before `started_at`, "),
        ("started_at", "2026-01-02T03:04:05", "`started_at`: '2026-01-02T03:04:05' is not a time with its UTC offset"),
        ("ended_at", "0001-01-01T00:00:00+14:00", "`ended_at`: '0001-01-01T00:00:00+14:00' is not a time with its"),
        ("sweep", sweep_of("2026-02-30"), "`sweep.night`: '2026-02-30' is not an existing date"),
        ("sweep", sweep_of("2026-01-04"), "`sweep.night` is 2026-01-04, after `started_at`, 2026-01-02T03:04:05"),
        ("sweep", sweep_of("9999-01-01"), FUTURE.format("9999-01-01")),
        ("sweep", sweep_of("2023-09-30"), "`sweep.night`: 2023-09-30 is before 2023-10-01"),
        ("model.export_key", "../bundles", "`model.export_key`: '../bundles' is not the name of a file or folder"),
        ("sweep.sweep_id", "/etc", "`sweep.sweep_id`: '/etc' is not the name of a file or folder"),
    ],
)
def test_a_record_that_cannot_be_true_is_refused_with_its_key(key: str, value: object, cause: str) -> None:
    with pytest.raises(BundleError) as refused:
        parse_record(record_text(**{key: value}), "session.json")
    assert str(refused.value).startswith(f"session.json: does not match its schema ({cause}")


def test_a_session_may_be_of_a_night_long_ago_or_of_tomorrow_and_of_no_later_one() -> None:
    for known in ("2023-10-01", "2026-01-03"):
        assert parse_record(record_text(sweep=sweep_of(known)), "session.json").sweep.night == known
    now = datetime.now(UTC)
    times = {"started_at": now.isoformat(), "ended_at": now.isoformat()}
    parse_record(record_text(**times, sweep=sweep_of(f"{now.date() + DAY}")), "session.json")
    night = now.date() + 3 * DAY  # a day more: midnight may pass meanwhile
    with pytest.raises(BundleError, match=FUTURE.format(night)):
        parse_record(record_text(**times, sweep=sweep_of(f"{night}")), "session.json")


@pytest.mark.parametrize("name", ["../x", "/x", "a\\b", ".x", "..", "", "a\nb", "a\0", "é" * 101])
def test_a_bundle_has_no_file_that_would_lie_outside_or_be_hidden_and_any_other(name: str) -> None:
    with pytest.raises(BundleError, match="is not the name of a file or folder"):
        parse_record(record_text(files={name: FILE}), "session.json")
    files = dict.fromkeys(("x", "model.etdump", "x..y", "größe 1", "é" * 100), FILE)
    assert parse_record(record_text(files=files), "session.json").files.keys() == files.keys()


def test_the_smallest_and_largest_values_and_the_end_of_a_failure_are_read() -> None:
    smallest: dict[str, Any] = {"warmup_executions": 0, "executions": 1, "threads": 1, "repetition": -1, "wall_s": 0.0}
    smallest |= {"exit_code": 0, "stats": {"load_ns": 0, "priority": -20}}
    for clock_ahead_s in (-3600.0, 3600.0):
        names = dict.fromkeys(NAMES, "größe 1")
        parse_record(record_text(**smallest | names, clock_ahead_s=clock_ahead_s), "session.json")
    failure = {"status": "failed", "exit_code": 1, "reason_code": "runner_failed", "reason": "the runner failed"}
    assert parse_record(record_text(**(smallest | failure)), "session.json").exit_code == 1


def test_a_kind_of_failure_that_this_farm_does_not_have_is_other_with_its_name_in_the_reason() -> None:
    for kind, reason, expected in (("too_hot", "48 C", "too_hot: 48 C"), ("x", None, "x: no reason was recorded")):
        text = record_text(status="failed", reason_code=kind, reason=reason)
        record = parse_record(text, "session.json")
        assert (record.reason_code, record.reason) == ("other", expected)
    listed = parse_record(record_text(status="failed", reason_code="thermal", reason="48 C"), "session.json")
    assert (listed.reason_code, listed.reason) == ("thermal", "48 C")
    with pytest.raises(BundleError, match="`reason_code`: Input should be a valid string"):
        parse_record(record_text(status="failed", reason_code=["thermal"]), "session.json")


def test_a_former_key_is_read_and_written_under_its_name() -> None:
    of_stats = {"peak_resident_bytes": 5000, "model_peak_resident_bytes": 6000, "sme_told": True, "sme2_told": True}
    former = json.loads(record_text(index=7, stats=of_stats))
    del former["repetition"]
    written = json.loads(parse_record(json.dumps(former).encode(), "session.json").model_dump_json())
    assert written["repetition"] == 7
    current = {"peak_memory_bytes": 5000, "model_peak_memory_bytes": 6000, "sme_reported": True, "sme2_reported": True}
    assert {name: written["stats"][name] for name in current} == current


def test_a_record_cannot_state_times_of_a_simulated_device() -> None:
    with pytest.raises(ValidationError, match="a simulated device must be stated as `emulated`"):
        DeviceRecord(name="simulated-001", transport="simulated", emulated=False)


def test_a_key_that_is_there_twice_is_refused_with_both_values() -> None:
    twice = record_text().replace(b'"attempt": 1', b'"attempt": 1, "attempt": 2')
    with pytest.raises(BundleError, match="duplicate key `attempt`, with 1 and 2"):
        parse_record(twice, "session.json")
