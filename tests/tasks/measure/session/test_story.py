"""A runner's statements about one session must fit together; each contradiction is told with both figures."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from devices.ondevice.facts import Facts
from tasks.bundle.runner_stats import Stats
from tasks.etdump.operators import OperatorName
from tasks.etdump.tree import Runs, TreeNode
from tasks.measure.session.story import Known, contradiction_between, etdump_of_another
from tasks.prepare.export.program import Call, ProgramMethod
from tests.fixtures.stand_in import farm_bench, measured

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


def told(
    *execute_ns: int,
    start: tuple[int, ...] = (0, 10 * MS, 20 * MS),
    wall_s: float = 0.02,
    platform: str = "linux-x86_64",
    facts: Facts = NO_FACTS,
    method: ProgramMethod | None = None,
    **changes: Any,
) -> str | None:
    """What contradicts in an honest session with these changes."""
    stats = Stats.model_validate(HONEST | changes)
    return contradiction_between(
        runs(*(execute_ns or (2 * MS, MS, MS)), start=start), stats, Known(wall_s, platform, facts, method)
    )


@pytest.mark.parametrize(
    ("honest", "lie", "sentence"),
    [
        ({}, {"execution_ns": [2 * MS + 300, MS + 300]}, "stats.json states 2 times of executions, and the ETDump 3"),
        (
            {"execution_ns": [2 * MS, MS, MS - 100]},
            {"execution_ns": [2 * MS, MS, MS - 101]},
            "execution 2 lasts 1000000 ns in the ETDump, and 999899 ns around it in stats.json",
        ),
        (
            {"execution_ns": [3 * MS, 5 * MS // 4, 5 * MS // 4]},
            {"execution_ns": [3 * MS, 5 * MS // 4 + 9, 5 * MS // 4 + 9]},
            "execution 1 lasts 1000000 ns in the ETDump, and 1250009 ns in stats.json; all others differ more",
        ),
        (
            {"load_ns": 100 * MS},
            {"load_ns": 115 * MS},
            "the runner states 0.121 s of loading and executions, but its job",
        ),
        ({"exit_reason": None}, {"exit_reason": "crashed"}, "stats.json states `exit_reason` 'crashed'"),
        (
            {"sme2_hardware": True, "platform": "linux-aarch64"},
            {"sme2_hardware": True},
            "stats.json states SME2, but the runner is one for linux-x86_64",
        ),
        (
            {"start": (0, 2 * MS, 20 * MS)},
            {"start": (0, 2 * MS - 1, 20 * MS)},
            "execution 1 begins 1 ns before the end of execution 0",
        ),
    ],
    ids=["another count", "longer inside", "a part of the time", "longer than the job", "crashed", "SME2", "overlap"],
)
def test_a_contradiction_is_told_and_what_just_fits_is_not(
    honest: dict[str, Any], lie: dict[str, Any], sentence: str
) -> None:
    assert told(**honest) is None
    assert sentence in str(told(**lie))


@pytest.mark.parametrize(("around_us", "is_told"), [(60, False), (61, True)])
def test_recording_may_take_longer_than_a_tiny_model(around_us: int, is_told: bool) -> None:
    # given executions of 10 us
    times = [around_us * US] * 3
    assert bool(told(*[10 * US] * 3, execution_ns=times)) == is_told


def test_a_registered_runner_is_compared_with_its_job_alone() -> None:
    assert contradiction_between(runs(MS, MS, MS), None, Known(0.0, "linux-aarch64", NO_FACTS)) is None
    assert "0.102 s" in str(
        contradiction_between(runs(100 * MS, MS, MS, start=(0, MS * 200, MS * 300)), None, Known(0, "x", NO_FACTS))
    )


def test_a_session_that_contradicts_itself_has_failed(tmp_path: Path) -> None:
    # given a runner whose stats.json has the times of another session
    stats = '{"load_ns": 5, "threads_used": 1, "execution_ns": [1, 2]}'
    script = f"""printf '%s' '{stats}' >"$stats"; cp "$model" "$etdump"; printf "\\0\\0\\200\\77" >"$output-0.bin"\n"""
    record = measured(tmp_path, farm_bench(tmp_path, script))
    assert (record.status, record.reason_code) == ("failed", "contradiction")
    assert record.reason == "stats.json states 2 times of executions, and the ETDump 3; check the runner"


@pytest.mark.parametrize(
    ("times", "inside_ns", "is_told"),
    [
        ([1_000_000] * 5, 999, True),
        ([1_000_000] * 4, 999, False),
        ([1_000_000] * 4 + [1_000_001], 999, False),
        ([1_000_000] * 5, 2_000, False),
    ],
    ids=["identical", "too few to tell", "one differs", "a coarse clock"],
)
def test_executions_that_are_identical_to_the_step_of_the_clock_are_no_measurements(
    times: list[int], inside_ns: int, is_told: bool
) -> None:
    # given executions of 1 ms with an operator inside each, whose length shows the step of the clock
    tree = tuple(TreeNode(-1, kind, kind, 0, 0, OperatorName(kind)) for kind in ("method", "portable"))
    zeros, durations = np.zeros(1, np.int64), np.array([inside_ns])
    seen = Runs(
        np.array(times), np.arange(len(times)) * 10 * MS, tree, zeros, np.ones(1, np.int64), zeros, durations, zeros
    )
    cause = contradiction_between(seen, None, Known(1.0, "x", NO_FACTS))
    assert cause == (
        f"all {len(times)} executions in the ETDump last 1000000 ns, on a clock of 1 ns" if is_told else None
    )


FACTS = [("SME", Facts(sme=True), Facts(sme=False)), ("SME2", Facts(sme2=True), Facts(sme2=False))]


@pytest.mark.parametrize(("name", "honest", "lie"), FACTS)
def test_a_processor_that_is_not_the_device_s_is_told(name: str, honest: Facts, lie: Facts) -> None:
    stats: dict[str, Any] = {f"{name.lower()}_hardware": True, "platform": "macos-arm64"}
    assert told(facts=honest, **stats) is None
    assert told(facts=Facts(), **stats) is None
    cause = f"stats.json states a processor with {name}, but the device's facts one without {name}"
    assert told(facts=lie, **stats) == cause


METHOD = ProgramMethod("forward", (), (), (Call(0, 1, delegate="XnnpackBackend"), Call(0, 2, operator="aten::add.out")))
SHOWN = [
    ("delegate_call", "DELEGATE_CALL", 1),
    ("operator_call", "OPERATOR_CALL", 2),
    ("portable", "native_call_add.out", 2),
]


@pytest.mark.parametrize(
    ("shown", "cause"),
    [
        (SHOWN, None),
        (
            [("delegate_call", "DELEGATE_CALL", 2), *SHOWN],
            "the ETDump shows a call of a delegate, DELEGATE_CALL at instruction 2 of chain 0, where the program calls "
            "aten::add.out",
        ),
        (
            [*SHOWN, ("operator_call", "OPERATOR_CALL", 3)],
            "the ETDump shows a call of an operator, OPERATOR_CALL at instruction 3 of chain 0, where the program "
            "calls nothing",
        ),
        (
            [*SHOWN[:2], ("portable", "native_call_sub.out", 2)],
            "the ETDump shows operator native_call_sub.out at instruction 2 of chain 0, where the program calls "
            "aten::add.out",
        ),
        (
            SHOWN[:1],
            "the program calls aten::add.out at instruction 2 of chain 0, and the ETDump shows no call there",
        ),
    ],
    ids=["honest", "another kind", "a call too many", "another operator", "a call too few"],
)
def test_operators_that_are_not_the_program_s_are_told(shown: list[tuple[str, str, int]], cause: str | None) -> None:
    tree = tuple(TreeNode(0, kind, name, 0, place, OperatorName(name)) for kind, name, place in shown)
    honest = runs(2 * MS, MS, MS)
    seen = replace(honest, tree=tree)
    stats = Stats.model_validate(HONEST)
    assert contradiction_between(seen, stats, Known(0.02, "linux-x86_64", NO_FACTS, METHOD)) == cause
    # and a program with branches may leave out calls
    branching = replace(METHOD, has_branches=True)
    left = contradiction_between(seen, stats, Known(0.02, "linux-x86_64", NO_FACTS, branching))
    assert left == (None if shown == SHOWN[:1] else cause)


def test_the_etdump_of_an_earlier_session_is_recognised(tmp_path: Path) -> None:
    # given the ETDump of a session
    (etdump := tmp_path / "model.etdump").write_bytes(b"x")
    seen: dict[str, str] = {}
    assert etdump_of_another(etdump, None, "first", seen) is None
    # then it may be judged again, and is not that of another session
    assert etdump_of_another(etdump, None, "first", seen) is None
    cause = (
        "its ETDump is that of session first: both have SHA-256 2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db0225"
    )
    assert str(etdump_of_another(etdump, None, "second", seen)).startswith(cause)


def test_an_etdump_that_is_not_the_one_that_the_runner_wrote_is_recognised(tmp_path: Path) -> None:
    # given an ETDump and statistics that state its CRC-32, another one, or none
    (etdump := tmp_path / "model.etdump").write_bytes(b"123456789")
    right, other, none = (Stats(etdump_crc32=crc) for crc in (0xCBF43926, 1, None))
    # then only the second is told
    assert etdump_of_another(etdump, right, "s", {}) is None
    assert etdump_of_another(etdump, none, "s", {}) is None
    assert etdump_of_another(etdump, other, "s", {}) == (
        "model.etdump has CRC-32 cbf43926, and stats.json states 00000001"
    )
