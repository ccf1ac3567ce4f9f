"""Which delegate is the fastest that is accurate: sessions, the rows of the view, and the sentences about them."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from sql.question import questions
from sql.warehouse import open_read_only
from tasks.bundle.robust_statistics import MIN_SESSIONS
from tasks.judge.delegates import seconds_later
from tasks.pages.page import Paragraph
from tasks.pages.sections.delegates import section
from tasks.pages.site.site import Site
from tasks.results.addresses import model_page
from tasks.results.cells import Model
from tasks.results.changes import load_change
from tasks.results.compare import compare_arms
from tasks.results.measurements.delegates import DelegateRow, choose_delegates
from tasks.results.reader import open_answers, open_reader
from tasks.results.table import Table
from tasks.results.text import Link, plain_text, split_text
from tests.fixtures.delegates import (
    CRASH,
    FAILED,
    NO_PART,
    SWEEP,
    TAKEN,
    load_with_skipped,
    write_cells,
    write_delegates,
)
from tests.fixtures.warehouse import BundleMaker


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BundleMaker]:
    maker = BundleMaker(tmp_path_factory.mktemp("farm"))
    write_delegates(maker)
    # a pair within the margin of a comparison and one beyond it, with a case; an interval needs five sessions
    write_cells(maker, {("near@tg8", "fp32"): 10.0, ("near@tg8,delegate=openvino", "fp32"): 9.95})
    write_cells(maker, {("apart", "fp32"): 10.0, ("apart@delegate=portable", "fp32"): 9.7})
    for sessions in (4, 5):
        pair = {("few", "fp32"): 10.0, ("few@delegate=openvino", "fp32"): 4.0}
        write_cells(maker, pair, sessions, device__name=f"of {sessions}")
    # a delegate that a resumed sweep measured 20 minutes later
    write_cells(maker, {("late", "fp32"): 10.0})
    write_cells(maker, {("late@delegate=openvino", "fp32"): 4.0}, started_at="2026-11-20T01:20:00+00:00")
    # an emulated device, what nothing was compared of, and a model without a delegate
    write_cells(
        maker,
        {("net", "fp32"): 10.0, ("net@delegate=openvino", "fp32"): 4.0},
        1,
        device__name="qemu",
        device__emulated=True,
    )
    write_cells(maker, {("bare", "fp32"): 10.0, ("bare@delegate=openvino", "fp32"): 4.0}, accuracy=None)
    write_cells(maker, {("other", "fp32"): 1.0}, 1)
    # a list of which the second delegate takes nothing: a shorter time is noise
    lists = {("listed", "fp32"): 10.0, ("listed@delegate=openvino", "fp32"): 4.0}
    write_cells(maker, lists | {("listed@delegate=openvino+xnnpack", "fp32"): 3.9}, device__name="of lists")
    # nothing to compare with: XNNPACK failed, and a list is the same program; on another device, one is inaccurate
    lone = {("lone@delegate=openvino", "fp32"): 4.0, ("lone@delegate=openvino+xnnpack", "fp32"): 3.9}
    write_cells(maker, lone)
    maker.session(model__name="lone", **FAILED)
    inaccurate = {("lone@delegate=openvino", "fp32"): 4.0, ("lone@delegate=my.part:make", "fp32"): 2.0}
    write_cells(maker, inaccurate, device__name="of two")
    load_with_skipped(maker, "net@delegate=mlx", "near", "other@export=1.4.1")
    with open_read_only(maker.warehouse):
        yield maker


def rows_of(farm: BundleMaker, columns: str, where: str = "device = 'host' AND compared_model = 'net'") -> list[Any]:
    return farm.ask(f"SELECT {columns} FROM delegate_comparison WHERE {where} ORDER BY ALL")


def test_the_fastest_is_that_of_the_accurate_ones_within_a_precision_and_over_all(farm: BundleMaker) -> None:
    assert rows_of(farm, "delegate, precision, standing, standing_of_model") == [
        ("coreml", "fp32", "failed", "failed"),
        ("mlx", "fp32", "skipped", "skipped"),
        ("my.part:make", "fp32", "inaccurate", "inaccurate"),
        ("openvino", "fp32", "fastest", "slower"),
        ("portable", "fp32", "slower", "slower"),
        ("xnnpack", "fp32", "slower", "slower"),
        ("xnnpack", "int8_static", "only one measured", "fastest"),
    ]
    assert rows_of(farm, "DISTINCT reason", "outcome <> 'measured'") == [(NO_PART,), (CRASH,)]


def test_a_delegate_that_is_compared_with_nothing_is_not_the_fastest(farm: BundleMaker) -> None:
    assert rows_of(farm, "device, delegate, standing, standing_of_model", "compared_model = 'lone'") == [
        ("host", "openvino", "only one measured", "only one measured"),
        ("host", "openvino+xnnpack", "same as openvino", "same as openvino"),
        ("host", "xnnpack", "failed", "failed"),
        ("of two", "my.part:make", "inaccurate", "inaccurate"),
        ("of two", "openvino", "fastest", "fastest"),
    ]
    with open_answers(farm.warehouse, None) as answers:
        rows = [row for row in answers.rows(DelegateRow) if row.compared_model == "lone" and row.device == "host"]
    assert [row.delegate for row in rows] == ["openvino", "openvino+xnnpack", "xnnpack"]
    [choice] = choose_delegates(rows)
    assert choice.line == (
        "lone fp32 on host, one thread: `openvino` is the only one measured, 4.00 ms (five sessions, 4.00 to 4.00 ms); "
        "`openvino` took 90.0 % of the operators and 99.0 % of the multiply-accumulates; "
        f"`openvino+xnnpack` is the same as `openvino`: xnnpack took nothing; `xnnpack` failed: {CRASH}."
    )


def test_times_are_told_apart_by_the_rule_of_any_comparison(farm: BundleMaker) -> None:
    others = rows_of(farm, "model, device, standing", "compared_model IN ('near@tg8', 'apart', 'few', 'late')")
    assert [row for row in others if row[2] != "fastest"] == [
        ("apart", "host", "slower"),
        ("few", "of 4", f"too few sessions to tell (4, needs {MIN_SESSIONS})"),
        ("few", "of 5", "slower"),
        ("few@delegate=openvino", "of 4", "shortest time"),
        ("late", "host", "not interleaved"),
        ("late@delegate=openvino", "host", "shortest time"),
        ("near@tg8", "host", "not told apart"),
        ("near@tg8,delegate=openvino", "host", "shortest time"),
    ]
    assert rows_of(farm, "later_s, speedup_low", "model IN ('late', 'late@delegate=openvino')") == [
        (-1200.0, None), (None, None),
    ]  # fmt: skip
    # and an inaccurate delegate is never faster, nor has an emulated device times
    ratios = rows_of(farm, "delegate, round(speedup, 3)", "model[:4] = 'net@' AND speedup > 0")
    assert ratios == [("openvino", 2.5), ("portable", 0.1)]
    emulated = rows_of(farm, "DISTINCT time_ms, load_ms, speedup, standing", "emulated AND outcome = 'measured'")
    assert emulated == [(None, None, None, "emulated")]


def test_a_list_of_which_later_delegates_took_nothing_is_the_same_as_its_first(farm: BundleMaker) -> None:
    assert rows_of(farm, "delegate, standing, standing_of_model, reason, speedup > 0", "compared_model = 'listed'") == [
        ("openvino", "fastest", "fastest", None, True),
        ("openvino+xnnpack", "same as openvino", "same as openvino", "xnnpack took nothing", None),
        ("xnnpack", "slower", "slower", None, None),
    ]
    with open_answers(farm.warehouse, None) as answers:
        [line] = [each.line for each in choose_delegates(answers.rows(DelegateRow)) if "of lists" in each.line]
    assert line.endswith("; `openvino+xnnpack` is the same as `openvino`: xnnpack took nothing.")


def test_what_was_skipped_is_listed_on_the_devices_that_measured_the_model(farm: BundleMaker) -> None:
    assert rows_of(farm, "DISTINCT device", "outcome = 'skipped'") == [("host",), ("qemu",)]


def test_what_each_backend_took_is_stated_or_what_is_known_of_an_older_bundle(farm: BundleMaker) -> None:
    columns = "delegate, taken, round(operator_share, 2), round(mac_share, 2)"
    fp32 = "device = 'host' AND compared_model = 'net' AND precision = 'fp32' AND sessions > 0"
    assert rows_of(farm, columns, fp32) == [
        ("my.part:make", None, 0.8, None),
        ("openvino", TAKEN["openvino"], 0.9, 0.99),
        ("portable", [], 0.0, 0.0),
        ("xnnpack", [{"backend": "XnnpackBackend", "operators": 80, "macs": None}], 0.8, None),
    ]


@pytest.mark.thorough
def test_a_later_result_is_compared_with_the_others_of_its_sweep(farm: BundleMaker) -> None:
    # given a delegate that further starts of the sweep measure, after one that skipped it and one without a device
    later = BundleMaker(farm.bundles.parent / "later")
    later.warehouse.write_bytes(farm.warehouse.read_bytes())
    later.sessions = 1000
    failed: dict[str, Any] = {"status": "failed", "reason_code": "device_lost", "reason": "cable"}
    content: dict[str, Any] = {"model__pte_sha256": "net@delegate=mlx fp32", "runner__runner_sha256": "with mlx"}
    later.session([1, 1], **failed, **content, model__name="net@delegate=mlx")
    write_cells(later, {("net@delegate=mlx", "fp32"): 3.5}, attempt=2)
    later.load()
    assert later.ask("SELECT count(*) FROM cell WHERE model = 'net@delegate=mlx'") == [(1,)]
    assert rows_of(later, "failed_sessions, reason", "delegate = 'mlx' AND device = 'host'") == [(0, None)]
    standings = dict(rows_of(later, "delegate, standing"))
    assert (standings["mlx"], standings["openvino"]) == ("fastest", "slower")
    assert later.ask("SELECT count(*) FROM skipped_model WHERE model = 'net@delegate=mlx'") == [(1,)]


def test_the_question_lists_the_fastest_first_and_why_others_have_no_time(farm: BundleMaker) -> None:
    question = questions()["which-delegate"]
    given = dict.fromkeys(question.parameters) | {"model": "net", "device": "host", "precision": "fp32"}
    with open_read_only(farm.warehouse) as connection:
        rows = connection.execute(question.text, given).fetchall()
        names = [name for name, *_ in connection.description or []]
    shown = [
        tuple(dict(zip(names, row, strict=True))[name] for name in ("model", "delegate", "reason")) for row in rows
    ]
    assert shown[:4] == [("net", each, None) for each in ("openvino", "my.part:make", "xnnpack", "portable")]
    assert shown[4:] == [("net", "coreml", CRASH), ("net", "mlx", NO_PART)]


def test_the_sentences_have_the_figures_of_the_view(farm: BundleMaker) -> None:
    with open_answers(farm.warehouse, None) as answers:
        lines = [choice.line for choice in choose_delegates(answers.rows(DelegateRow))]
    of_net = [line for line in lines if re.match("net .*on host", line)]
    ((time, low, high, speedup),) = rows_of(
        farm, "time_ms, low_ms, high_ms, speedup", "model = 'net@delegate=openvino' AND device = 'host'"
    )
    assert of_net == [
        f"net fp32 on host, one thread: `openvino` is the fastest, {time:.2f} ms (six sessions, 95 % interval "
        f"{low:.2f} to {high:.2f} ms), {speedup:.2f} (2.50 to 2.50) times as fast as xnnpack; `xnnpack` 10.0 ms; "
        "`portable` 100 ms; outputs: SNR to eager 60.0 dB, of `xnnpack` 60.0 dB; `openvino` took 90.0 % of the "
        "operators and 99.0 % of the multiply-accumulates; `openvino` loads in 310 ms, `xnnpack` in "
        f"12.0 ms; at the peak, `openvino` takes 90 MB, `xnnpack` 50 MB; `my.part:make` is inaccurate (2.00 ms, SNR to "
        f"eager 12.0 dB); `coreml` failed: {CRASH}; `mlx` was skipped: {NO_PART}.",
        "net int8_static on host, one thread: `xnnpack` is the only one measured, 3.00 ms (six sessions, 95 % interval "
        "3.00 to 3.00 ms).",
        "net on host, over all precisions and threads: `xnnpack` int8_static (one thread) is the fastest, 3.00 ms (six "
        "sessions, 95 % interval 3.00 to 3.00 ms).",
    ]
    texts = "\n".join(lines)
    assert "the shortest time, 9.95 ms (five sessions, 9.94 to 9.96 ms); not told apart from `xnnpack`, " in texts
    assert (
        "the shortest time, 4.00 ms (four sessions, 4.00 to 4.00 ms); too few sessions to tell it from `xnnpack` "
        in texts
    )
    assert "not interleaved with `xnnpack` 10.00 ms (measured 20 min earlier), so drift of the device may be" in texts
    assert "times as fast as xnnpack; its outputs were not compared" in texts


@pytest.mark.thorough
def test_the_page_of_a_delegate_of_a_model_has_all_of_them(farm: BundleMaker) -> None:
    with open_reader(farm.warehouse) as reader:
        page = Site(reader, "").page(model_page("apart@delegate=portable"))
    assert page
    assert (page.title, plain_text(page.subtitle)) == ("Model apart (portable)", "apart@delegate=portable · 1 series")
    (shown,) = [each for each in page.sections if each.anchor == "delegates"]
    line = plain_text(shown.summary[0])
    assert line.startswith("apart fp32 on host, one thread: `portable` is the fastest, 9.70 ms (five sessions, ")
    (table,) = [block for block in shown.blocks if isinstance(block, Table)]
    assert len(table.rows) == 2


def test_what_was_skipped_is_listed_with_the_threads_and_the_variant_of_the_rest(farm: BundleMaker) -> None:
    with open_answers(farm.warehouse, None) as answers:
        rows = [row for row in answers.rows(DelegateRow) if row.device == "host" and row.compared_model == "net"]
        cells = [Model("Model").cell_in(row, "model") for row in rows if row.delegate == "openvino"]
    # and other tables have the title of its case, linked to its page
    assert [
        (plain_text(part), part.to) for cell in cells for part in split_text(cell.text) if isinstance(part, Link)
    ] == [("`net (OpenVINO)`", model_page("net@delegate=openvino"))]
    shown = section(rows, names_sweep=True)
    assert shown
    named = [plain_text(block.text) for block in shown.blocks if isinstance(block, Paragraph)]
    assert named == ["Measured in `smoke-2026-11-20`."]
    [table] = [block for block in shown.blocks if isinstance(block, Table)]
    assert {"Threads", "Variant"} <= {each.column.title for each in table.condensed()[1]}


def test_compare_pairs_cells_of_two_delegates(farm: BundleMaker) -> None:
    with open_reader(farm.warehouse) as reader:
        compared = compare_arms(reader, "xnnpack", "delegate:openvino", only={"device": "host"})
        of_late = compare_arms(reader, "xnnpack", "openvino", only={"device": "host", "model": "late"})
        of_net = compare_arms(reader, "xnnpack", "openvino", SWEEP, {"device": "host", "model": "net"})
    assert {each.model for each in compared.changes} == {
        "bare -> bare@delegate=openvino", "late -> late@delegate=openvino",
        "near@tg8 -> near@tg8,delegate=openvino", "net -> net@delegate=openvino"
    }  # fmt: skip
    assert load_change(of_net.changes[0]) == "12 ms -> 310 ms"
    # a model is named without its delegate, and what was measured after the other is stated
    assert [each.model for each in of_late.changes] == ["late -> late@delegate=openvino"]
    assert [each.endswith("; 1 of 1 series, by a sweep that was resumed") for each in of_late.remarks] == [True]
    assert ([each.model for each in of_net.changes], of_net.remarks) == (["net -> net@delegate=openvino"], [])


@pytest.mark.parametrize(
    ("a", "b", "later_s"),
    [
        ([0, 3, 4, 7, 8], [1, 2, 5, 6, 9], None),  # ABBA
        ([0, 1, 2, 3], [4, 5, 6, 7], 4.0),
        ([4, 5, 6, 7], [0, 1, 2, 3], -4.0),
        ([0, 2, 4, 6, 8, 10], [1, 3, 5, 30, 31, 32], None),  # half of B was measured beside A
        ([0, 2, 4, 6, 8, 10], [1, 3, 30, 31, 32, 33], 25.5),
        ([0, 2, 4, 6], [1, 3, *range(5, 30)], None),  # A stopped early
        ([], [1.0], None),  # imported, without a start
    ],
)
def test_sessions_are_interleaved_if_half_of_the_smaller_side_shares_its_time(
    a: list[float], b: list[float], later_s: float | None
) -> None:
    assert seconds_later(a, b) == later_s


def test_a_model_is_counted_once_for_all_its_delegates(farm: BundleMaker) -> None:
    assert farm.ask("SELECT models FROM sweep_overview") == [(9,)]


def test_an_answer_without_rows_states_what_to_write() -> None:
    assert "write `delegates: [xnnpack, openvino]` in a sweep file" in questions()["which-delegate"].if_empty
