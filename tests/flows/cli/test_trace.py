"""`etfarm trace`: a session by id or path, the run that is traced, and one sentence where there is nothing to trace."""

import json
from pathlib import Path

import pytest

from tests.fixtures.command import Command, Etfarm
from tests.fixtures.warehouse import CONVOLUTION, BundleMaker, etdump_of


@pytest.fixture
def maker(tmp_path: Path) -> BundleMaker:
    return BundleMaker(tmp_path / "var")


@pytest.fixture
def trace(command: Command, tmp_path: Path) -> Etfarm:
    """Run `etfarm trace` with these words; return its exit code and what it printed."""

    def run(*words: object) -> tuple[int, str]:
        ended = command("trace", *words, "--var", tmp_path / "var", "-o", tmp_path / "t.json")
        return ended.code, ended.out + ended.err

    return run


def durations_ns(tmp_path: Path) -> list[int]:
    events = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))["traceEvents"]
    return [round(event["dur"] * 1000) for event in events if event["name"] == "Method::execute"]


def test_the_measured_run_in_the_middle_by_duration_is_traced_by_its_id_or_its_path(
    trace: Etfarm, maker: BundleMaker, tmp_path: Path
) -> None:
    # given a session of a warm-up run and three measured ones
    folder = maker.session([(900, {CONVOLUTION: 300}), (500, {CONVOLUTION: 300}), (600, {CONVOLUTION: 300})])
    for session in (folder.name, folder, folder / "session.json"):
        # when it is traced
        code, printed = trace(session)
        # then that run is in the file, and the command names it
        assert code == 0
        assert "run 3 of 0 to 3, the middle one by duration" in printed
        assert durations_ns(tmp_path) == [600]
        content = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))
        assert content["otherData"]["session_id"] == folder.name


def test_a_run_can_be_chosen_and_so_can_all(trace: Etfarm, maker: BundleMaker, tmp_path: Path) -> None:
    folder = maker.session([500, 600])
    assert "run 0 of 0 to 2, a warm-up run" in trace(folder.name, "--run", "0")[1]
    assert durations_ns(tmp_path) == [4500]
    assert "run 2 of 0 to 2, measured" in trace(folder.name, "--run", "2")[1]
    assert durations_ns(tmp_path) == [600]
    assert "all 3 runs, 1 of them warm-up" in trace(folder.name, "--run", "all")[1]
    assert durations_ns(tmp_path) == [4500, 500, 600]


def test_an_etdump_of_any_origin_is_traced(trace: Etfarm, tmp_path: Path) -> None:
    (tmp_path / "some.etdump").write_bytes(etdump_of([(70, {}), (80, {})]))
    assert trace(tmp_path / "some.etdump")[0] == 0
    assert durations_ns(tmp_path) == [80]


@pytest.mark.parametrize("run", ["3", "-1", "first"])
def test_a_run_that_does_not_exist_is_answered_with_those_that_do(
    trace: Etfarm, maker: BundleMaker, tmp_path: Path, run: str
) -> None:
    code, printed = trace(maker.session([500, 600]).name, "--run", run)
    assert (code, printed) == (2, f"etfarm: --run {run}: no such run; use a number from 0 to 2, or all\n")
    assert not (tmp_path / "t.json").exists()


def test_a_session_that_cannot_be_traced_is_answered_with_the_reason(trace: Etfarm, maker: BundleMaker) -> None:
    failed = maker.session(status="failed", reason_code="device_lost", reason="phone: lost")
    assert trace(failed.name) == (2, f"etfarm: {failed}: the session has no ETDump (phone: lost); trace another one\n")
    code, printed = trace("0123")
    assert code == 2
    assert "0123: neither a session in" in printed
