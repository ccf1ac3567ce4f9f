"""What SME2 gains and where it ran: sessions, a query, the expected rows."""

import re
from itertools import chain
from typing import Any

import duckdb
import pytest

from sql.schema import seed_rows
from tests.fixtures.warehouse import CONVOLUTION, CONVOLUTION_SME2, LINEAR, MEAN, TRANSPOSE, BundleMaker, profile_of

MS = 1_000_000
QP8 = "Fully Connected (NC, QP8, F32, QC8W) GEMM #1"
KAI_SME2 = "kai_kernel_matmul_clamp_f32_qai8dxp1vlx4_qsi8cxp4vlx4_1vlx4vl_sme2_mopa"
KAI_NEON = "kai_run_matmul_clamp_f32_qai8dxp4x8_qsi8cxp4x8_16x4_neon_i8mm"
KAI_PACK = "kai_run_lhs_quant_pack_qai8dxp_f32"
KAI_PACK_SME = "kai_run_lhs_pack_f32p2vlx1_f32_sme"


def both(maker: BundleMaker, off: int, on: int, **changes: Any) -> None:
    maker.session([off], variant="sme2_off", **changes)
    maker.session([on], variant="sme2_on", **changes)


def test_speedup_never_mixes_devices_runners_threads_or_modes(maker: BundleMaker) -> None:
    both(maker, 10 * MS, 5 * MS)
    both(maker, 10 * MS, 4 * MS, device__name="phone")
    both(maker, 10 * MS, 2 * MS, threads=4)
    both(maker, 10 * MS, 1 * MS, mode="profile")
    maker.session([10 * MS], variant="sme2_off", runner__source_sha256="theirs")
    maker.session([1 * MS], variant="sme2_on", runner__source_sha256="ours")
    maker.load()
    assert maker.ask("SELECT device, threads, runner_source, speedup FROM sme2_speedup ORDER BY ALL") == [
        ("host", 1, "ours", None),
        ("host", 1, "source1", 2.0),
        ("host", 1, "theirs", None),
        ("host", 4, "source1", 5.0),
        ("phone", 1, "source1", 2.5),
    ]


def test_the_reason_for_no_speedup_distinguishes_simulated_from_emulated_devices(maker: BundleMaker) -> None:
    for transport in ("adb", "simulated"):
        both(maker, 100, 100, device__name=transport, device__transport=transport, device__emulated=True)
    maker.load()
    assert maker.ask("SELECT reason FROM sme2_speedup ORDER BY device") == [("emulated device",), ("simulated device",)]


def test_bottleneck_shift_shows_what_takes_a_larger_share_with_sme2(maker: BundleMaker) -> None:
    maker.session([(1000, {CONVOLUTION: 800, TRANSPOSE: 200})], variant="sme2_off")
    maker.session([(400, {CONVOLUTION_SME2: 200, TRANSPOSE: 180, MEAN: 20})], variant="sme2_on")
    maker.session([(100, {CONVOLUTION: 90})], variant="sme2_off", device__name="never-with-sme2")
    maker.load()
    assert maker.ask("""
        SELECT category, share_on, share_off, change_points, round(change_ms * 1e6, 3)
        FROM bottleneck_shift WHERE category <> 'Unattributed' ORDER BY category
    """) == [
        ("Convolution", 0.5, 0.8, pytest.approx(-30.0), -600.0),
        ("Data Movement", 0.45, 0.2, pytest.approx(25.0), -20.0),
        ("Other", 0.05, 0.0, 5.0, 20.0),
    ]


