"""What SME2 gains and where it ran: sessions of models, a query, the expected rows."""

import re
from itertools import chain
from typing import Any

import duckdb
import pytest

from sql.schema import seed_rows
from tests.fixtures.warehouse import (
    CONVOLUTION,
    CONVOLUTION_SME2,
    LINEAR,
    MEAN,
    TRANSPOSE,
    BundleMaker,
    counts_of,
    profile_of,
)

MS = 1_000_000
QP8 = "Fully Connected (NC, QP8, F32, QC8W) GEMM #1"
KAI_SME2 = "kai_kernel_matmul_clamp_f32_qai8dxp1vlx4_qsi8cxp4vlx4_1vlx4vl_sme2_mopa"
KAI_NEON = "kai_run_matmul_clamp_f32_qai8dxp4x8_qsi8cxp4x8_16x4_neon_i8mm"
KAI_RUN_SME2 = KAI_SME2.replace("kernel", "run", 1)
KAI_RUN_SME = KAI_RUN_SME2.replace("sme2", "sme")
KAI_PACK = "kai_run_lhs_quant_pack_qai8dxp_f32"
KAI_PACK_SME = "kai_run_lhs_pack_f32p2vlx1_f32_sme"


EXTENSION_LOG = (
    "Note (XNNPACK): Using gemm microkernel 'xnn_pf32_gemm_minmax_ukernel_32x32__neonsme2'. (init, gemm.c:1)\n"
    "Note (XNNPACK): Using dwconv microkernel 'xnn_f32_dwconv_minmax_ukernel_9p8c__neonfma'. (init, dw.c:1)\n"
)
DEPTHWISE = "Convolution (NHWC, F32) DWConv #1"
RULED = {
    "yes": [
        CONVOLUTION_SME2, "Convolution (NHWC, PQS8, QS8, QC8W) IGEMM #1", "Fully Connected (NC, PF32) GEMM #1",
        "Fully Connected (NC, PF16) GEMM", "Fully Connected (NC, PQS8, QC8W) GEMM #1",
        "Batch Matrix Multiply (NC, PF32) GEMM #1",
    ],
    "undecided": [QP8],
    "no": [
        CONVOLUTION, LINEAR, "Convolution (NHWC, QC8) IGEMM #1", "Convolution (NHWC, QC8W) IGEMM #2",
        "Fully Connected (NC, QS8, QC8W) GEMM #1", "Batch Matrix Multiply (NC, F32) GEMM #1",
        "Batch Matrix Multiply (NC, F16) GEMM #1",
    ],
}  # fmt: skip
UNRULED = [
    TRANSPOSE,
    MEAN,
    "Fully Connected (NC, F16) GEMM #1",
    "Convolution (NHWC, F32) DWConv #1",
    "Copy (NC, XPF32)",
]
NAMED = [
    # operator, its kernel without the extension
    ("Fully Connected (NC, PF32) GEMM #1", "kai_run_matmul_clamp_f32_f32p2vlx1_f32p2vlx1b_2vlx2vl_%s_mopa"),
    ("Convolution (NHWC, PF16) IGEMM #1", "kai_run_imatmul_clamp_f16_f16p2vlx2_f16p2vlx2b_2vlx2vl_%s_mopa"),
    ("Fully Connected (NC, PQS8, QC8W) GEMM #1", "kai_run_matmul_clamp_qai8_qai8p2vlx4_qsi8cxp2vlx4sb_2vlx2vl_%s_mopa"),
    (QP8, "kai_run_matmul_clamp_f32_qai8dxp1vlx4_qsi8cxp4vlx4_1vlx4vl_%s_mopa"),
]
# what a profile samples, and the share that it proves to be on SME2
PROVEN: list[tuple[dict[str, int] | None, float | None]] = [
    ({KAI_SME2: 80, KAI_PACK: 5, "unresolved": 15}, 1.0),
    ({KAI_NEON: 80, KAI_PACK: 5, "unresolved": 15}, 0.0),
    ({KAI_SME2: 30, KAI_NEON: 10}, 0.75),
    ({"unresolved": 100}, None),
    (None, None),
]
# profiles of another variant, device, runner, program or thread count prove nothing
OTHERS: list[dict[str, Any]] = [
    {"variant": "sme2_off"}, {"device__name": "x"}, {"runner__source_sha256": "x"}, {"model__pte_sha256": "x"},
    {"threads": 1},
]  # fmt: skip


