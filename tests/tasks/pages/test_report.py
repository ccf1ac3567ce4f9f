"""The report: given sessions, what it states about them."""

import contextlib
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from sql.warehouse import writing
from tasks.pages.report import keep_dropped
from tasks.results.reader import ReportError
from tests.fixtures.report import MS, Report, markdown_tables, qnn_etdump, render, report_of
from tests.fixtures.warehouse import CONVOLUTION, LINEAR, MEAN, TRANSPOSE, BundleMaker, etdump_of

SWEEP = "smoke-2026-11-20"


class Loaded(NamedTuple):
    """The warehouse of one session, and where its report goes."""

    warehouse: Path
    reports: Path


@pytest.fixture
def loaded(maker: BundleMaker, tmp_path: Path) -> Loaded:
    maker.session([MS])
    maker.load()
    return Loaded(maker.warehouse, tmp_path / "reports")


def test_the_same_share_is_the_same_number_everywhere_and_their_sum_is_100_percent(maker: BundleMaker) -> None:
    # given shares that do not add up to 100.0 once they are rounded
    maker.session([(7 * MS, {CONVOLUTION: 2 * MS, LINEAR: 2 * MS, MEAN: 2 * MS})])
    report = report_of(maker)
    # then each is what it is, and the sum is that of the exact shares, in the table and in the drawing
    time = report["time"]
    shares = [time.column(name)[0] for name in ("Convolution", "GEMM", "Data", "Elementwise", "Other", "Unattributed")]
    assert shares == ["28.6", "28.6", "0.0", "0.0", "28.6", "14.3"]
    assert time.column("Sum") == ["100.0"]
    widths = re.findall(r'<rect class="part [\w-]+" x="[\d.]+" y="3" width="([\d.]+)"', report.html)
    assert sum(map(float, widths)) == pytest.approx(610, abs=0.05)
    assert report["operators"].column("Share") == ["28.6", "28.6", "28.6"]
    assert report["portable"].column("Weight")[0] == "28.6"


def test_contents_that_share_a_name_are_listed_apart_with_what_differs(maker: BundleMaker) -> None:
    # given a model that was changed between two starts of a sweep
    exact = {"output": 0, "max_abs_error": 1e-6, "max_rel_error": 1e-3, "nonfinite_mismatches": 0}
    for _ in range(2):
        maker.session([(2 * MS, {CONVOLUTION: MS})], accuracy=[exact])
        maker.session([(90 * MS, {CONVOLUTION: 80 * MS})], accuracy=[exact], model__pte_sha256="changed0" * 8)
    report = report_of(maker)
    # then every section has two rows, each with its own figures, and nothing in between
    latency = report["latency"]
    assert latency.column("Time") == ["90.000", "2.000"]
    assert latency.column("Sessions") == ["2", "2"]
    assert latency.column("What differs") == ["pte changed0", "pte p1"]
    assert report["time"].column("Convolution") == ["88.9", "50.0"]
    assert report["time"].column("Sum") == ["100.0", "100.0"]
    assert report["accuracy"].column("What differs") == ["pte changed0", "pte p1"]


def test_what_is_below_the_clock_of_the_delegate_is_neither_printed_nor_ranked(maker: BundleMaker) -> None:
    # given a model of many operators that last less than a microsecond
    short = {f"Add (ND) #{number}": 0 for number in range(1, 8)}
    maker.session([(9_000, {CONVOLUTION: 2_000, **short})])
    report = report_of(maker)
    # then the report does not say where its time goes
    assert report["time"].column("Elementwise") == ["< 77.8"]
    assert report["time"].column("Unattributed") == ["< 77.8"]
    assert report.contains("Where the time of toy goes is unknown")
    assert "Largest share" not in report.html
    assert report["operators"].column("Operator") == ["Convolution (NHWC, F32) IGEMM"]
    assert report.contains("One more operator takes less than 1", "operators")