def test_operators_are_matched_though_their_data_types_differ(maker: BundleMaker) -> None:
    depthwise = "Convolution (NHWC, F32) DWConv #1"
    maker.session([(800_000, {CONVOLUTION: 400_000, depthwise: 100_000, LINEAR: 200_000})], variant="sme2_off")
    maker.session([(1000_000, {CONVOLUTION: 700_000, depthwise: 100_000, LINEAR: 200_000})], variant="sme2_off")
    maker.session([(2000_000, {CONVOLUTION: 900_000, depthwise: 100_000, LINEAR: 200_000})], variant="sme2_off")
    maker.session([(400_000, {CONVOLUTION_SME2: 70_000, depthwise: 100_000, MEAN: 20_000})], variant="sme2_on")
    maker.load()
    columns = "operator, microkernel, data_types_on, data_types_off, calls_on, round(speedup, 6)"
    assert maker.ask(f"SELECT {columns} FROM operator_speedup ORDER BY operator, microkernel") == [
        ("Convolution", "DWConv", "F32", "F32", 1.0, 1.0),
        ("Convolution", "IGEMM", "PF32", "F32", 1.0, 10.0),
        ("Fully Connected", "GEMM", None, "F32", None, None),
        ("mean", None, None, None, 1.0, None),
    ]


def test_an_operator_below_the_resolution_of_its_clock_has_no_speedup(maker: BundleMaker) -> None:
    maker.session([(50_000, {CONVOLUTION: 0, LINEAR: 30_000})], variant="sme2_off")
    maker.session([(20_000, {CONVOLUTION_SME2: 1_000, LINEAR: 10_000})], variant="sme2_on")
    maker.load()
    assert maker.ask("SELECT operator, speedup, below_resolution FROM operator_speedup ORDER BY operator") == [
        ("Convolution", None, True),
        ("Fully Connected", 3.0, False),
    ]


def test_coverage_by_name_is_the_part_of_eligible_time_on_sme2(maker: BundleMaker) -> None:
    eligible = {CONVOLUTION_SME2: 300, "Fully Connected (NC, F16) GEMM #1": 90, "native_call_bmm.out": 10}
    others = {"Convolution (NHWC, F32) DWConv #1": 500, TRANSPOSE: 50}
    maker.session([(1000, eligible | others)], variant="sme2_on")
    maker.load()
    assert maker.ask("""
        SELECT eligible_ms * 1e6, sme_ms * 1e6, undecided_ms, name_share, eligible_calls, sme_calls FROM sme2_coverage
    """) == [pytest.approx((400.0, 300.0, 0.0, 0.75, 3.0, 1.0))]
    assert maker.ask("SELECT proven_share, sme2_calls, evidence FROM sme2_coverage") == [(None, None, "not proven")]
    assert maker.ask("SELECT operator, sme_by_name, likely_reason FROM sme2_operator_coverage ORDER BY operator") == [
        ("Convolution", "yes", None),
        ("Fully Connected", "no", "never"),
        ("bmm", "no", "portable"),
    ]


RULED = {
    "yes": [
        CONVOLUTION_SME2,
        "Convolution (NHWC, PQS8, QS8, QC8W) IGEMM #1",
        "Fully Connected (NC, PF32) GEMM #1",
        "Fully Connected (NC, PF16) GEMM",
        "Fully Connected (NC, PQS8, QC8W) GEMM #1",
        "Batch Matrix Multiply (NC, PF32) GEMM #1",
    ],
    "undecided": [QP8],
    "no": [
        CONVOLUTION,
        LINEAR,
        "Convolution (NHWC, QC8) IGEMM #1",
        "Convolution (NHWC, QC8W) IGEMM #2",
        "Fully Connected (NC, QS8, QC8W) GEMM #1",
        "Batch Matrix Multiply (NC, F32) GEMM #1",
        "Batch Matrix Multiply (NC, F16) GEMM #1",
    ],
}
UNRULED = [
    TRANSPOSE,
    MEAN,
    "Fully Connected (NC, F16) GEMM #1",
    "Convolution (NHWC, F32) DWConv #1",
    "Copy (NC, XPF32)",
]


def test_names_show_sme_except_for_dynamic_int8(maker: BundleMaker) -> None:
    # given a model for each name
    expected = [(name, by_name) for by_name, names in RULED.items() for name in names]
    for name, _ in expected:
        maker.session([(100, {name: 50})], variant="sme2_on", model__name=name)
    maker.load()
    assert sorted(maker.ask("SELECT model, sme_by_name FROM sme2_operator_coverage")) == sorted(expected)


