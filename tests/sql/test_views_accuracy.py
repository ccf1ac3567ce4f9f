"""What inaccurate outputs decide: an inaccurate cell is shown, and never called faster."""

from typing import Any

import pytest

from tests.fixtures.nights import night_of, week_of
from tests.fixtures.warehouse import COMPARED, CONVOLUTION, CONVOLUTION_SME2, BundleMaker

MS = 1_000_000


def outputs(snr_db: float, fp32_db: float = 40.0) -> list[dict[str, Any]]:
    """One output compared with both references; below 10 dB it is inaccurate."""
    common = COMPARED | {"cosine": 0.9, "top1_agreement": 1.0, "min_snr_db": 10.0}
    figures = {"eager": snr_db, "fp32": fp32_db}
    return [common | {"reference": name, "snr_db": db, "is_inaccurate": db < 10} for name, db in figures.items()]


GOOD, BAD = outputs(50.0), outputs(2.5)


SAMPLES = COMPARED | {
    "reference": "samples", "snr_db": 2.0, "min_snr_db": 5.0, "top1_agreement": 0.25, "is_inaccurate": True,
    "samples": {
        "samples": 4, "below": 1, "worst": "b.png", "median_snr_db": 30.0, "score": 0.5, "reference_score": 1.0,
        "min_score": 0.75, "calibrating": 2, "machine": "lab", "sha256": "0" * 64,
    },
}  # fmt: skip
# outputs without and with SME2, and what is shown instead of the speed-up
PAIRS: dict[str, tuple[Any, Any, float | None, str | None]] = {
    "accurate": (GOOD, GOOD, 2.0, None),
    "on": (GOOD, BAD, None, "inaccurate on"),
    "off": (BAD, GOOD, None, "inaccurate off"),
    "neither": (BAD, BAD, None, "inaccurate both"),
    "not compared": (None, None, 2.0, None),
}


def write_sessions(maker: BundleMaker) -> None:
    """Write the sessions of all questions, which have a model each."""
    for model, accuracy in (("good", GOOD), ("bad", GOOD), ("bad", BAD), ("without", None), ("older", [COMPARED])):
        maker.session([MS], model__name=model, accuracy=accuracy)
    for model, (off, on, *_) in PAIRS.items():
        maker.session([(10 * MS, {CONVOLUTION: 8 * MS})], variant="sme2_off", accuracy=off, model__name=model)
        maker.session([(5 * MS, {CONVOLUTION_SME2: 4 * MS})], variant="sme2_on", accuracy=on, model__name=model)
    # faster nights with inaccurate outputs between others
    week_of(maker, 4, sessions=5, accuracy=GOOD, model__name="faster")
    for day in (5, 6):
        night_of(maker, day, 0.5, accuracy=BAD, model__name="faster", model__pte_sha256="broken")
    night_of(maker, 7, sessions=5, accuracy=GOOD, model__name="faster")
    for broken in "ab":
        for name, factor in (("a", 1.0), ("b", 0.8)):
            arm = {"purpose": "comparison", "comparison": 16 * broken, "side": name}
            changes: dict[str, Any] = {"accuracy": BAD if name == broken else GOOD, "model__name": f"compared {broken}"}
            night_of(maker, 1, factor, 5, arm=arm, model__pte_sha256=name, **changes)
    eager, fp32 = outputs(50.0)
    errors = [eager | {"max_abs_error": 0.25}, fp32 | {"max_abs_error": 0.75}]
    for precision in ("fp16", "int8_static"):
        night_of(maker, 1, sessions=5, accuracy=errors, model__precision=precision, model__name="errors")
    # 12.5 % of equal choices against fp32 where 99 % are required, and a device that computes what the host does
    figures = COMPARED | {"is_inaccurate": False}
    rows = [
        figures | {"reference": "host", "snr_db": 120.0, "min_snr_db": 35.0, "top1_agreement": 1.0},
        figures | {"reference": "eager", "snr_db": 30.0, "min_snr_db": 15.0, "top1_agreement": 0.05},
        figures
        | {"reference": "fp32", "snr_db": 5.8, "top1_agreement": 0.125, "min_top1": 0.99, "is_inaccurate": True},
    ]
    maker.session([MS], model__precision="int8_static", accuracy=rows, model__name="top-1")
    # a text whose third token is another than the host's, and whose first is another than that of fp32
    host = COMPARED | {"reference": "host", "first_difference": 2, "margin": 0.25, "is_inaccurate": True}
    text = [host, COMPARED | {"reference": "fp32", "first_difference": 0}]
    maker.session([MS], accuracy=text, model__name="text")
    wrong = {"reference": "eager", "is_inaccurate": True, "nonfinite_mismatches": 3, "cause": "exp of NaN is 0"}
    maker.session([MS], accuracy=[COMPARED | wrong], model__name="fault")
    host = COMPARED | {"reference": "host", "is_inaccurate": False}
    maker.session([MS], accuracy=[host, SAMPLES], model__name="samples")


