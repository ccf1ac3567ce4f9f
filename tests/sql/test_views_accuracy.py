"""What inaccurate outputs decide: an inaccurate cell is shown, and never called faster."""

from typing import Any

import pytest

from tasks.judge.night import describe_inaccuracy
from tests.fixtures.nights import night_of, week_of
from tests.fixtures.warehouse import CONVOLUTION, CONVOLUTION_SME2, BundleMaker

MS = 1_000_000
ID = "c0ffee00c0ffee00"


def outputs(snr_db: float, fp32_db: float = 40.0) -> list[dict[str, Any]]:
    """One output compared with both references; below 10 dB it is inaccurate."""
    return [
        {
            "output": 0,
            "reference": reference,
            "max_abs_error": 0.5,
            "max_rel_error": 0.5,
            "nonfinite_mismatches": 0,
            "snr_db": figure,
            "cosine": 0.9,
            "top1_agreement": 1.0,
            "min_snr_db": 10.0,
            "is_inaccurate": figure < 10,
        }
        for reference, figure in (("eager", snr_db), ("fp32", fp32_db))
    ]


GOOD, BAD = outputs(50.0), outputs(2.5)


def test_a_cell_is_inaccurate_if_one_output_of_one_session_is(maker: BundleMaker) -> None:
    maker.session([MS], model__name="good", accuracy=GOOD)
    maker.session([MS], model__name="bad", accuracy=GOOD)
    maker.session([MS], model__name="bad", accuracy=BAD)
    maker.session([MS], model__name="without")
    maker.session(
        [MS],
        model__name="older",
        accuracy=[{"output": 0, "max_abs_error": 1.0, "max_rel_error": None, "nonfinite_mismatches": 0}],
    )
    maker.load()
    assert maker.ask("""
        SELECT model, accuracy, sessions, inaccurate_sessions, snr_db, min_snr_db, snr_fp32_db
        FROM cell_accuracy ORDER BY 1
    """) == [
        ("bad", "inaccurate", 2, 1, 2.5, 10.0, 40.0),
        ("good", "accurate", 1, 0, 50.0, 10.0, 40.0),
        ("older", "not judged", 1, 0, None, None, None),
        ("without", "not compared", 1, 0, None, None, None),
    ]
    assert maker.ask("SELECT DISTINCT model, accuracy FROM session_latency ORDER BY 1") == [
        ("bad", "inaccurate"), ("good", "accurate"), ("older", "not judged"), ("without", "not compared"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("off", "on", "speedup", "reason"),
    [
        (GOOD, GOOD, 2.0, None),
        (GOOD, BAD, None, "inaccurate outputs with SME2"),
        (BAD, GOOD, None, "inaccurate outputs without SME2"),
        (BAD, BAD, None, "inaccurate outputs with and without SME2"),
        (None, None, 2.0, None),
    ],
    ids=["accurate", "on", "off", "both", "not compared"],
)
def test_inaccurate_outputs_have_no_speedup_by_sme2(
    maker: BundleMaker, off: Any, on: Any, speedup: float | None, reason: str | None
) -> None:
    maker.session([(10 * MS, {CONVOLUTION: 8 * MS})], variant="sme2_off", accuracy=off)
    maker.session([(5 * MS, {CONVOLUTION_SME2: 4 * MS})], variant="sme2_on", accuracy=on)
    maker.load()
    # then its times are shown, but there is no ratio of them anywhere
    asked = "SELECT time_on_ms, time_off_ms, speedup, reason FROM sme2_speedup"
    assert maker.ask(asked) == [(5.0, 10.0, speedup, reason)]
    assert maker.ask("SELECT speedup FROM operator_speedup") == [(speedup,)]


def test_a_faster_night_with_inaccurate_outputs_is_no_improvement_and_no_baseline(maker: BundleMaker) -> None:
    week_of(maker, accuracy=GOOD)
    for day in (8, 9, 10):
        night_of(maker, day, 0.5, accuracy=BAD, model__pte_sha256="broken")
    night_of(maker, 11, accuracy=GOOD)
    maker.load()
    rows = maker.ask("SELECT verdict, reason FROM verdict WHERE night BETWEEN '2026-11-08' AND '2026-11-10'")
    reason = "outputs of 8 of 8 sessions are too far from their references"
    assert rows == [("inaccurate", f"{reason} (SNR 2.5 dB against same precision, limit 10 dB)")] * 3
    assert maker.ask("SELECT verdict, baseline_to::VARCHAR FROM verdict WHERE night = '2026-11-11'") == [
        ("no change", "2026-11-07")
    ]
    # and no other figure of the night is an improvement
    assert maker.ask("SELECT DISTINCT metric FROM metric_verdict WHERE verdict = 'improvement'") == []


@pytest.mark.parametrize("broken", ["a", "b"])
def test_a_comparison_with_inaccurate_outputs_has_no_answer(maker: BundleMaker, broken: str) -> None:
    for name, factor in (("a", 1.0), ("b", 0.8)):
        arm = {"purpose": "comparison", "comparison": ID, "side": name}
        outputs_of_side = BAD if name == broken else GOOD
        night_of(maker, 1, factor, arm=arm, model__pte_sha256=name, accuracy=outputs_of_side)
    maker.load()
    [(answer, ratio, accuracy_a, accuracy_b)] = maker.ask(
        "SELECT answer, ratio, accuracy_a, accuracy_b FROM comparison"
    )
    assert (answer, ratio) == ("inaccurate", pytest.approx(0.8))
    assert {"a": accuracy_a, "b": accuracy_b}[broken] == "inaccurate"


@pytest.mark.parametrize(("precision", "value"), [("fp16", 0.25), ("int8_static", 0.75)])
def test_the_output_error_is_against_the_reference_of_older_nights(
    maker: BundleMaker, precision: str, value: float
) -> None:
    eager, fp32 = outputs(50.0)
    both = [eager | {"max_abs_error": 0.25}, fp32 | {"max_abs_error": 0.75}]
    night_of(maker, 1, accuracy=both, model__precision=precision)
    maker.load()
    assert maker.ask("SELECT value FROM metric_verdict WHERE metric = 'output error'") == [(value,)]


def test_top1_of_the_sweep_file_makes_a_cell_inaccurate_with_the_reason(maker: BundleMaker) -> None:
    # given 12.5 % of equal choices against fp32 where 99 % are required, and a device that computes what the host does
    figures = {
        "output": 0,
        "max_abs_error": 0.1,
        "max_rel_error": 0.1,
        "nonfinite_mismatches": 0,
        "is_inaccurate": False,
    }
    rows = [
        {**figures, "reference": "host", "snr_db": 120.0, "min_snr_db": 35.0, "top1_agreement": 1.0},
        {**figures, "reference": "eager", "snr_db": 30.0, "min_snr_db": 15.0, "top1_agreement": 0.05},
        {**figures, "reference": "fp32", "snr_db": 5.8, "min_snr_db": 5.0, "top1_agreement": 0.125},
    ]
    rows[2] |= {"min_top1": 0.99, "is_inaccurate": True}
    maker.session([10**6], model__precision="int8_static", accuracy=rows)
    maker.load()
    assert maker.ask("SELECT accuracy, snr_host_db, min_snr_host_db, judged_top1, min_top1 FROM cell_accuracy") == [
        ("inaccurate", 120, 35, 0.125, 0.99)
    ]
    assert maker.ask("SELECT reference, min_top1 FROM session_accuracy ORDER BY reference") == [
        ("eager", None), ("fp32", 0.99), ("host", None),
    ]  # fmt: skip
    [(why,)] = maker.ask("SELECT inaccuracy FROM _inaccurate_cell")
    text = "outputs of 1 of 1 sessions are too far from their references (top-1 12.5 %, limit 99.0 %)"
    assert describe_inaccuracy(why) == text


def test_the_first_token_that_makes_a_cell_inaccurate_is_in_the_view_and_in_its_reason(maker: BundleMaker) -> None:
    # given a text whose third token is another than the host's, and whose first is another than that of fp32
    equal = {"output": 0, "max_abs_error": 1.0, "max_rel_error": None, "nonfinite_mismatches": 0}
    host = {**equal, "reference": "host", "first_difference": 2, "margin": 0.25, "is_inaccurate": True}
    fp32 = {**equal, "reference": "fp32", "first_difference": 0}
    maker.session([MS], accuracy=[host, fp32])
    maker.load()
    assert maker.ask("SELECT accuracy, first_difference FROM cell_accuracy") == [("inaccurate", 2)]
    assert maker.ask("SELECT reference, first_difference, margin FROM session_accuracy ORDER BY 1") == [
        ("fp32", 0, None),
        ("host", 2, 0.25),
    ]
    [(why,)] = maker.ask("SELECT inaccuracy FROM _inaccurate_cell")
    assert "(token 2 differs)" in describe_inaccuracy(why)