def test_each_rule_matches_the_same_names_in_python_and_in_duckdb() -> None:
    names = [*chain(*RULED.values()), *UNRULED]
    matched = set()
    for sme2, pattern in seed_rows("sme_rule"):
        matching = "SELECT unnest FROM unnest(?::VARCHAR[]) WHERE regexp_matches(unnest, ?)"
        in_duckdb = {name for (name,) in duckdb.execute(matching, [names, pattern]).fetchall()}
        assert in_duckdb == {name for name in names if re.search(pattern, name)}
        assert in_duckdb, f"no name for {pattern}"
        assert in_duckdb <= set(RULED[sme2])
        matched |= in_duckdb
    assert matched == set(chain(*RULED.values()))


@pytest.mark.parametrize(
    ("kernels", "proven"),
    [
        ({KAI_SME2: 80, KAI_PACK: 5, "unresolved": 15}, 1.0),
        ({KAI_NEON: 80, KAI_PACK: 5, "unresolved": 15}, 0.0),
        ({KAI_SME2: 30, KAI_NEON: 10}, 0.75),
        ({"unresolved": 100}, None),
        (None, None),
    ],
)
def test_executed_kernels_decide_what_names_leave_undecided(
    maker: BundleMaker, kernels: dict[str, int] | None, proven: float | None
) -> None:
    maker.session([(100, {QP8: 80})], variant="sme2_on", threads=2)
    if kernels is not None:
        maker.session([100], variant="sme2_on", mode="profile", threads=2, files=profile_of(**kernels))
    # profiles of another variant, device, runner, program or thread count prove nothing here
    others: list[dict[str, Any]] = [
        {"variant": "sme2_off"},
        {"device__name": "x"},
        {"runner__source_sha256": "x"},
        {"model__pte_sha256": "x"},
        {"threads": 1},
    ]
    for other in others:
        profile = {"variant": "sme2_on", "mode": "profile", "threads": 2, **other}
        maker.session([100], files=profile_of(**{KAI_NEON: 7}), **profile)
    maker.load()
    assert maker.ask("SELECT name_share, proven_share FROM sme2_coverage WHERE mode = 'timing'") == [(0.0, proven)]


NAMED = [
    # operator, its kernel without the extension
    ("Fully Connected (NC, PF32) GEMM #1", "kai_run_matmul_clamp_f32_f32p2vlx1_f32p2vlx1b_2vlx2vl_%s_mopa"),
    ("Convolution (NHWC, PF16) IGEMM #1", "kai_run_imatmul_clamp_f16_f16p2vlx2_f16p2vlx2b_2vlx2vl_%s_mopa"),
    ("Fully Connected (NC, PQS8, QC8W) GEMM #1", "kai_run_matmul_clamp_qai8_qai8p2vlx4_qsi8cxp2vlx4sb_2vlx2vl_%s_mopa"),
    (QP8, "kai_run_matmul_clamp_f32_qai8dxp1vlx4_qsi8cxp4vlx4_1vlx4vl_%s_mopa"),
]


@pytest.mark.parametrize(("operator", "kernel"), NAMED)
def test_only_kernels_distinguish_sme2_from_sme_whose_operators_have_the_same_names(
    maker: BundleMaker, operator: str, kernel: str
) -> None:
    # given the same operator with kernels of SME2, of SME, and without a profile
    for variant, extension in (("sme2_on", "sme2"), ("sme1", "sme")):
        maker.session([(100, {operator: 80})], variant=variant)
        profile = profile_of(**{kernel % extension: 80, KAI_PACK_SME: 20})
        maker.session([100], variant=variant, mode="profile", files=profile)
    maker.session([(100, {operator: 80})], variant="sme2_on", threads=2)
    maker.load()
    # then SME2 is proven of the first alone, and nothing of the last
    shares = "variant, threads, proven_share, proven_sme1_share, sme2_calls, sme1_calls, evidence"
    assert maker.ask(f"SELECT {shares} FROM sme2_coverage ORDER BY threads, variant") == [
        ("sme1", 1, 0.0, 1.0, 0.0, 1.0, "executed"),
        ("sme2_on", 1, 1.0, 0.0, 1.0, 0.0, "executed"),
        ("sme2_on", 2, None, None, None, None, "not proven"),
    ]


