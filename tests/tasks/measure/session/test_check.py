"""What a session left is a result, or it has one code and one sentence; without a device and without a runner."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from devices.ondevice.conditions import Conditions
from devices.ondevice.job import JobResult
from devices.start_limits import Limits
from tasks.bundle.cell import VARIANTS, Variant
from tasks.bundle.runner_stats import Stats
from tasks.etdump.event_names import OperatorName
from tasks.etdump.tree import Runs, TreeNode
from tasks.export.program import Call, ProgramMethod
from tasks.measure.plan import DISCARDED_REPETITION, FIRST_SESSION, PlannedSession
from tasks.measure.session.check import (
    Unsuccessful,
    check_conditions,
    check_end,
    check_result,
    program_mismatch,
    variant_contradiction,
)
from tests.fixtures.etdump_builder import METHOD, Profile, Run, build_etdump
from tests.fixtures.stand_in import a_session, etdump_of, publish_stand_in
from tests.fixtures.warehouse import counts_of

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
        (None, 11, False, f"loading\n{CRASHED}", "model_crashed", "with SIGSEGV while it executed the"),
        (None, 4, False, CRASHED, "model_crashed", "with SIGILL"),
        (None, 7, False, CRASHED, "model_crashed", "with SIGBUS"),
        (
            None,
            11,
            False,
            f"{CRASHED} in OpenvinoBackend",
            "model_crashed",
            "OpenvinoBackend crashed with SIGSEGV while",
        ),
        (None, 7, False, f"{CRASHED}, with a full disk", "no_space_on_device", "with SIGBUS while it executed the"),
        (None, 11, False, f"{CRASHED}\nmore", "runner_crashed", "the runner crashed with SIGSEGV"),
        (None, 11, False, f"std::bad_alloc\n{CRASHED}", "model_crashed", "with SIGSEGV"),
        (None, 6, False, f"what(): std::bad_alloc\n{CRASHED}", "out_of_memory", "bad_alloc` and aborted with SIGABRT"),
        (None, 6, False, CRASHED, "model_crashed", "with SIGABRT"),
        (None, 15, False, "", "runner_killed", "the runner was killed by SIGTERM"),
        (None, 9, False, CRASHED, "runner_killed", "the runner was killed by SIGKILL"),
        (None, 99, False, "", "runner_crashed", "the runner crashed with signal 99"),
        (1, None, False, "first\nlast", "runner_failed", "the runner exited with code 1: last"),
        (2, None, False, "Missing operators: a::b, a::c (X)", "missing_operator", ") has no kernel for a::b, a::c"),
        (2, None, False, "Backend OddBackend is not registered.", "no_backend", ") has no backend OddBackend"),
        (-1, None, False, "", "runner_failed", "exited with code -1: it printed nothing to standard error"),
        (2, None, False, CRASHED, "runner_failed", f"exited with code 2: {CRASHED}"),
        (1, None, False, f"beginning{'x' * 1000}", "runner_failed", "exited with code 1: beginningx"),
    ],
)
def test_a_runner_that_did_not_end_by_itself_with_0_has_failed(
    tmp_path: Path, exit_code: int | None, number: int | None, is_late: bool, printed: str, code: str, reason: str
) -> None:
    runner = publish_stand_in(tmp_path / "runners", "")
    (tmp_path / "stderr.txt").write_text(printed, encoding="utf-8")
    job = JobResult(exit_code, number, is_late, 1.0)
    session = replace(a_session(), pte_sha256="c0ffee")
    found = unsuccessful(check_end, job, 2.5, tmp_path, session, runner)
    assert found[:2] == ("failed", code)
    assert reason in found[2]
    assert len(found[2]) < 400
    assert ("model linear, whose .pte file has SHA-256 c0ffee" in found[2]) == (code == "model_crashed")


def test_a_crash_without_a_word_about_it_names_the_delegate_that_the_program_calls(tmp_path: Path) -> None:
    runner, job = publish_stand_in(tmp_path / "runners", ""), JobResult(None, 11, False, 1.0)
    (tmp_path / "stderr.txt").touch()
    crashed = "the runner crashed with SIGSEGV"
    both = {(0, 0): "XnnpackBackend", (0, 2): "OddBackend"}
    for backends, reason in ((both, f"{crashed}; its program calls OddBackend"), ({(0, 0): "XnnpackBackend"}, crashed)):
        found = unsuccessful(check_end, job, 2.5, tmp_path, a_session(), runner, backends)
        assert found == ("failed", "runner_crashed", reason)


@pytest.mark.parametrize(
    ("kills", "kind"), [((4, 5), "out_of_memory"), ((4, 4), "runner_killed"), ((None, 5), "runner_killed")]
)
def test_a_runner_is_out_of_memory_only_if_the_kernel_counted_a_kill(
    tmp_path: Path, kills: tuple[int | None, int], kind: str
) -> None:
    before, after = (Conditions(memory_kills=count) for count in kills)
    job = JobResult(None, 9, False, 1.0, before=before, after=after)
    found = unsuccessful(check_end, job, 2.5, tmp_path, a_session(), publish_stand_in(tmp_path / "runners", ""))
    assert found[:2] == ("failed", kind)


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
        ({"mode": "counts"}, "failed", "no_kernels", "did not write kernel_counts.json"),
        ({"variant": "sme1"}, "invalid", "variant", "variant sme1 must run with SME"),
        ({"variant": "sme2_on", "kind": "registered"}, "invalid", "variant", "variant sme2_on must run with SME2"),
    ],
)
def test_a_contradiction_is_named(tmp_path: Path, changes: dict[str, Any], status: str, code: str, words: str) -> None:
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


def test_the_kernels_of_a_session_count_beside_its_operators(tmp_path: Path) -> None:
    given = result(tmp_path, mode="counts")
    counts = counts_of({SME_KERNEL: (3, 9)}, executions=3)["kernel_counts.json"]
    (given[-1] / "kernel_counts.json").write_bytes(counts)
    found = unsuccessful(check_result, *given)
    assert found[:2] == ("invalid", "variant")
    assert SME_KERNEL in found[2]


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        (counts_of({"gemm": (3, 9)}, executions=2)["kernel_counts.json"], "2 executions instead of 3"),
        (b"{", "not a file of counted kernels"),
    ],
)
def test_kernels_of_other_executions_are_no_result(tmp_path: Path, counts: bytes, words: str) -> None:
    given = result(tmp_path, mode="counts")
    (given[-1] / "kernel_counts.json").write_bytes(counts)
    found = unsuccessful(check_result, *given)
    assert found[:2] == ("failed", "no_kernels")
    assert found[2].startswith("kernel_counts.json: ")
    assert words in found[2]


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


WITH = [
    "Convolution (NHWC, PF32) IGEMM #1",
    "Fully Connected (NC, PF16) GEMM #1",
    "Batch Matrix Multiply (NC, PF32) GEMM",
    "Convolution (NHWC, PQS8, QS8, QC8W) IGEMM #1",
    "Fully Connected (NC, PQS8, QC8W) GEMM #1",
]
WITHOUT = [
    "Convolution (NHWC, F32) IGEMM #1",
    "Convolution (NHWC, F16) IGEMM #1",
    "Convolution (NHWC, QC8) IGEMM #1",
    "Fully Connected (NC, F32) GEMM #1",
    "Fully Connected (NC, QS8, QC8W) GEMM #1",
    "Batch Matrix Multiply (NC, F32) GEMM #1",
]
CANNOT_TELL = [
    "Fully Connected (NC, QP8, F32, QC8W) GEMM #1",
    "Fully Connected (NC, F16) GEMM #1",
    "Convolution (NHWC, F32) DWConv #1",
    "Transpose (ND, X32) #1",
    "Average Pooling (NHWC, F32) Unipass #1",
]


@pytest.mark.parametrize("name", WITH + WITHOUT + CANNOT_TELL)
def test_an_operator_contradicts_the_variants_in_which_it_would_have_another_name(name: str) -> None:
    contradicted = {variant for variant in VARIANTS if name in str(variant_contradiction(variant, [name]))}
    assert contradicted == ({"sme2_off"} if name in WITH else {"sme2_on", "sme1"} if name in WITHOUT else set())
    # and one operator on SME is enough
    assert name not in WITH or variant_contradiction("sme2_on", [name, *WITHOUT]) is None


SME2 = [
    "kai_kernel_matmul_clamp_f32_f32p2vlx1_f32p2vlx1biasf32_sme2_mopa",
    "xnn_pf32_gemm_minmax_ukernel_32x32__neonsme2",
]
SME1 = ["kai_run_matmul_clamp_f32_f32p2vlx1_f32p2vlx1b_2vlx2vl_sme_mopa", "xnn_pf32_gemm_minmax_ukernel_32x32__neonsme"]
NEITHER = ["kai_run_lhs_pack_f32p2vlx1_f32_sme", "xnn_f32_gemm_minmax_ukernel_6x8__neonfma", "memcpy"]


@pytest.mark.parametrize("kernel", SME2 + SME1 + NEITHER)
def test_a_kernel_contradicts_the_variants_that_do_not_run_it(kernel: str) -> None:
    seen: dict[Variant, list[str]] = {"sme2_on": WITH, "sme1": WITH, "sme2_off": CANNOT_TELL}
    contradicted = {each for each in VARIANTS if variant_contradiction(each, seen[each], [kernel])}
    other = "sme1" if kernel in SME2 else "sme2_on"
    assert contradicted == (set() if kernel in NEITHER else {"sme2_off", other})
    # and SME2 with kernels of SME beside it is SME2
    assert variant_contradiction("sme2_on", WITH, [SME2[0], kernel]) is None


NOTHING = np.zeros(0, np.int64)
FORWARD = ProgramMethod(
    "forward", (), (), (Call(0, 1, delegate="XnnpackBackend"), Call(0, 2, operator="aten::add.out"))
)
SHOWN = [
    ("delegate_call", "DELEGATE_CALL", 1),
    ("operator_call", "OPERATOR_CALL", 2),
    ("portable", "native_call_add.out", 2),
]


@pytest.mark.parametrize(
    ("shown", "cause"),
    [
        (SHOWN, None),
        ([("delegated", "OpenVINO delegate", 1), *SHOWN[1:]], None),  # of a delegate that reports no operators
        ([("delegated", "OpenVINO delegate", 3), *SHOWN], "delegate, OpenVINO delegate at instruction 3 of chain 0"),
        ([("delegate_call", "DELEGATE_CALL", 2), *SHOWN], "DELEGATE_CALL at instruction 2 of chain 0"),
        ([*SHOWN, ("operator_call", "OPERATOR_CALL", 3)], "OPERATOR_CALL at instruction 3 of chain 0"),
        ([*SHOWN[:2], ("portable", "native_call_sub.out", 2)], "native_call_sub.out at instruction 2 of chain 0"),
        (SHOWN[:1], "the program calls aten::add.out at instruction 2 of chain 0"),
    ],
)
def test_calls_that_the_program_does_not_have_are_named(shown: list[tuple[str, str, int]], cause: str | None) -> None:
    calls = (TreeNode(0, kind, name, 0, place, OperatorName(name)) for kind, name, place in shown)
    tree = (TreeNode(-1, "method", METHOD, -1, 0, OperatorName(METHOD)), *calls)
    runs = Runs(NOTHING, NOTHING, tree, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING)
    mismatch = program_mismatch(runs, FORWARD)
    assert (mismatch is None) == (cause is None)
    assert cause is None or cause in str(mismatch)
    # and a program with branches may leave out calls
    left = program_mismatch(runs, replace(FORWARD, has_branches=True))
    assert left == (None if shown == SHOWN[:1] else mismatch)
