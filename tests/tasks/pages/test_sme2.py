"""The sections on SME2 and advice: what sessions with SME2 and without it prove."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.fixtures.report import MS
from tests.fixtures.warehouse import CONVOLUTION, CONVOLUTION_SME2, LINEAR, TRANSPOSE, profile_of
from tests.tasks.pages.conftest import Sweep, with_sessions

WITH_SME2: dict[str, Any] = {"device__facts": {"model": "board", "build": "b1", "sme2": True}}
GEMM_F16 = "Fully Connected (NC, F16) GEMM #1"
GEMM_PF16 = "Fully Connected (NC, PF16) GEMM #2"
EXECUTED = "kai_kernel_matmul_clamp_f32_f32p2vlx1_f32p2vlx1biasf32_sme2_mopa"
SELECTED = "xnn_pf32_gemm_minmax_ukernel_32x32__neonsme2"
DASH = "\u2013"


def pairs(sessions: int, *, emulated: bool = False) -> Callable[[Sweep], None]:
    """Sessions of 20 ms without SME2 and of 8 ms with it, each a little apart."""

    def write(sweep: Sweep) -> None:
        for number in range(sessions):
            off = (20 * MS + number * 1000, {CONVOLUTION: 16 * MS, TRANSPOSE: 2 * MS})
            on = (8 * MS + number * 1000, {CONVOLUTION_SME2: 4 * MS, TRANSPOSE: 2 * MS})
            for variant, run in (("sme2_off", off), ("sme2_on", on)):
                sweep.session([run], variant=variant, repetition=number, device__emulated=emulated, **WITH_SME2)

    return write


def times(*off_and_on_ms: tuple[float, float]) -> Callable[[Sweep], None]:
    def write(sweep: Sweep) -> None:
        for pair in off_and_on_ms:
            for variant, time_ms in zip(("sme2_off", "sme2_on"), pair, strict=True):
                sweep.session([round(time_ms * MS)] * 3, variant=variant, **WITH_SME2)

    return write


def times_below_the_clock(sweep: Sweep) -> None:
    for _ in range(5):
        sweep.session([MS] * 3, variant="sme2_off", **WITH_SME2)
        sweep.session([0, 0, 1000], variant="sme2_on", **WITH_SME2)


@pytest.mark.parametrize(
    ("sweep", "speedup", "interval", "basis"),
    [
        (pairs(5), "2.50", "2.50 to 2.50", "of five sessions on each side; 95 % interval 2.50 to 2.50"),
        (pairs(4), "2.50", "insufficient data", "the interval of a ratio needs at least 5 sessions on each side"),
        # one of five disturbed: the interval runs from the third smallest of the 25 ratios to the third largest
        (times((20, 10), (20.4, 10.2), (20.8, 10.4), (21.2, 10.6), (21.6, 30)), "2.00", "0.69 to 2.12", "0.69 to 2.12"),
        (times_below_the_clock, DASH, DASH, ""),
    ],
    indirect=["sweep"],
)
def test_a_speed_up_has_an_interval_from_five_sessions_a_side(
    sweep: Sweep, speedup: str, interval: str, basis: str
) -> None:
    sme2 = sweep["sme2"]
    assert (sme2.column("Speed-up"), sme2.column("95 %")) == ([speedup], [interval])
    assert basis in sme2.summary
    assert (f"runs are {speedup} times as fast as with SME2 off (one comparison " in sme2.summary) == bool(basis)


@with_sessions(pairs(1))
def test_each_pair_shows_where_the_time_went_and_its_operators_matched_across_data_types(sweep: Sweep) -> None:
    tables = sweep["sme2"].tables
    # categories in points and in milliseconds
    shift = next(table for table in tables if table[0][0] == "Category")
    assert shift[1:] == [
        ["Convolution", "80.0", "50.0", "-30.0", "16.000", "4.000", "-12.000"],
        ["Data Movement", "10.0", "25.0", "+15.0", "2.000", "2.000", "0.000"],
        ["Unattributed", "10.0", "25.0", "+15.0", "2.000", "2.000", "0.000"],
    ]
    # and an operator is one row with both data types
    operators = next(table for table in tables if table[0][1] == "Types off")
    assert operators[1] == ["Convolution IGEMM", "F32", "PF32", "1", "16.000", "4.000", "4.00", "+12.000"]


@pytest.mark.parametrize(
    ("sweep", "sentence"),
    [
        (lambda sweep: sweep.session([MS], device__facts={"sme2": False}), "No device here has SME2, so there is"),
        (lambda sweep: sweep.session([MS], device__facts={}), "No device here reports SME2"),
        (lambda sweep: sweep.session([MS], **WITH_SME2), "A device here has SME2, but no session with SME2 on"),
    ],
    indirect=["sweep"],
)
def test_without_a_session_with_sme2_the_section_is_one_sentence(sweep: Sweep, sentence: str) -> None:
    assert sweep["sme2"].words.startswith(sentence)
    assert sweep["sme2"].tables == []


@with_sessions(lambda sweep: sweep.session([(MS, {CONVOLUTION_SME2: MS})], variant="sme2_on", **WITH_SME2))
def test_one_side_gives_no_speed_up(sweep: Sweep) -> None:
    sme2 = sweep["sme2"]
    assert sme2.words.startswith("No cell was measured both with SME2 on and with SME2 off")
    assert "One cell ran only with SME2 on" in sme2.words
    assert "Speed-up" not in {head for table in sme2.tables for head in table[0]}


def fp16(sweep: Sweep) -> None:
    run = (10 * MS, {GEMM_F16: 3 * MS, GEMM_F16.replace("#1", "#3"): MS, GEMM_PF16: 2 * MS})
    sweep.session([run], variant="sme2_on", model__precision="fp16", **WITH_SME2)


@with_sessions(fp16)
def test_fp16_calls_that_stay_f16_have_a_sentence_and_a_likely_reason(sweep: Sweep) -> None:
    sme2 = sweep["sme2"]
    assert "2 of 3 Fully Connected calls of toy stay F16 in fp16 with SME2 on." in sme2.words
    left_out = next(table for table in sme2.tables if table[0][-1] == "Likely reason (inference)")
    reason = "its data types or its shape: other Fully Connected of this model ran on SME"
    assert left_out[1][2:] == ["Fully Connected (F16) GEMM", "2", "66.7", reason]


def kernels(sweep: Sweep) -> None:
    log = f"Note (XNNPACK): Using gemm microkernel '{SELECTED}'. (init_pf32_gemm_config, a.c:495)\n"
    sweep.session([MS], mode="trace", variant="sme2_on", files={"stderr.txt": log.encode()}, **WITH_SME2)
    for variant, samples in (("sme2_on", {EXECUTED: 90, "memcpy": 10}), ("sme2_off", {"memcpy": 5})):
        sweep.session([MS], mode="profile", variant=variant, files=profile_of(**samples), **WITH_SME2)


@with_sessions(kernels)
def test_executed_and_selected_kernels_are_listed_apart(sweep: Sweep) -> None:
    executed, selected = (table for table in sweep["sme2"].tables if table[0][0] == "Kernel")
    assert executed[0][2:] == ["SME2 off samples", "SME2 on samples"]
    assert executed[1:] == [[EXECUTED, "SME2", "0", "90"], ["memcpy", "other", "5", "10"]]
    assert selected[0][2:] == ["SME2 off lines of the log", "SME2 on lines of the log"]
    assert selected[1:] == [[SELECTED, "SME2", "0", "1"]]


@with_sessions(pairs(5, emulated=True))
def test_an_emulated_device_shows_operators_and_kernels_and_no_speed_up(sweep: Sweep) -> None:
    sme2 = sweep["sme2"]
    assert (sme2.column("Speed-up"), sme2.column("95 %"), sme2.column("On SME", 1)) == ([DASH], [DASH], ["1"])
    operators = next(table for table in sme2.tables if table[0][1] == "Types off")
    assert operators[1] == ["Convolution IGEMM", "F32", "PF32", "1", *[DASH] * 4]


def nothing_gained(sweep: Sweep) -> None:
    slow = {"native_call_mean.out": 10 * MS, TRANSPOSE: 15 * MS, LINEAR: 50 * MS}
    for variant in ("sme2_off", "sme2_on"):
        sweep.session([(100 * MS, slow)], variant=variant, **WITH_SME2)


@with_sessions(nothing_gained)
def test_advice_is_ordered_and_each_item_has_its_figures_and_a_step(sweep: Sweep) -> None:
    assert "more than 5 % of the time in toy fp32 (10.0 %, one session)." in sweep["portable"].summary
    text = sweep["advice"].words
    delegate = text.index(
        "toy fp32: portable operators take 10.0 % of the time (10.0 ms of 100 ms on host with SME2 off and one thread, "
        "one session; over the bound in 2 of 2 cells). mean (up to 10.0 %): The partitioner gave no reason. No rewrite "
    )
    movement = text.index(
        "toy fp32: data movement takes 15.0 % of the time (15.0 ms on host with SME2 off and one thread; over the "
        "bound in 2 of 2 cells). Heaviest: Transpose (ND, X32) (15.0 %). Next: export with channels-last inputs"
    )
    kernel = text.index(
        "Fully Connected GEMM of toy fp32: 1.00\u00d7 with SME2, and 50.0 % of the time with it on (50.0 ms on host)."
    )
    assert delegate < movement < kernel


@with_sessions(lambda sweep: sweep.session([(100 * MS, {CONVOLUTION: 90 * MS, TRANSPOSE: 10 * MS})]))
def test_below_the_bounds_there_is_nothing_to_do(sweep: Sweep) -> None:
    assert "No operator of this sweep is over these bounds." in sweep["advice"].words
