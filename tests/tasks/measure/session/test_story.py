"""A runner's statements about one session must fit together; each contradiction is told with both figures."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tasks.bundle.runner_stats import Stats
from tasks.etdump.tree import Runs
from tasks.measure.session.story import contradiction_between
from tests.fixtures.stand_in import farm_bench, measured

US, MS = 1_000, 1_000_000
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
    **changes: Any,
) -> str | None:
    """What contradicts in an honest session with these changes."""
    stats = Stats.model_validate(HONEST | changes)
    return contradiction_between(runs(*(execute_ns or (2 * MS, MS, MS)), start=start), stats, wall_s, platform)


@pytest.mark.parametrize(
    ("honest", "lie", "sentence"),
    [
        ({}, {"execution_ns": [2 * MS + 300, MS + 300]}, "stats.json states 2 times of executions, and the ETDump 3"),
        (
            {"execution_ns": [2 * MS, MS, MS - US]},
            {"execution_ns": [2 * MS, MS, MS - US - 1]},
            "execution 2 lasts 1000000 ns in the ETDump, and 998999 ns around it in stats.json",
        ),
        (
            {"execution_ns": [3 * MS, 5 * MS // 4, 5 * MS // 4]},
            {"execution_ns": [3 * MS, 5 * MS // 4 + 9, 5 * MS // 4 + 9]},
            "executions last 1000000 ns in the ETDump, and 1250009 ns in stats.json (medians)",
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
    assert contradiction_between(runs(MS, MS, MS), None, 0.0, "linux-aarch64") is None
    assert "0.102 s" in str(contradiction_between(runs(100 * MS, MS, MS, start=(0, MS * 200, MS * 300)), None, 0, "x"))


def test_a_session_that_contradicts_itself_has_failed(tmp_path: Path) -> None:
    # given a runner whose stats.json has the times of another session
    stats = '{"load_ns": 5, "threads_used": 1, "execution_ns": [1, 2]}'
    script = f"""printf '%s' '{stats}' >"$stats"; cp "$model" "$etdump"; printf "\\0\\0\\200\\77" >"$output-0.bin"\n"""
    record = measured(tmp_path, farm_bench(tmp_path, script))
    assert (record.status, record.reason_code) == ("failed", "contradiction")
    assert record.reason == "stats.json states 2 times of executions, and the ETDump 3; check the runner"
