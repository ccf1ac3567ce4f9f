"""What the report states about SME2, given sessions with it and without it."""

from typing import Any

import pytest

from tests.fixtures.report import MS, report_of
from tests.fixtures.warehouse import CONVOLUTION, CONVOLUTION_SME2, LINEAR, TRANSPOSE, BundleMaker, profile_of

WITH_SME2 = {"model": "board", "build": "b1", "sme2": True}
GEMM_F16 = "Fully Connected (NC, F16) GEMM #1"
GEMM_PF16 = "Fully Connected (NC, PF16) GEMM #2"
EXECUTED = "kai_kernel_matmul_clamp_f32_f32p2vlx1_f32p2vlx1biasf32_sme2_mopa"
SELECTED = "xnn_pf32_gemm_minmax_ukernel_32x32__neonsme2"


def both_ways(maker: BundleMaker, sessions: int, *, emulated: bool = False) -> None:
    """Sessions of 20 ms without SME2 and of 8 ms with it, each a little apart."""
    for index in range(sessions):
        off = (20 * MS + index * 1000, {CONVOLUTION: 16 * MS, TRANSPOSE: 2 * MS})
        on = (8 * MS + index * 1000, {CONVOLUTION_SME2: 4 * MS, TRANSPOSE: 2 * MS})
        for variant, run in (("sme2_off", off), ("sme2_on", on)):
            maker.session([run], variant=variant, repetition=index, device__facts=WITH_SME2, device__emulated=emulated)


@pytest.mark.parametrize(
    ("sessions", "interval", "basis"),
    [
        (5, "2.50 to 2.50", "of five sessions on each side; 95 % interval 2.50 to 2.50"),
        (
            4,
            "insufficient data",
            "of four sessions on each side; the interval of a ratio needs at least 5 sessions on each side",
        ),
    ],
)
def test_a_speed_up_comes_with_its_interval_from_five_sessions_a_side(
    maker: BundleMaker, sessions: int, interval: str, basis: str
) -> None:
    both_ways(maker, sessions)
    report = report_of(maker)
    sme2 = report["sme2"]
    assert sme2.column("Speed-up") == ["2.50"]
    assert sme2.column("95 %") == [interval]
    assert (sme2.column("Sessions off"), sme2.column("Sessions on")) == ([str(sessions)], [str(sessions)])
    assert report.contains(f"With SME2 on, runs are 2.50 times as fast as with SME2 off (one comparison {basis}).")


def test_the_interval_of_a_speed_up_is_the_exact_one_of_every_comparison(maker: BundleMaker) -> None:
    # given five sessions without SME2, and five with it that take half as long, one of them disturbed
    for off_ms, on_ms in ((20.0, 10.0), (20.4, 10.2), (20.8, 10.4), (21.2, 10.6), (21.6, 30.0)):
        for variant, ms in (("sme2_off", off_ms), ("sme2_on", on_ms)):
            maker.session([round(ms * MS)], variant=variant, device__facts=WITH_SME2)
    # then the interval runs from the third smallest of the 25 ratios to the third largest
    assert report_of(maker)["sme2"].column("95 %") == ["0.69 to 2.12"]
    assert report_of(maker).contains("exact and assumes only that both sides have the same noise", "sme2")


def test_medians_below_the_clock_have_no_speed_up_and_no_interval(maker: BundleMaker) -> None:
    for _ in range(5):
        maker.session([MS] * 3, variant="sme2_off", device__facts=WITH_SME2)
        maker.session([0, 0, 1000], variant="sme2_on", device__facts=WITH_SME2)
    sme2 = report_of(maker)["sme2"]
    assert (sme2.column("Speed-up"), sme2.column("95 %")) == (["–"], ["–"])  # noqa: RUF001


def test_each_pair_shows_where_the_time_went_and_its_operators_matched_across_data_types(maker: BundleMaker) -> None:
    both_ways(maker, 1)
    tables = report_of(maker)["sme2"].tables
    # then categories are in points and in milliseconds
    shift = next(table for table in tables if table[0][0] == "Category")
    assert shift[1:] == [
        ["Convolution", "80.0", "50.0", "-30.0", "16.000", "4.000", "-12.000"],
        ["Data Movement", "10.0", "25.0", "+15.0", "2.000", "2.000", "0.000"],
        ["Unattributed", "10.0", "25.0", "+15.0", "2.000", "2.000", "0.000"],
    ]
    # and an operator is one row with both data types
    operators = next(table for table in tables if table[0][1].startswith("Types off"))
    assert operators[1] == ["Convolution IGEMM", "F32", "PF32", "1", "16.000", "4.000", "4.00", "+12.000"]


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({"sme2": False}, "No device here has SME2, so there is nothing to compare."),
        ({}, "No device here reports SME2"),
        (WITH_SME2, "A device here has SME2, but no session with SME2 on succeeded"),
    ],
)
def test_without_a_session_with_sme2_the_section_is_one_sentence(
    maker: BundleMaker, facts: dict[str, Any], sentence: str
) -> None:
    maker.session([MS], device__facts=facts)
    report = report_of(maker)
    assert report.contains(sentence, "sme2")
    assert report["sme2"].tables == []