def test_selected_kernels_prove_sme2_where_none_was_sampled(maker: BundleMaker) -> None:
    maker.session([(100, {CONVOLUTION_SME2: 80})], variant="sme2_on")
    log = "Note (XNNPACK): Using igemm microkernel 'xnn_pf32_igemm_minmax_ukernel_32x32__neonsme2'. (init, gemm.c:1)\n"
    maker.session([100], mode="trace", variant="sme2_on", files={"stderr.txt": log.encode()})
    maker.load()
    assert maker.ask("SELECT proven_share, evidence FROM sme2_coverage") == [(1.0, "selected")]


def test_a_reason_comes_from_the_operators_of_the_same_model(maker: BundleMaker) -> None:
    # given a model of which some layers run on SME and others of the same kind do not
    both = {"Fully Connected (NC, PF16) GEMM #1": 10, "Fully Connected (NC, F16) GEMM #2": 10, CONVOLUTION: 10}
    maker.session([(100, both)], variant="sme2_on")
    maker.load()
    reasons = "SELECT operator, data_type, likely_reason FROM sme2_operator_coverage ORDER BY ALL"
    assert maker.ask(reasons) == [
        ("Convolution", "F32", "never"),
        ("Fully Connected", "F16", "data types or shape"),
        ("Fully Connected", "PF16", None),
    ]


def test_kernels_that_ran_and_kernels_that_were_selected_are_kept_apart(maker: BundleMaker) -> None:
    log = (
        "Note (XNNPACK): Using gemm microkernel 'xnn_pf32_gemm_minmax_ukernel_32x32__neonsme2'. (init, gemm.c:1)\n"
        "Note (XNNPACK): Using dwconv microkernel 'xnn_f32_dwconv_minmax_ukernel_9p8c__neonfma'. (init, dw.c:1)\n"
    )
    maker.session([(100, {LINEAR: 80})], variant="sme2_on")
    maker.session([100], mode="trace", variant="sme2_on", files={"stderr.txt": log.encode()})
    profile = profile_of(**{KAI_SME2: 60, "memcpy": 15, "unresolved": 25})
    maker.session([100], mode="profile", variant="sme2_on", files=profile)
    maker.load()
    columns = "evidence, kernel, weight, share, isa_family, operation, mode"
    assert maker.ask(f"SELECT {columns} FROM kernel_use ORDER BY evidence, weight DESC, kernel") == [
        ("executed", KAI_SME2, 60, 0.6, "SME2", "matmul", "profile"),
        ("executed", "(unresolved)", 25, 0.25, "unresolved", None, "profile"),
        ("executed", "memcpy", 15, 0.15, "other", None, "profile"),
        ("selected", "xnn_f32_dwconv_minmax_ukernel_9p8c__neonfma", 1, None, "NEON", "dwconv", "trace"),
        ("selected", "xnn_pf32_gemm_minmax_ukernel_32x32__neonsme2", 1, None, "SME2", "gemm", "trace"),
    ]
    # and the profile has its number of samples, and the coverage the part of them in kernels of SME2
    columns = "threads_sampled, rate_hz, samples, dropped, unresolved, unresolved_share"
    assert maker.ask(f"SELECT {columns} FROM session_profile") == [(1, 1000.0, 100, 0, 25, 0.25)]
    columns = "executed_samples, executed_sme2_samples, executed_sme2_share"
    assert maker.ask(f"SELECT {columns} FROM sme2_coverage WHERE mode = 'timing'") == [(100, 60, 0.6)]