def of(farm: BundleMaker, view: str, model: str, columns: str) -> list[tuple[Any, ...]]:
    return farm.ask(f"SELECT {columns} FROM {view} WHERE model = '{model}' ORDER BY ALL")


def test_a_cell_is_inaccurate_if_one_output_of_one_session_is(farm: BundleMaker) -> None:
    columns = "accuracy, sessions, inaccurate_sessions, snr_db, min_snr_db, snr_fp32_db"
    for model, row in {
        "bad": ("inaccurate", 2, 1, 2.5, 10.0, 40.0),
        "good": ("accurate", 1, 0, 50.0, 10.0, 40.0),
        "older": ("not judged", 1, 0, None, None, None),
        "without": ("not compared", 1, 0, None, None, None),
    }.items():
        assert of(farm, "cell_accuracy", model, columns) == [row]
        assert of(farm, "session_latency", model, "DISTINCT accuracy") == [row[:1]]


def test_inaccurate_outputs_have_no_speedup_by_sme2(farm: BundleMaker) -> None:
    # then its times are shown, but there is no ratio of them anywhere
    for model, (_, _, speedup, reason) in PAIRS.items():
        columns = "time_on_ms, time_off_ms, speedup, reason"
        assert of(farm, "sme2_speedup", model, columns) == [(5.0, 10.0, speedup, reason)]
        assert of(farm, "operator_speedup", model, "speedup") == [(speedup,)]


def test_a_faster_night_with_inaccurate_outputs_is_no_improvement_and_no_baseline(farm: BundleMaker) -> None:
    rows = of(farm, "verdict", "faster", "day(night), verdict, day(baseline_to), reason")
    reason = "outputs of 8 of 8 sessions are too far from their references"
    assert [row[1] for row in rows[4:]] == ["inaccurate", "inaccurate", "no change"]
    assert rows[4][3] == f"{reason} (SNR 2.5 dB against same precision, limit 10 dB)"
    assert rows[6][2] == 4
    # and no other figure of the nights is an improvement
    assert farm.ask("SELECT * FROM metric_verdict WHERE verdict = 'improvement'") == []


@pytest.mark.parametrize("broken", ["a", "b"])
def test_a_comparison_with_inaccurate_outputs_has_no_answer(farm: BundleMaker, broken: str) -> None:
    asked = f"SELECT answer, ratio, accuracy_{broken} FROM comparison WHERE model_{broken} = 'compared {broken}'"
    assert farm.ask(asked) == [("inaccurate", pytest.approx(0.8), "inaccurate")]


def test_the_output_error_is_against_the_reference_of_older_nights(farm: BundleMaker) -> None:
    errors = "SELECT precision, value FROM metric_verdict WHERE metric = 'output error' AND model = 'errors' ORDER BY 1"
    assert farm.ask(errors) == [("fp16", 0.25), ("int8_static", 0.75)]


def test_what_makes_a_cell_inaccurate_is_in_the_views_and_in_its_figures(farm: BundleMaker) -> None:
    columns = "accuracy, snr_host_db, min_snr_host_db, judged_top1, min_top1, first_difference"
    assert of(farm, "cell_accuracy", "top-1", columns) == [("inaccurate", 120, 35, 0.125, 0.99, None)]
    limits = of(farm, "session_accuracy", "top-1", "reference, min_top1")
    assert limits == [("eager", None), ("fp32", 0.99), ("host", None)]
    assert of(farm, "cell_accuracy", "text", "accuracy, first_difference") == [("inaccurate", 2)]
    tokens = of(farm, "session_accuracy", "text", "reference, first_difference, margin")
    assert tokens == [("fp32", 0, None), ("host", 2, 0.25)]
    figures = dict(farm.ask("SELECT model, inaccuracy FROM _inaccurate_cell JOIN cell USING (cell)"))
    for model, expected in {
        "top-1": {"judged_top1": 0.125, "min_top1": 0.99, "sessions": 1, "inaccurate_sessions": 1}
        | {"snr_host_db": 120, "min_snr_host_db": 35},
        "text": {"first_difference": 2},
        "fault": {"nonfinite_mismatches": 3, "cause": "exp of NaN is 0"},
        "samples": {"samples": 4, "samples_below": 1, "worst_sample": "b.png", "score": 0.5, "min_score": 0.75},
    }.items():
        assert figures[model] == figures[model] | expected
    # and of samples
    columns = "accuracy, samples, samples_below, snr_samples_db, min_snr_samples_db, worst_sample, score, min_score"
    assert of(farm, "cell_accuracy", "samples", columns) == [("inaccurate", 4, 1, 2.0, 5.0, "b.png", 0.5, 0.75)]
    assert of(farm, "session_accuracy", "samples", "reference, median_snr_db, samples_machine")[-1][1:] == (30.0, "lab")
