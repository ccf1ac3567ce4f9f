"""The sections on where the time goes: categories, operators and portable operators."""

from collections.abc import Callable

import pytest

from tasks.pages.charts import StackChart
from tasks.pages.sections.operators import categories
from tasks.results.measurements.operators import OTHER, REST, CategoryRow, ModuleRow, heaviest_modules
from tests.fixtures.report import MS
from tests.fixtures.warehouse import CONVOLUTION, LINEAR, MEAN, TRANSPOSE
from tests.tasks.pages.conftest import Part, Sweep, with_sessions
from tests.tasks.pages.rows import answers_of, row

DASH = "\u2013"


def test_categories_that_no_longer_exist_add_up_to_other_in_table_and_chart() -> None:
    # given a cell of a warehouse with two categories that were removed, beside Other
    shares = ("Convolution", 0.5), ("Removed", 0.2), (OTHER, 0.1), ("Removed too", 0.15), (REST, 0.05)
    rows = (row(CategoryRow, category=name, time_ms=10 * each, share=each, resolution_ms=0.0) for name, each in shares)
    section = categories(answers_of(*rows))
    time = Part.of(section)
    assert [time.column(head) for head in ("Other", "Sum", "Time")] == [["45.0"], ["100.0"], ["10.000"]]
    (chart,) = [block for block in section.blocks if isinstance(block, StackChart)]
    drawn = {segment.category: round(segment.share, 3) for segment in chart.bars[0][1]}
    assert drawn == {"Convolution": 0.5, OTHER: 0.45, REST: 0.05}


@with_sessions(lambda sweep: sweep.session([(7 * MS, {CONVOLUTION: 2 * MS, LINEAR: 2 * MS, MEAN: 2 * MS})]))
def test_the_same_share_is_the_same_number_everywhere_and_their_sum_is_100_percent(sweep: Sweep) -> None:
    # given shares that do not add up to 100.0 once they are rounded
    time = sweep["time"]
    names = ("Convolution", "GEMM", "Data", "Elementwise", "Other", "Unattributed", "Sum")
    shares = ["28.6", "28.6", "0.0", "0.0", "28.6", "14.3", "100.0"]
    assert [time.column(name)[0] for name in names] == shares
    assert sweep["operators"].column("Share") == ["28.6"] * 3
    assert sweep["portable"].column("Weight")[0] == "28.6"
    (chart,) = [block for block in categories(sweep.answers).blocks if isinstance(block, StackChart)]
    assert sum(segment.share for segment in chart.bars[0][1]) == pytest.approx(1)


def below_the_clock(sweep: Sweep) -> None:
    short = {f"Add (ND) #{number}": 0 for number in range(1, 8)}
    sweep.session([(9_000, {CONVOLUTION: 2_000, **short})])


@with_sessions(below_the_clock)
def test_times_below_the_clock_of_the_delegate_are_neither_printed_nor_ranked(sweep: Sweep) -> None:
    time, operators = sweep["time"], sweep["operators"]
    assert (time.column("Elementwise"), time.column("Unattributed")) == (["< 77.8"], ["< 77.8"])
    assert time.summary.startswith("Where the time of toy goes is unknown")
    assert "Not drawn: one cell of toy" in time.words
    assert operators.column("Operator") == ["Convolution (NHWC, F32) IGEMM"]
    assert "One more operator takes less than 1" in operators.words


@with_sessions(lambda sweep: sweep.session([(100 * MS, {CONVOLUTION: 90 * MS, MEAN: 6 * MS, TRANSPOSE: 4 * MS})]))
def test_operators_over_5_percent_are_highlighted(sweep: Sweep) -> None:
    operators = sweep["operators"]
    convolution = ["Convolution (NHWC, F32) IGEMM", "delegated", "Convolution", "1", "90.000", "90.0"]
    assert operators.tables[0][1] == convolution
    assert operators.column("Share") == ["90.0", "6.0", "4.0"]
    assert operators.flagged == ["90.0", "portable", "6.0"]


def portable_operators(sweep: Sweep) -> None:
    reasons = {"aten.mean.dim": (2, "keepdim is off"), "aten.view_copy.default": (3, None)}
    portable = [{"operator": name, "count": count, "reason": reason} for name, (count, reason) in reasons.items()]
    sweep.session([(100 * MS, {CONVOLUTION: 60 * MS, MEAN: 20 * MS})], model__portable=portable)


@with_sessions(portable_operators)
def test_portable_operators_have_their_weight_and_the_exporters_reason(sweep: Sweep) -> None:
    portable = sweep["portable"]
    weights, heavy, light = portable.tables
    assert weights[1][-1] == "20.0"
    assert heavy[1][:-1] == ["toy", "fp32", "aten.mean.dim", "2", "20.0", "host", "keepdim is off"]
    assert light[1][2:] == ["aten.view_copy.default", "3", DASH, DASH, "the partitioner gave no reason", DASH]


def mean_of(*times_ms: int) -> Callable[[Sweep], None]:
    def write(sweep: Sweep) -> None:
        for threads, time_ms in enumerate(times_ms, 1):
            mean = {MEAN: time_ms * MS} if time_ms else {}
            sweep.session([(100 * MS, {CONVOLUTION: 60 * MS, **mean})], threads=threads)

    return write


@pytest.mark.parametrize(
    ("sweep", "sentence"),
    [
        (mean_of(0, 0), "No portable operator runs in toy: 0 % of the time."),
        (mean_of(3), "Portable operators take 3.0 % of the time of toy."),
        (mean_of(0, 3), "Portable operators take at most 3.0 % of the time of toy."),
    ],
    indirect=["sweep"],
)
def test_light_portable_operators_have_their_largest_weight_in_the_summary(sweep: Sweep, sentence: str) -> None:
    assert sweep["portable"].summary == sentence


@pytest.mark.parametrize(
    ("sweep", "how_many"),
    [(mean_of(6), ""), (mean_of(6, 20, 3), ", worst of 3 cells")],
    indirect=["sweep"],
)
def test_a_model_with_heavy_portable_operators_is_named_with_its_worst_cell(sweep: Sweep, how_many: str) -> None:
    worst = "two threads (20.0 %" if how_many else "one thread (6.0 %"
    named = f"toy fp32 on host with SME2 off and {worst}, one session{how_many})"
    assert sweep["portable"].summary == f"Portable operators take more than 5 % of the time in {named}."


def test_the_heading_of_a_cell_names_the_modules_whose_own_operators_take_time_and_no_other() -> None:
    def module(path: str, share: float, own_share: float) -> ModuleRow:
        return row(ModuleRow, module_path=path, share=share, own_share=own_share, kind="module")

    encoder = [module("encoder", 0.9, 0.01), module("encoder.conv", 0.89, 0.89)]
    assert heaviest_modules(encoder) == "encoder.conv 89.0 %"
    assert heaviest_modules([*encoder, module("head", 0.05, 0.05)]) == "encoder.conv 89.0 % and head 5.0 %"
    assert heaviest_modules([module("head", 0.06, 0.049)]) == ""