def test_one_side_gives_no_speed_up(maker: BundleMaker) -> None:
    maker.session([(MS, {CONVOLUTION_SME2: MS})], variant="sme2_on", device__facts=WITH_SME2)
    report = report_of(maker)
    assert report.contains("No cell was measured both with SME2 on and with SME2 off", "sme2")
    assert not any(head.startswith("Speed-up") for table in report["sme2"].tables for head in table[0])


def test_fp16_calls_that_stay_f16_have_a_sentence(maker: BundleMaker) -> None:
    run = (10 * MS, {GEMM_F16: 3 * MS, GEMM_F16.replace("#1", "#3"): MS, GEMM_PF16: 2 * MS})
    maker.session([run], variant="sme2_on", model__precision="fp16", device__facts=WITH_SME2)
    report = report_of(maker)
    assert report.contains("2 of 3 Fully Connected calls of toy stay F16 in fp16 with SME2 on.", "sme2")
    left_out = next(table for table in report["sme2"].tables if table[0][-1].startswith("Likely"))
    assert left_out[1][2:5] == ["Fully Connected (F16) GEMM", "2", "66.7"]
    assert "inference" in left_out[0][-1]


def test_executed_and_selected_kernels_are_listed_apart(maker: BundleMaker) -> None:
    log = f"Note (XNNPACK): Using gemm microkernel '{SELECTED}'. (init_pf32_gemm_config, a.c:495)\n"
    maker.session([MS], mode="trace", variant="sme2_on", files={"stderr.txt": log.encode()}, device__facts=WITH_SME2)
    for variant, kernels in (("sme2_on", {EXECUTED: 90, "memcpy": 10}), ("sme2_off", {"memcpy": 5})):
        maker.session([MS], mode="profile", variant=variant, files=profile_of(**kernels), device__facts=WITH_SME2)
    report = report_of(maker)
    executed, selected = (table for table in report["sme2"].tables if table[0][0] == "Kernel")
    assert executed[1:] == [[EXECUTED, "SME2", "0", "90"], ["memcpy", "other", "5", "10"]]
    assert selected[1:] == [[SELECTED, "SME2", "0", "1"]]
    assert report.contains("Not evidence alone: a selected kernel.", "sme2")


def test_an_emulated_device_shows_operators_and_kernels_and_no_speed_up(maker: BundleMaker) -> None:
    both_ways(maker, 5, emulated=True)
    sme2 = report_of(maker)["sme2"]
    assert sme2.column("Speed-up") == ["–"]  # noqa: RUF001
    assert sme2.column("95 %") == ["–"]  # noqa: RUF001
    assert sme2.column("On SME", 1) == ["1"]
    operators = next(table for table in sme2.tables if table[0][1].startswith("Types off"))
    assert operators[1] == ["Convolution IGEMM", "F32", "PF32", "1", *["–"] * 4]  # noqa: RUF001


def test_advice_is_ordered_and_each_item_has_its_figures_and_a_step(maker: BundleMaker) -> None:
    slow = {"native_call_mean.out": 10 * MS, TRANSPOSE: 15 * MS, LINEAR: 50 * MS}
    for variant in ("sme2_off", "sme2_on"):
        maker.session([(100 * MS, slow)], variant=variant, device__facts=WITH_SME2)
    report = report_of(maker)
    assert report.contains("Portable operators take more than 5 % of the time in toy fp32 (10.0 %, one session).")
    text = report["advice"].words
    delegate = text.index(
        "toy fp32: portable operators take 10.0 % of the time (10.0 ms of 100 ms on host with SME2 off and one thread, "
        "one session; "
        "over the bound in 2 of 2 cells). mean (up to 10.0 %): The partitioner gave no reason. No rewrite is known"
    )
    movement = text.index(
        "toy fp32: data movement takes 15.0 % of the time (15.0 ms on host with SME2 off and one thread; over the "
        "bound in 2 of 2 cells). Heaviest: Transpose (ND, X32) (15.0 %). Next: export with channels-last inputs"
    )
    kernel = text.index(
        "Fully Connected GEMM of toy fp32: 1.00\u00d7 with SME2, and 50.0 % of the time with it on (50.0 ms on host)."
    )
    assert delegate < movement < kernel


def test_advice_about_a_portable_operator_depends_on_the_partitioners_reason(maker: BundleMaker) -> None:
    reasons = {
        "aten.mean.dim": "mean.dim only supports keepdim=True",
        "aten.gather.default": "XNNPACK's partitioner has no rule for this operator",
    }
    maker.session(
        [(100 * MS, {"native_call_mean.out": 20 * MS, "native_call_gather.out": 10 * MS})],
        model__portable=[{"operator": name, "count": 1, "reason": reason} for name, reason in reasons.items()],
    )
    text = report_of(maker)["advice"].words
    mean = "XNNPACK's mean keeps the dimensions that it averages. Next: call it with keepdim=True"
    assert f"aten.mean.dim (up to 20.0 %): {mean}" in text
    gather = "XNNPACK has no indexing by a tensor. Nothing can be done in the exporter."
    assert f"aten.gather.default (up to 10.0 %): {gather}" in text


def test_below_the_bounds_there_is_nothing_to_do(maker: BundleMaker) -> None:
    maker.session([(100 * MS, {CONVOLUTION: 90 * MS, TRANSPOSE: 10 * MS})])
    assert report_of(maker).contains("No operator of this sweep is over these bounds.", "advice")
