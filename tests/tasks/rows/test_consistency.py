"""A runner's statements about one session must fit together; each contradiction is told with both figures."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from devices.ondevice.facts import Facts
from tasks.bundle.claims import Claims, contradiction_in
from tasks.bundle.runner_stats import Stats
from tasks.bundle.runtime import Runtime, parse_runtime
from tasks.etdump.event_names import OperatorName
from tasks.etdump.tree import Runs, TreeNode
from tasks.rows.consistency import checksum_contradiction, contradiction_between, copied_etdump
from tests.fixtures.stand_in import a_farm_context, measured

US, MS = 1_000, 1_000_000
NO_FACTS = Facts()
NOTHING = np.zeros(0, np.int64)
HONEST: dict[str, Any] = {
    "execution_ns": [2 * MS + 300, MS + 300, MS + 300],
    "untraced_execution_ns": [MS, MS],
    "load_ns": 5 * MS,
    "exit_reason": "ok",
    "sme_hardware": False,
    "sme2_hardware": False,
}


def runs(*execute_ns: int, start: tuple[int, ...] = (0, 10 * MS, 20 * MS)) -> Runs:
    return Runs(np.array(execute_ns), np.array(start), (), NOTHING, NOTHING, NOTHING, NOTHING, NOTHING)


def contradiction(
    *execute_ns: int,
    start: tuple[int, ...] = (0, 10 * MS, 20 * MS),
    wall_s: float = 0.02,
    platform: str = "linux-x86_64",
    facts: Facts = NO_FACTS,
    **changes: Any,
) -> str | None:
    """What contradicts in an honest session with these changes."""
    stats = Stats.model_validate(HONEST | changes)
    claims = Claims("sme2_off", 3, 1, platform, facts, stats, wall_s)
    return contradiction_between(runs(*(execute_ns or (2 * MS, MS, MS)), start=start), claims)


def times(*execution_ns: int) -> dict[str, Any]:
    return {"execution_ns": list(execution_ns)}


LONG = 5 * MS // 4


@pytest.mark.parametrize(
    ("honest", "lie", "sentence"),
    [
        ({}, times(2 * MS + 300, MS + 300), "states 2 times of executions, and the ETDump 3"),
        (times(2 * MS, MS, MS - 100), times(2 * MS, MS, MS - 101), "execution 2 lasts 1000000 ns .* 999899 ns around"),
        (times(3 * MS, LONG, LONG), times(3 * MS, LONG + 9, LONG + 9), "execution 1 lasts 1000000 ns .* 1250009 ns"),
        (
            {"first_load_ns": 95 * MS},
            {"first_load_ns": 110 * MS},
            "the runner states 0.121 s of loading and executions",
        ),
        ({"load_ns": 100 * MS}, {"load_ns": 115 * MS}, "the runner states 0.121 s of loading and executions"),
        ({"exit_reason": None}, {"exit_reason": "crashed"}, "states `exit_reason` 'crashed'"),
        (
            {"sme2_hardware": True, "platform": "linux-aarch64"},
            {"sme2_hardware": True},
            "states SME2, but the runner is one for linux-x86_64",
        ),
        ({"start": (0, 2 * MS, 20 * MS)}, {"start": (0, 2 * MS - 1, 20 * MS)}, "execution 1 begins 1 ns before"),
    ],
    ids=[
        "another count",
        "longer inside",
        "a part of the time",
        "first start longer than the job",
        "longer than the job",
        "crashed",
        "SME2",
        "overlap",
    ],
)
def test_a_contradiction_is_reported_and_what_just_fits_is_not(
    honest: dict[str, Any], lie: dict[str, Any], sentence: str
) -> None:
    assert contradiction(**honest) is None
    assert re.search(sentence, str(contradiction(**lie)))


@pytest.mark.parametrize(("around_us", "is_reported"), [(60, False), (61, True)])
def test_recording_may_take_longer_than_a_tiny_model(around_us: int, is_reported: bool) -> None:
    # given executions of 10 us
    assert bool(contradiction(*[10 * US] * 3, **times(*[around_us * US] * 3))) == is_reported


def test_a_session_ran_with_the_options_that_its_name_states_and_no_others() -> None:
    def claim(model: str, **set_options: Any) -> str | None:
        stats = Stats.model_validate(HONEST | set_options)
        return contradiction_in(Claims("sme2_off", 3, 1, None, NO_FACTS, stats, runtime=parse_runtime(model)))

    mapped: dict[str, Any] = {"load_mode": "mmap", "backend_options": {}}
    assert (claim("net"), claim("net", load_mode="file"), claim("net@load=mmap", **mapped)) == (None, None, None)
    assert "load=mmap had no effect" in str(claim("net@load=mmap", load_mode="file"))
    assert claim("net", **mapped) == "stats.json states load=mmap, which its name does not"
    cached = {"backend_options": {"XnnpackBackend": {"weight_cache_enabled": True}}}
    assert claim("net@load=mmap", **mapped | cached) is not None


def test_a_registered_runner_is_compared_with_its_job_alone() -> None:
    registered = Claims("sme2_off", 3, 1, "linux-aarch64", NO_FACTS, wall_s=0.0)
    assert contradiction_between(runs(MS, MS, MS), registered) is None
    longer = runs(100 * MS, MS, MS, start=(0, MS * 200, MS * 300))
    assert "0.102 s" in str(contradiction_between(longer, registered))


@pytest.mark.parametrize(("kind", "other"), [("export", "runner"), ("runner", "export")])
def test_a_session_has_the_versions_that_its_name_states(kind: str, other: str) -> None:
    def claim(version: str | None) -> str | None:
        versions: dict[str, Any] = {kind: version, other: "1.5.1"}
        named, actual = parse_runtime(f"net@{kind}=1.4.1"), Runtime(**versions)
        return contradiction_in(Claims("sme2_off", 3, 1, None, NO_FACTS, runtime=named, versions=actual))

    assert (claim("1.4.1"), claim("1.4.1+cpu")) == (None, None)
    assert claim(None) is not None
    assert claim("1.5.1+cpu") == f"its name states {kind}=1.4.1, but its {kind} is of executorch 1.5.1+cpu"


@pytest.mark.parametrize(
    ("case", "backends", "is_reported"),
    [
        ("net", ["OpenvinoBackend"], False),
        ("net@delegate=portable", [], False),
        ("net@delegate=portable", ["XnnpackBackend"], True),
        ("net@delegate=openvino", ["OpenvinoBackend"], False),
        ("net@delegate=openvino", ["OpenvinoBackend", "XnnpackBackend"], True),
        ("net@delegate=openvino+xnnpack", ["OpenvinoBackend", "XnnpackBackend"], False),
        ("net@delegate=my.parts:make", ["VulkanBackend"], False),
        ("net@delegate=portable", None, False),
        ("net@delegate=npu_of_a_newer_farm", ["NpuBackend"], False),
    ],
)
def test_a_session_calls_the_backends_of_the_delegate_that_its_name_states(
    case: str, backends: list[str] | None, is_reported: bool
) -> None:
    called = None if backends is None else frozenset(backends)
    claims = Claims("sme2_off", 3, 1, None, NO_FACTS, runtime=parse_runtime(case), backends=called)
    cause = contradiction_in(claims)
    assert bool(cause) == is_reported
    assert not cause or f"delegate={parse_runtime(case).delegate}, but its program calls {max(backends or '')}" in cause


def test_a_session_that_contradicts_itself_has_failed(tmp_path: Path) -> None:
    stats = json.dumps({"load_ns": 5, "threads_used": 1, "execution_ns": [1, 2]})
    script = f"""printf '%s' '{stats}' >"$stats"; cp "$model" "$etdump"; printf "\\0\\0\\200\\77" >"$output-0.bin"\n"""
    record = measured(tmp_path, a_farm_context(tmp_path, script))
    assert (record.status, record.reason_code) == ("failed", "contradiction")
    assert record.reason == "stats.json states 2 times of executions, and the ETDump 3; check the runner"


@pytest.mark.parametrize(
    ("lasted", "inside_ns", "is_reported"),
    [
        pytest.param([MS] * 5, 999, True, id="identical"),
        pytest.param([MS] * 4, 999, False, id="too few"),
        pytest.param([MS] * 4 + [MS + 1], 999, False, id="one differs"),
        pytest.param([MS] * 5, 2_000, False, id="coarse clock"),
        pytest.param([9 * MS + 1] + [MS] * 10, 999, True, id="but the warm-up"),
        pytest.param([9 * MS + 1] + [MS] * 9, 999, False, id="too few beside others"),
        pytest.param([9 * MS + 1] + [400_000] * 10, 999, False, id="short"),
    ],
)
def test_executions_that_are_identical_to_the_step_of_the_clock_are_no_measurements(
    lasted: list[int], inside_ns: int, is_reported: bool
) -> None:
    # given executions of 1 ms with an operator inside each, whose length shows the step of the clock
    tree = tuple(TreeNode(-1, kind, kind, 0, 0, OperatorName(kind)) for kind in ("method", "portable"))
    zero, one, starts = np.zeros(1, np.int64), np.ones(1, np.int64), np.arange(len(lasted)) * 10 * MS
    seen = Runs(np.array(lasted), starts, tree, zero, one, zero, np.array([inside_ns]), zero)
    cause = contradiction_between(seen, Claims("sme2_off", len(lasted), 1, "x", NO_FACTS))
    words = f"{lasted.count(MS)} of {len(lasted)} executions in the ETDump last 1000000 ns, on a clock of 1 ns"
    assert cause == (words if is_reported else None)


FACTS = [("SME", Facts(sme=True), Facts(sme=False)), ("SME2", Facts(sme2=True), Facts(sme2=False))]


@pytest.mark.parametrize(("name", "honest", "lie"), FACTS)
def test_a_processor_that_is_not_the_devices_is_reported(name: str, honest: Facts, lie: Facts) -> None:
    stats: dict[str, Any] = {f"{name.lower()}_hardware": True, "platform": "macos-arm64"}
    assert contradiction(facts=honest, **stats) is None
    assert contradiction(facts=Facts(), **stats) is None
    cause = f"stats.json states a processor with {name}, but the device's facts one without {name}"
    assert contradiction(facts=lie, **stats) == cause


def test_the_etdump_of_an_earlier_session_is_recognized() -> None:
    seen: dict[str, str] = {}
    # then it may be judged again, and is not that of another session
    for _ in range(2):
        assert copied_etdump(b"x", runs(MS, MS), "first", seen) is None
    cause = "its ETDump is that of session first: both have SHA-256 2d711642b726b04401627ca9fbac32f5c8"
    assert str(copied_etdump(b"x", runs(MS, MS), "second", seen)).startswith(cause)


@pytest.mark.parametrize(("step_ns", "is_reported"), [(1, True), (1_000, False)])
def test_the_times_of_an_earlier_session_at_another_time_are_recognized(step_ns: int, is_reported: bool) -> None:
    # given two ETDumps whose executions last equally long, on a fine clock or on one of a few steps
    lasted = [2_345_678, 1_003_217, 1_001_904, 1_009_461, 1_000_377]
    first = runs(*(each // step_ns * step_ns for each in lasted), start=tuple(range(0, 50 * MS, 10 * MS)))
    shifted = replace(first, run_start_ns=first.run_start_ns + 12_345)
    seen: dict[str, str] = {}
    assert copied_etdump(b"x", first, "first", seen) is None
    cause = copied_etdump(b"y", shifted, "second", seen)
    # then the second is a copy only where chance would not give the same times
    message = "its 5 executions, from 2345678 ns to 1000377 ns, last exactly as long as those of session first"
    assert cause == (message if is_reported else None)
    # and a time that differs by a nanosecond is another measurement
    other = replace(first, execute_ns=first.execute_ns + np.array([0, 0, 1, 0, 0]))
    assert copied_etdump(b"z", other, "third", seen) is None


def test_an_etdump_that_is_not_the_one_that_the_runner_wrote_is_recognized() -> None:
    right, other, none = (Stats(etdump_crc32=crc) for crc in (0xCBF43926, 1, None))
    assert checksum_contradiction(b"123456789", right) is None
    assert checksum_contradiction(b"123456789", none) is None
    expected = "model.etdump has CRC-32 cbf43926, and stats.json states 00000001"
    assert checksum_contradiction(b"123456789", other) == expected