def both(maker: BundleMaker, model: str, off: Any, on: Any, **changes: Any) -> None:
    maker.session([off], variant="sme2_off", model__name=model, **changes)
    maker.session([on], variant="sme2_on", model__name=model, **changes)


def on(maker: BundleMaker, model: str, execution: Any, **changes: Any) -> None:
    maker.session([execution], model__name=model, **{"variant": "sme2_on", **changes})


def write_sessions(maker: BundleMaker) -> None:
    """Write the sessions of all questions, which have a model each."""
    both(maker, "pairs", 10 * MS, 5 * MS)
    both(maker, "pairs", 10 * MS, 4 * MS, device__name="phone")
    both(maker, "pairs", 10 * MS, 2 * MS, threads=4)
    both(maker, "pairs", 10 * MS, 1 * MS, mode="profile")
    maker.session([10 * MS], variant="sme2_off", runner__source_sha256="theirs", model__name="pairs")
    on(maker, "pairs", 1 * MS, runner__source_sha256="ours")
    for transport in ("adb", "simulated"):
        both(maker, "reasons", 100, 100, device__name=transport, device__transport=transport, device__emulated=True)
    both(
        maker,
        "shift",
        (1000, {CONVOLUTION: 800, TRANSPOSE: 200}),
        (400, {CONVOLUTION_SME2: 200, TRANSPOSE: 180, MEAN: 20}),
    )
    maker.session([(100, {CONVOLUTION: 90})], variant="sme2_off", device__name="never-with-sme2", model__name="shift")
    for total, convolution in ((800, 400), (1000, 700), (2000, 900)):
        parts = {CONVOLUTION: convolution * 1000, DEPTHWISE: 100_000, LINEAR: 200_000}
        maker.session([(total * 1000, parts)], variant="sme2_off", model__name="types")
    on(maker, "types", (400_000, {CONVOLUTION_SME2: 70_000, DEPTHWISE: 100_000, MEAN: 20_000}))
    below = (20_000, {CONVOLUTION_SME2: 1_000, LINEAR: 10_000})
    both(maker, "below", (50_000, {CONVOLUTION: 0, LINEAR: 30_000}), below)
    eligible = {CONVOLUTION_SME2: 300, "Fully Connected (NC, F16) GEMM #1": 90, "native_call_bmm.out": 10}
    on(maker, "coverage", (1000, eligible | {DEPTHWISE: 500, TRANSPOSE: 50}))
    for name in chain(*RULED.values()):
        on(maker, name, (100, {name: 50}))
    for number, (kernels, _) in enumerate(PROVEN):
        on(maker, f"profile {number}", (100, {QP8: 80}), threads=2)
        if kernels is not None:
            on(maker, f"profile {number}", 100, mode="profile", threads=2, files=profile_of(**kernels))
        for other in OTHERS:
            profile = {"mode": "profile", "threads": 2, **other}
            on(maker, f"profile {number}", 100, files=profile_of(**{KAI_NEON: 7}), **profile)
    # the same operator with kernels of SME2, of SME, and without a profile
    for number, (operator, kernel) in enumerate(NAMED):
        for variant, extension in (("sme2_on", "sme2"), ("sme1", "sme")):
            on(maker, f"extension {number}", (100, {operator: 80}), variant=variant)
            profile = profile_of(**{kernel % extension: 80, KAI_PACK_SME: 20})
            on(maker, f"extension {number}", 100, variant=variant, mode="profile", files=profile)
        on(maker, f"extension {number}", (100, {operator: 80}), threads=2)
    # a model of which some layers run on SME and others of the same kind do not
    layers = {"Fully Connected (NC, PF16) GEMM #1": 10, "Fully Connected (NC, F16) GEMM #2": 10, CONVOLUTION: 10}
    on(maker, "some layers", (100, layers))
    on(maker, "selected", (100, {CONVOLUTION_SME2: 80}))
    log = EXTENSION_LOG.replace("gemm", "igemm").splitlines()[0].encode()
    on(maker, "selected", 100, mode="trace", files={"stderr.txt": log})
    # calls of two kernels for one operator, beside an operator without a kernel that has a name, and a weaker profile
    for emulated in (False, True):
        device = {"device__name": f"counted {emulated}", "device__emulated": emulated}
        counted = {KAI_RUN_SME2: (6, 1 * MS), KAI_NEON: (2, 3 * MS), KAI_PACK: (2, 5), KAI_RUN_SME: (0, 0)}
        on(maker, "counted", (100, {QP8: 80, DEPTHWISE: 10}), **device)
        on(maker, "counted", 100, mode="counts", files=counts_of(counted, executions=2), **device)
        on(maker, "counted", 100, mode="profile", files=profile_of(**{KAI_NEON: 7}), **device)
    on(maker, "apart", (100, {LINEAR: 80}))
    on(maker, "apart", 100, mode="trace", files={"stderr.txt": EXTENSION_LOG.encode()})
    on(maker, "apart", 100, mode="profile", files=profile_of(**{KAI_SME2: 60, "memcpy": 15, "unresolved": 25}))