def test_operators_over_5_percent_are_highlighted(maker: BundleMaker) -> None:
    maker.session([(100 * MS, {CONVOLUTION: 90 * MS, MEAN: 6 * MS, TRANSPOSE: 4 * MS})])
    report = report_of(maker)
    operators = report["operators"]
    assert operators.column("Operator") == ["Convolution (NHWC, F32) IGEMM", "mean", "Transpose (ND, X32)"]
    assert operators.column("Kind") == ["delegated", "portable", "delegated"]
    assert operators.column("Share") == ["90.0", "6.0", "4.0"]
    table = next(table for table in markdown_tables(report.markdown) if table[0][0] == "Operator")
    assert table[1] == ["Convolution (NHWC, F32) IGEMM", "delegated", "Convolution", "1", "90.000", "90.0"]
    assert "**90.0**" in report.markdown
    assert "**4.0**" not in report.markdown


def test_a_delegate_without_usable_times_is_explained_beside_its_share(maker: BundleMaker) -> None:
    # given cycles of QNN in a call of 8 of 10 ms
    maker.session([10 * MS], files={"model.etdump": qnn_etdump()})
    report = report_of(maker)
    assert report.contains("QNN delegate: shown as the total of its calls; QNN reports cycles", "time")
    assert report["operators"].column("Operator") == ["QNN delegate"]
    assert report["operators"].column("Share") == ["80.0"]


def test_an_operator_without_a_category_is_named(maker: BundleMaker) -> None:
    maker.session([(10 * MS, {"Frobnicate (NC) #1": 5 * MS})])
    assert report_of(maker).contains("Counted as Other because they have no category: Frobnicate", "time")


def test_portable_operators_have_their_weight_and_the_exporters_reason(maker: BundleMaker) -> None:
    maker.session(
        [(100 * MS, {CONVOLUTION: 60 * MS, MEAN: 20 * MS})],
        model__portable=[
            {"operator": "aten.mean.dim", "count": 2, "reason": "keepdim is off"},
            {"operator": "aten.view_copy.default", "count": 3, "reason": None},
        ],
    )
    portable = report_of(maker)["portable"]
    assert portable.column("Weight") == ["20.0"]
    heavy, light = portable.tables[1:]
    unknown = "Keepdim is off. No rewrite is known: replace the operator in the model, or accept its time."
    assert heavy[1:] == [["toy", "fp32", "aten.mean.dim", "2", "20.0", "host", "keepdim is off", unknown]]
    assert light[1][2:5] == ["aten.view_copy.default", "3", "–"]  # noqa: RUF001
    assert light[1][6] == "the partitioner gave no reason"


@pytest.mark.parametrize(
    ("mean_ms", "sentence"),
    [
        ((0, 0), "No portable operator runs in toy: 0 % of the time."),
        ((3,), "Portable operators take 3.0 % of the time of toy."),
        ((0, 3), "Portable operators take at most 3.0 % of the time of toy."),
    ],
)
def test_light_portable_operators_have_their_largest_weight_in_the_summary(
    maker: BundleMaker, mean_ms: tuple[int, ...], sentence: str
) -> None:
    for number, ms in enumerate(mean_ms):
        operators = {CONVOLUTION: 60 * MS, **({MEAN: ms * MS} if ms else {})}
        maker.session([(100 * MS, operators)], threads=number + 1)
    assert report_of(maker).contains(sentence)


def test_accuracy_is_the_largest_error_of_all_sessions(maker: BundleMaker) -> None:
    for number, error in enumerate((1e-6, 3e-5)):
        output = {"output": 0, "max_abs_error": error, "max_rel_error": None, "nonfinite_mismatches": number}
        maker.session([MS], accuracy=[output], repetition=number)
    report = report_of(maker)
    accuracy = report["accuracy"]
    assert accuracy.column("Max abs") == ["3.0e-05"]
    assert accuracy.column("Max rel") == ["–"]  # noqa: RUF001
    assert accuracy.column("Not finite") == ["1"]
    assert report.contains("Largest absolute output error against eager PyTorch: 3.0e-05 (toy fp32 on host)")


