"""What a session left is a result, or it has one code and one sentence; without a device and without a runner."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from devices.ondevice.conditions import Conditions
from devices.ondevice.job import JobResult
from devices.start_limits import Limits
from tasks.bundle.runner_stats import Stats
from tasks.measure.plan import DISCARDED_REPETITION, FIRST_SESSION, PlannedSession
from tasks.measure.session.check import Unsuccessful, check_conditions, check_end, check_result
from tests.fixtures.etdump_builder import METHOD, Profile, Run, build_etdump
from tests.fixtures.stand_in import a_session, etdump_of, publish_stand_in

CRASHED = "executor_runner: ExecuTorch crashed (SIGSEGV) while it executed the model"
STATS = {"load_ns": 5, "threads_used": 1}
SME_KERNEL = "xnn_pf32_gemm_minmax_ukernel_32x32__neonsme"


def unsuccessful(check: Callable[..., Any], *given: Any) -> tuple[str, str, str]:
    """Return (status, code, reason) of a check that fails."""
    with pytest.raises(Unsuccessful) as end:
        check(*given)
    return end.value.status, end.value.code, str(end.value)


@pytest.mark.parametrize(
    ("exit_code", "number", "is_late", "printed", "code", "reason"),
    [
        (None, 9, True, CRASHED, "deadline_exceeded", "the runner was killed after its deadline of 2.5 s"),
        (None, 11, False, f"loading\n{CRASHED}", "model_crashed", "with signal 11 (SIGSEGV) while it executed the"),
        (None, 11, False, f"{CRASHED}\nmore", "runner_crashed", "the runner was killed by signal 11 (SIGSEGV)"),
        (None, 11, False, "", "runner_crashed", "the runner was killed by signal 11 (SIGSEGV)"),
        (None, 99, False, "", "runner_crashed", "the runner was killed by signal 99"),
        (1, None, False, "first\nlast", "runner_failed", "the runner exited with code 1: last"),
        (-1, None, False, "", "runner_failed", "exited with code -1: it printed nothing to standard error"),
        (2, None, False, CRASHED, "runner_failed", f"exited with code 2: {CRASHED}"),
        (1, None, False, f"beginning{'x' * 1000}", "runner_failed", "exited with code 1: beginningx"),
    ],
)
def test_a_runner_that_did_not_end_by_itself_with_0_has_failed(
    tmp_path: Path, exit_code: int | None, number: int | None, is_late: bool, printed: str, code: str, reason: str
) -> None:
    (tmp_path / "stderr.txt").write_text(printed, encoding="utf-8")
    job = JobResult(exit_code, number, is_late, 1.0)
    session = replace(a_session(), pte_sha256="c0ffee")
    found = unsuccessful(check_end, job, 2.5, tmp_path, session)
    assert found[:2] == ("failed", code)
    assert reason in found[2]
    assert len(found[2]) < 400
    assert ("model linear, whose .pte file has SHA-256 c0ffee" in found[2]) == (code == "model_crashed")


def test_a_program_that_the_runner_refuses_is_named_as_the_user_names_it(tmp_path: Path) -> None:
    # given the path of the model on the device, which has its hash
    (tmp_path / "stderr.txt").write_text("executor_runner: /data/farm/blobs/c0ffee is not a program", encoding="utf-8")
    session = replace(a_session(), pte_sha256="c0ffee")
    _, _, reason = unsuccessful(check_end, JobResult(2, None, False, 1.0), 1, tmp_path, session)
    assert reason == "the runner exited with code 2: executor_runner: the model linear is not a program"


def result(
    folder: Path, *, etdump: bytes | None = None, kind: Any = "wheel", stats: Any = STATS, **cell: Any
) -> tuple[Any, ...]:
    """Return what `check_result` takes; a session of 3 executions that went well but for the changes."""
    runner = replace(publish_stand_in(folder / "runners", ""), kind=kind)
    collected = folder / "collected"
    collected.mkdir()
    (collected / "model.etdump").write_bytes(etdump_of(3) if etdump is None else etdump)
    parsed = Stats.model_validate(stats) if stats is not None else None
    return a_session(**cell), runner, parsed, collected


def lasting(*durations_ns: int) -> bytes:
    """An ETDump whose executions take these times."""
    return build_etdump([Run([Profile(METHOD, 0, duration_ns)]) for duration_ns in durations_ns])


@pytest.mark.parametrize(("kind", "stats"), [("wheel", STATS), ("registered", None), ("registered", {"load_ns": None})])
def test_a_complete_etdump_of_the_plan_is_a_result(tmp_path: Path, kind: str, stats: Any) -> None:
    runs = check_result(*result(tmp_path, kind=kind, stats=stats))
    assert runs.execute_ns.tolist() == [30, 30, 30]


@pytest.mark.fault
def test_a_clock_may_stand_still_during_the_warm_up_but_not_during_all_measured_executions(tmp_path: Path) -> None:
    check_result(*result(tmp_path / "warm-up", etdump=lasting(0, 0, 7)))
    given = result(tmp_path / "measured", etdump=lasting(7, 0, 0))
    assert unsuccessful(check_result, *given)[1] == "bad_etdump"


@pytest.mark.parametrize(
    ("changes", "status", "code", "words"),
    [
        ({"etdump": etdump_of(2)}, "failed", "incomplete_etdump", "2 executions instead of 3"),
        ({"etdump": etdump_of(4)}, "failed", "incomplete_etdump", "4 executions instead of 3"),
        ({"etdump": b""}, "failed", "bad_etdump", "model.etdump is empty"),
        ({"stats": None}, "failed", "no_stats", "its stats.json is missing"),
        ({"stats": STATS | {"load_ns": None}}, "failed", "bad_stats", "`load_ns` is missing or null"),
        ({"stats": {"threads_used": 1}}, "failed", "bad_stats", "`load_ns` is missing or null"),
        ({"stats": STATS | {"threads_used": None}}, "failed", "bad_stats", "`threads_used` is missing or null"),
        ({"threads": 4}, "invalid", "threads", "used 1 threads instead of 4"),
        ({"stats": STATS | {"threads_used": 2}}, "invalid", "threads", "used 2 threads instead of 1"),
        ({"mode": "selected"}, "failed", "no_kernels", "did not write selected_kernels.json"),
        ({"variant": "sme1"}, "invalid", "variant", "variant sme1 must run with SME"),
        ({"variant": "sme2_on", "kind": "registered"}, "invalid", "variant", "variant sme2_on must run with SME2"),
    ],
)
def test_what_contradicts_the_plan_is_named(
    tmp_path: Path, changes: dict[str, Any], status: str, code: str, words: str
) -> None:
    found = unsuccessful(check_result, *result(tmp_path, **changes))
    assert found[:2] == (status, code)
    assert words in found[2]


@pytest.mark.fault
def test_executions_of_two_methods_are_no_result(tmp_path: Path) -> None:
    # given executions that run different operators at the same place
    runs = [
        Run([Profile(name, 1, 2, instruction=1), Profile("OPERATOR_CALL", 1, 3, instruction=1), Profile(METHOD, 0, 9)])
        for name in ("native_call_add.out", "native_call_add.out", "native_call_mul.out")
    ]
    found = unsuccessful(check_result, *result(tmp_path, etdump=build_etdump(runs)))
    assert found[:2] == ("failed", "bad_etdump")
    assert found[2].startswith("model.etdump: its executions belong to different methods")


def test_an_etdump_that_was_not_written_names_the_way_to_get_one(tmp_path: Path) -> None:
    session, runner, stats, collected = result(tmp_path)
    (collected / "model.etdump").unlink()
    found = unsuccessful(check_result, session, runner, stats, collected)
    assert found[1] == "no_etdump"
    assert "EXECUTORCH_ENABLE_EVENT_TRACER=ON" in found[2]


def test_the_kernels_of_a_session_count_beside_its_operators(tmp_path: Path) -> None:
    given = result(tmp_path, mode="selected")
    (given[-1] / "selected_kernels.json").write_text(f'{{"selected": ["{SME_KERNEL}"], "unnamed": 0}}')
    found = unsuccessful(check_result, *given)
    assert found[:2] == ("invalid", "variant")
    assert SME_KERNEL in found[2]


def test_only_operators_of_a_delegate_tell_the_variant(tmp_path: Path) -> None:
    # given an operator outside any delegate, with the name of one that uses SME
    events = [Profile("Fully Connected (NC, PF32) GEMM #1", 1, 2), Profile(METHOD, 0, 9)]
    runs = check_result(*result(tmp_path, etdump=build_etdump([Run(events)] * 3)))
    # then the session counts, with all its runs
    assert len(runs.execute_ns) == 3


def with_conditions(**after: float) -> JobResult:
    return JobResult(0, None, False, 1.0, before=Conditions(), after=Conditions(**after))  # type: ignore[arg-type]


@pytest.mark.parametrize(("repetition", "is_discarded"), [(DISCARDED_REPETITION, True), (0, False), (1, False)])
def test_the_first_session_of_a_device_is_discarded_and_no_other(repetition: int, is_discarded: bool) -> None:
    session: PlannedSession = a_session(repetition=repetition)
    if is_discarded:
        assert unsuccessful(check_conditions, session, with_conditions(), Limits())[:2] == ("invalid", FIRST_SESSION)
    else:
        check_conditions(session, with_conditions(), Limits())


def test_a_session_that_ended_outside_its_limits_is_invalid_with_the_first_as_code() -> None:
    limits = Limits(max_temperature_c=40, max_load_1m=2)
    check_conditions(a_session(), with_conditions(temperature_c=40, load_1m=2), limits)
    found = unsuccessful(check_conditions, a_session(), with_conditions(temperature_c=41, load_1m=3), limits)
    assert found[:2] == ("invalid", "thermal")
    assert found[2].startswith("after the session, thermal: temperature_c is 41 °C, the limit is 40 °C; load: ")