def ask(farm: BundleMaker, view: str, model: str, columns: str) -> list[tuple[Any, ...]]:
    return farm.ask(f"SELECT {columns} FROM {view} WHERE model = '{model}' ORDER BY ALL")


def test_speedup_never_mixes_devices_runners_threads_or_modes(farm: BundleMaker) -> None:
    assert ask(farm, "sme2_speedup", "pairs", "device, threads, runner_source, speedup") == [
        ("host", 1, "ours", None),
        ("host", 1, "source1", 2.0),
        ("host", 1, "theirs", None),
        ("host", 4, "source1", 5.0),
        ("phone", 1, "source1", 2.5),
    ]
    assert ask(farm, "sme2_speedup", "reasons", "reason") == [("emulated",), ("simulated",)]


def test_bottleneck_shift_shows_what_takes_a_larger_share_with_sme2(farm: BundleMaker) -> None:
    columns = "category, share_on, share_off, round(change_points, 9), round(change_ms * 1e6, 3)"
    assert ask(farm, "bottleneck_shift", "shift", columns)[:3] == [
        ("Convolution", 0.5, 0.8, -30.0, -600.0),
        ("Data Movement", 0.45, 0.2, 25.0, -20.0),
        ("Other", 0.05, 0.0, 5.0, 20.0),
    ]


def test_operators_are_matched_though_their_data_types_differ(farm: BundleMaker) -> None:
    columns = "operator, microkernel, data_types_on, data_types_off, calls_on, round(speedup, 6)"
    assert ask(farm, "operator_speedup", "types", columns) == [
        ("Convolution", "DWConv", "F32", "F32", 1.0, 1.0),
        ("Convolution", "IGEMM", "PF32", "F32", 1.0, 10.0),
        ("Fully Connected", "GEMM", None, "F32", None, None),
        ("mean", None, None, None, 1.0, None),
    ]
    # and one below the resolution of its clock has no speed-up
    below = [("Convolution", None, True), ("Fully Connected", 3.0, False)]
    assert ask(farm, "operator_speedup", "below", "operator, speedup, below_resolution") == below


def test_coverage_by_name_is_the_part_of_eligible_time_on_sme2(farm: BundleMaker) -> None:
    columns = "eligible_ms * 1e6, sme_ms * 1e6, undecided_ms, name_share, eligible_calls, sme_calls"
    assert ask(farm, "sme2_coverage", "coverage", columns) == [pytest.approx((400.0, 300.0, 0.0, 0.75, 3.0, 1.0))]
    unproven = [(None, None, "not proven")]
    assert ask(farm, "sme2_coverage", "coverage", "proven_share, sme2_calls, evidence") == unproven
    assert ask(farm, "sme2_operator_coverage", "coverage", "operator, sme_by_name, likely_reason") == [
        ("Convolution", "yes", None),
        ("Fully Connected", "no", "never"),
        ("bmm", "no", "portable"),
    ]
    # and a reason comes from the operators of the same model
    assert ask(farm, "sme2_operator_coverage", "some layers", "operator, data_type, likely_reason") == [
        ("Convolution", "F32", "never"),
        ("Fully Connected", "F16", "data types or shape"),
        ("Fully Connected", "PF16", None),
    ]


def test_names_show_sme_except_for_dynamic_int8(farm: BundleMaker) -> None:
    shown = dict(farm.ask("SELECT model, sme_by_name FROM sme2_operator_coverage"))
    expected = {name: by_name for by_name, names in RULED.items() for name in names}
    assert {name: shown[name] for name in expected} == expected


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