def test_inaccurate_outputs_are_marked_wherever_their_times_are_shown(maker: BundleMaker) -> None:
    figures = {"max_abs_error": 0.5, "max_rel_error": 2.0, "nonfinite_mismatches": 0, "cosine": 0.5}
    limited = {**figures, "output": 0, "least_snr_db": 10.0}
    good = [{**limited, "reference": "eager", "snr_db": 40.0, "is_inaccurate": False}]
    bad = [*good, {**limited, "reference": "fp32", "snr_db": -1.5, "is_inaccurate": True}]
    maker.session([10 * MS], variant="sme2_off", accuracy=good)
    maker.session([5 * MS], variant="sme2_on", accuracy=bad)
    maker.session([5 * MS], model__name="given", model__precision="as_is")
    report = report_of(maker)
    accuracy = report["accuracy"]
    assert accuracy.column("Compared with") == ["same precision", "same precision", "fp32"]
    assert accuracy.column("SNR") == ["40.0", "40.0", "-1.5"]
    assert accuracy.column("Result") == ["accurate", "accurate", "inaccurate"]
    assert report.contains("Inaccurate outputs: toy fp32 on host with SME2 on")
    assert report.contains("not compared", "accuracy")
    assert report.contains("inaccurate outputs with SME2", "sme2")
    assert not report.contains("times as fast")


def test_the_head_counts_how_sessions_ended(maker: BundleMaker) -> None:
    maker.session([MS], repetition=0)
    maker.session(status="failed", reason_code="runner_crashed", reason="it fell", repetition=1)
    maker.session(status="invalid", reason_code="first_session", reason="discarded", repetition=-1)
    report = report_of(maker)
    assert report.contains(
        "Three sessions of one model ran on one device: 1 succeeded, 1 failed and 1 discarded automatically."
    )
    assert report.contains("No result for one session: host (runner_crashed).")


def test_the_newest_sweep_is_taken_without_an_id(maker: BundleMaker) -> None:
    for night in ("2026-11-21", "2026-11-20"):
        maker.session([MS], sweep__sweep_id=f"smoke-{night}", sweep__night=night)
    report = report_of(maker)
    assert report.path == maker.bundles.parent / "reports" / "smoke-2026-11-21" / "report.html"
    assert report_of(maker, SWEEP).path.parent.name == SWEEP


def test_a_loose_etdump_has_a_report_too(maker: BundleMaker, tmp_path: Path) -> None:
    (tmp_path / "mine.etdump").write_bytes(
        etdump_of([(9, {}), (5 * MS, {CONVOLUTION: MS}), (7 * MS, {CONVOLUTION: MS})])
    )
    maker.load(tmp_path / "mine.etdump")
    report = Report(maker.warehouse, tmp_path / "reports")
    assert report["latency"].column("Time") == ["5.000"]
    assert report["latency"].column("SME2") == ["–"]  # noqa: RUF001
    assert report.contains("night unknown")


def test_what_has_no_report_is_refused_in_one_sentence(loaded: Loaded, tmp_path: Path) -> None:
    # given a sweep that nobody measured
    with pytest.raises(ReportError, match=f"unknown sweep `other`; available: {SWEEP}"):
        render(loaded.warehouse, loaded.reports, "other")
    assert not loaded.reports.exists()
    # an empty warehouse
    empty = BundleMaker(tmp_path / "empty").warehouse
    with pytest.raises(ReportError, match="no sweep is loaded yet; run `etfarm sweep` first"):
        render(empty, loaded.reports)
    # and views of another version
    with writing(loaded.warehouse) as connection:
        connection.execute("DROP VIEW session_accuracy")
    with pytest.raises(ReportError, match="its views do not match this version of etfarm"):
        render(loaded.warehouse, loaded.reports)


def test_a_report_that_cannot_be_written_names_the_file(loaded: Loaded) -> None:
    loaded.reports.write_text("in the way")
    with pytest.raises(ReportError, match=f"{SWEEP}/report.md: cannot write the report: "):
        render(loaded.warehouse, loaded.reports)


