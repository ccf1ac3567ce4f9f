"""The sections on SME2 and advice: what sessions with SME2 and without it prove."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tasks.pages.charts import StackChart
from tasks.pages.page import Fold
from tasks.pages.sections.sme2 import sme2
from tests.fixtures.report import MS
from tests.fixtures.warehouse import CONVOLUTION, CONVOLUTION_SME2, LINEAR, TRANSPOSE
from tests.tasks.pages.conftest import Sweep, with_sessions

WITH_SME2: dict[str, Any] = {"device__facts": {"model": "board", "build": "b1", "sme2": True}}
DASH = "\u2013"


def pairs(sessions: int, convolution_ms: float = 4, **changes: Any) -> Callable[[Sweep], None]:
    """Sessions of 20 ms without SME2 and of 8 ms with it, 4 of them in a convolution, each a little apart."""

    def write(sweep: Sweep) -> None:
        moved = round((6 - convolution_ms) * MS)
        for number in range(sessions):
            off = (20 * MS + number * 1000, {CONVOLUTION: 16 * MS, TRANSPOSE: 2 * MS})
            on = (8 * MS + number * 1000, {CONVOLUTION_SME2: round(convolution_ms * MS), TRANSPOSE: moved})
            for variant, run in (("sme2_off", off), ("sme2_on", on)):
                sweep.session([run], variant=variant, repetition=number, **WITH_SME2 | changes)

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


@pytest.mark.parametrize(
    ("sweep", "sentence"),
    [
        (
            pairs(6, 3.5),
            "Convolution dominates without SME2 and with it: 80.0 % .*Data Movement grew most, from 10.0 % to 31.2",
        ),
        (
            pairs(6, 1),
            r"After SME2, Data Movement dominates: 62.5 % .* 5.00 ms\). With SME2 off Convolution did: 80.0 %",
        ),
        (pairs(5, 1), "off: Convolution, 80.0 % .* on: Data Movement, 62.5 % .* dominate with SME2 on: .* 6 sessions"),
        (pairs(6, 3), "dominate with SME2 on: the interval of "),
    ],
    ids=["same", "moved", "few sessions", "equal"],
    indirect=["sweep"],
)
def test_a_category_dominates_only_if_its_interval_is_above_the_others(sweep: Sweep, sentence: str) -> None:
    assert re.search(sentence, sweep["sme2"].words)


@pytest.mark.parametrize(
    ("sweep", "labels", "lengths"),
    [
        (pairs(1), ["SME2 off: 20.0 ms", "SME2 on: 8.00 ms"], [1.0, 0.4]),
        (pairs(1, device__emulated=True), ["SME2 off: 2 calls", "SME2 on: 2 calls"], [1.0, 1.0]),
    ],
    ids=["times", "calls"],
    indirect=["sweep"],
)
def test_the_shift_is_drawn_on_one_scale_and_of_an_emulated_device_in_calls(
    sweep: Sweep, labels: list[str], lengths: list[float]
) -> None:
    [fold] = [block for block in sme2(sweep.answers).blocks if isinstance(block, Fold)]
    [chart] = [block for block in fold.blocks if isinstance(block, StackChart)]
    assert [label for label, _ in chart.bars] == labels
    ends = [segments[-1].start + segments[-1].share for _, segments in chart.bars]
    assert ends == pytest.approx(lengths)


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


def nothing_gained(sweep: Sweep) -> None:
    slow = {"native_call_mean.out": 10 * MS, TRANSPOSE: 15 * MS, LINEAR: 50 * MS}
    for variant in ("sme2_off", "sme2_on"):
        sweep.session([(100 * MS, slow)], variant=variant, **WITH_SME2)


@with_sessions(nothing_gained)
def test_advice_is_ordered_and_each_item_has_its_figures_and_a_step(sweep: Sweep) -> None:
    assert "(10.0 %, one session, worst of 2 cells)." in sweep["portable"].summary
    items = (
        r"portable operators take 10.0 % of the time \(10.0 ms of 100 ms on host with SME2 off and one thread",
        r"mean \(up to 10.0 %\): The partitioner gave no reason. No rewrite",
        r"data movement takes 15.0 % of the time \(15.0 ms .* over the bound in 2 of 2 cells\). Heaviest: Transpose",
        "GEMM of toy fp32: 1.00\u00d7 with SME2, and 50.0 % of the time with it on .50.0 ms on host",
    )
    assert re.search(".*".join(items), sweep["advice"].words)