def test_executed_kernels_decide_what_names_leave_undecided(farm: BundleMaker) -> None:
    shares = farm.ask("SELECT model, name_share, proven_share FROM sme2_coverage WHERE mode = 'timing'")
    expected = {(f"profile {number}", 0.0, proven) for number, (_, proven) in enumerate(PROVEN)}
    assert {row for row in shares if row[0].startswith("profile")} == expected


def test_only_kernels_distinguish_sme2_from_sme_whose_operators_have_the_same_names(farm: BundleMaker) -> None:
    # then SME2 is proven of the first alone, and nothing of what has no profile
    columns = "variant, threads, proven_share, proven_sme1_share, sme2_calls, sme1_calls, evidence"
    for number in range(len(NAMED)):
        assert ask(farm, "sme2_coverage", f"extension {number}", columns) == [
            ("sme1", 1, 0.0, 1.0, 0.0, 1.0, "executed"),
            ("sme2_on", 1, 1.0, 0.0, 1.0, 0.0, "executed"),
            ("sme2_on", 2, None, None, None, None, "not proven"),
        ]


def test_counted_calls_are_the_strongest_evidence_and_decide_by_their_time(farm: BundleMaker) -> None:
    # then SME2 has its part of the time in the calls, and of the calls where times mean nothing
    columns = "emulated, proven_share, evidence, kernel_calls, sme2_kernel_calls, kernel_ms, sme2_kernel_ms"
    assert ask(farm, "sme2_coverage", "counted", columns) == [
        (False, 0.25, "counted", 4.0, 3.0, 2.0, 0.5),
        (True, 0.75, "counted", 4.0, 3.0, None, None),
    ]
    # and each operator has the kernels that the runner has for it, or kernels without a name
    columns = "operator, kernel, compiled, selected, executed, kernel_calls_per_run, kernel_time_ms, operators"
    kernels = farm.ask(f"SELECT {columns} FROM operator_kernels WHERE model = 'counted' AND NOT emulated ORDER BY ALL")
    assert kernels == [
        ("Convolution", "(unnamed)", True, None, True, None, None, None),
        ("Fully Connected", KAI_RUN_SME2, True, None, True, 3.0, 0.5, 1),
        ("Fully Connected", KAI_RUN_SME, True, None, False, 0.0, None, 1),
        ("Fully Connected", KAI_NEON, True, None, True, 1.0, 1.5, 1),
    ]
    calls = "kernel, weight, calls_per_run, time_ms, share"
    assert farm.ask(f"SELECT {calls} FROM kernel_use WHERE emulated AND evidence = 'counted' ORDER BY ALL") == [
        (KAI_PACK, 2, 1.0, None, None),
        (KAI_RUN_SME2, 6, 3.0, None, None),
        (KAI_NEON, 2, 1.0, None, None),
    ]
    # and where nothing was counted, what has no name is unknown, and samples show what was executed
    columns = "operator, kernel, compiled, selected, executed, kernel_calls_per_run"
    assert ask(farm, "operator_kernels", "profile 0", columns) == [
        ("Fully Connected", KAI_SME2, None, None, True, None),
    ]


def test_kernels_that_ran_and_kernels_that_were_selected_are_kept_apart(farm: BundleMaker) -> None:
    assert ask(farm, "sme2_coverage", "selected", "proven_share, evidence") == [(1.0, "selected")]
    assert ask(farm, "kernel_use", "apart", "evidence, weight, kernel, share, isa_family, operation, mode") == [
        ("executed", 15, "memcpy", 0.15, "other", None, "profile"),
        ("executed", 25, "(unresolved)", 0.25, "unresolved", None, "profile"),
        ("executed", 60, KAI_SME2, 0.6, "SME2", "matmul", "profile"),
        ("selected", 1, "xnn_f32_dwconv_minmax_ukernel_9p8c__neonfma", None, "NEON", "dwconv", "trace"),
        ("selected", 1, "xnn_pf32_gemm_minmax_ukernel_32x32__neonsme2", None, "SME2", "gemm", "trace"),
    ]
    # and the profile has its number of samples, and the coverage the part of them in kernels of SME2
    columns = "threads_sampled, rate_hz, samples, dropped, unresolved, unresolved_share"
    assert ask(farm, "session_profile", "apart", columns) == [(1, 1000.0, 100, 0, 25, 0.25)]
    columns = "executed_samples, executed_sme2_samples, executed_sme2_share"
    assert (100, 60, 0.6) in ask(farm, "sme2_coverage", "apart", columns)