def test_the_number_of_dropped_sessions_is_read_or_its_file_is_named(loaded: Loaded) -> None:
    folder = loaded.reports / SWEEP
    keep_dropped(folder, "8 dropped (`--finish-by 06:00`)")
    html = render(loaded.warehouse, loaded.reports).read_text(encoding="utf-8")
    assert "Sessions: 8 dropped (<code>--finish-by 06:00</code>); start the sweep again" in html
    # given one that is not text, then one that is not a file
    (folder / "dropped.txt").write_bytes(b"\xff")
    with pytest.raises(ReportError, match=r"dropped\.txt: cannot read the number of dropped sessions: it is not UTF-8"):
        render(loaded.warehouse, loaded.reports)
    (folder / "dropped.txt").unlink()
    (folder / "dropped.txt").mkdir()
    with pytest.raises(ReportError, match=r"dropped\.txt: cannot read the number of dropped sessions: Is a directory"):
        render(loaded.warehouse, loaded.reports)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as stream, contextlib.suppress(OSError):
        while True:
            stream.write(bytes(4096))


def test_a_full_disk_leaves_the_earlier_report(loaded: Loaded, full_disk: Path) -> None:
    reports = full_disk / "reports"
    html = render(loaded.warehouse, reports)
    before = html.read_bytes()
    fill(full_disk / "filler")
    with pytest.raises(ReportError, match="No space left"):
        render(loaded.warehouse, reports)
    assert html.read_bytes() == before
    assert sorted(path.name for path in html.parent.iterdir()) == ["report.html", "report.md"]


def test_every_figure_can_be_traced_to_its_sessions(maker: BundleMaker) -> None:
    before = {"taken_at": "2026-11-20T01:00:00+00:00", "temperature_c": 31.5, "battery_percent": 80, "load_1m": 0.1}
    maker.session(
        [MS], session_id="c0ffee" + "0" * 10, conditions={"before": before, "after": {**before, "temperature_c": 36}}
    )
    report = report_of(maker)
    devices, conditions, runners, models, sessions = report["provenance"].tables
    assert devices[1][:3] == ["host", "local", "board"]
    assert [row[2] for row in conditions[1:]] == ["31.5", "36.0"]
    assert runners[1][:3] == ["r1", "source1", "linux-aarch64"]
    assert models[1][:3] == ["toy", "fp32", "p1"]
    assert sessions[1][0] == "c0ffee" + "0" * 10
    assert sessions[1][10] == "31.5 → 36.0"
    assert report.contains(f"bundles/{SWEEP}/<session>", "provenance")


def test_long_waits_for_the_limits_are_a_line_for_each_device(maker: BundleMaker) -> None:
    # given a device that waited for seconds
    die = {"limit": "max_die_c", "bound": 50, "value": 49, "worst": 71.5, "waited_s": 150}
    memory = {"limit": "min_free_memory_mb", "bound": 500, "value": 800, "worst": 300, "waited_s": 8}
    maker.session([MS], device__name="patient", gates=[memory])
    assert not report_of(maker).contains("Waits for the limits", "provenance")
    # when another one waited for minutes
    maker.session([MS], gates=[die, memory])
    maker.session([MS], gates=[die])
    # then only that one is named
    report = report_of(maker)
    sentence = (
        "host waited 5 min: max_die_c 5 min before two sessions (limit 50, up to 71.5), "
        "min_free_memory_mb 8 s before one session (limit 500, down to 300)."
    )
    assert report.contains(sentence, "provenance")
    assert not report.contains("patient waited", "provenance")


@pytest.mark.fault
def test_bundles_that_could_not_be_loaded_are_named(loaded: Loaded) -> None:
    # given a sweep with one sound session, and two refused bundles
    reasons = ["a/model.etdump: the file is missing; <b>restore</b> it", "b: damaged"]
    # when its report is written
    html = render(loaded.warehouse, loaded.reports, not_loaded=reasons)
    # then both are named, as text, and nothing states that all is well
    page, markdown = html.read_text(encoding="utf-8"), html.with_suffix(".md").read_text(encoding="utf-8")
    for text in (page, markdown):
        assert "Two bundles could not be loaded and are in no figure" in text
        assert "a/model.etdump: the file is missing" in text
        assert "Every planned session has a result" not in text
    assert "<b>restore" not in page
