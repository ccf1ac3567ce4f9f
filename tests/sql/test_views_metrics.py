"""Verdicts on other figures than latency, from bundles: one row per metric and night of a series on a device."""

from typing import Any

import pytest

from tests.fixtures.nights import night_of, night_of_operators, week_of
from tests.fixtures.warehouse import LINEAR, MEAN, BundleMaker

MB = 1_000_000
LINEAR_SME2 = "Fully Connected (NC, PF32) GEMM #1"


def stats(load_ms: float = 5, peak_mb: float = 48.4) -> dict[str, Any]:
    return {"load_ns": round(load_ms * MB), "peak_memory_bytes": round(peak_mb * MB), "threads_used": 1}


def error_of(error: float) -> list[dict[str, Any]]:
    return [{"output": 0, "max_abs_error": error, "max_rel_error": None, "nonfinite_mismatches": 0}]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            {"stats": stats(peak_mb=48.4)},
            {"stats": stats(peak_mb=96.8), "model__pte_sha256": "p2"},
            ("peak memory", "regression", 48.4 * MB, 96.8 * MB, 2.0, "peak memory 48.4 MB -> 96.8 MB (+100.0 %)"),
        ),
        (
            {"model__pte_bytes": 4 * MB},
            {"model__pte_bytes": 5 * MB, "model__pte_sha256": "p2"},
            (".pte size", "regression", 4 * MB, 5 * MB, 1.25, ".pte size 4 MB -> 5 MB (+25.0 %)"),
        ),
        (
            {"accuracy": error_of(0.0)},
            {"accuracy": error_of(0.25), "runner__runner_sha256": "r2"},
            ("output error", "regression", 0.0, 0.25, None, "output error 0 -> 2.5e-01"),
        ),
        (
            {"stats": stats(load_ms=5)},
            {"stats": stats(load_ms=15), "model__pte_sha256": "p2"},
            ("load time", "suspected", 5 * MB, 15 * MB, 3.0, "load time 5 ms -> 15 ms (+200.0 %)"),
        ),
        (
            {"warmup": 5},
            {"warmup": 15, "model__pte_sha256": "p2"},
            ("first execution", "suspected", 5 * MB, 15 * MB, 3.0, "first execution 5 ms -> 15 ms (+200.0 %)"),
        ),
    ],
    ids=lambda case: case[0] if isinstance(case, tuple) else "",
)
def test_a_figure_that_got_worse_is_listed_beside_an_unchanged_latency(
    maker: BundleMaker, before: dict[str, Any], after: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    # given a week of nights, and a night on which one figure is worse
    week_of(maker, **before)
    night_of(maker, 8, **after)
    maker.load()
    # then metric_verdict has both figures, and the latency has not changed
    changed = maker.ask(
        "SELECT metric, verdict, baseline_value, value, round(ratio, 6), split_part(reason, ' against ', 1)"
        " FROM metric_verdict WHERE night = '2026-11-08' AND verdict NOT IN ('no change', 'insufficient data')"
    )
    assert [(row[0], row[1], pytest.approx(row[2]), *row[3:]) for row in changed] == [expected]
    assert maker.ask("SELECT verdict FROM verdict WHERE is_newest") == [("no change",)]


def test_an_operator_that_became_portable_raises_the_portable_share(maker: BundleMaker) -> None:
    for day in range(1, 8):
        night_of_operators(maker, day, {LINEAR: 1_000_000})
    night_of_operators(maker, 8, {LINEAR: 700_000, MEAN: 300_000}, model__pte_sha256="p2")
    maker.load()
    assert maker.ask(
        "SELECT verdict, baseline_value, round(value, 2), ratio, since::VARCHAR FROM metric_verdict"
        " WHERE metric = 'portable share' AND is_newest"
    ) == [("regression", 0.0, 0.3, None, "2026-11-08")]


def test_less_sme2_coverage_is_a_regression_and_more_an_improvement(maker: BundleMaker) -> None:
    # given a week on SME2, a week of a runner that uses it for a part, and the first runner again
    split = {LINEAR_SME2: 600_000, LINEAR: 400_000}
    for day in range(1, 8):
        night_of_operators(maker, day, {LINEAR_SME2: 1_000_000}, variant="sme2_on")
    for day in range(8, 16):
        night_of_operators(maker, day, split, variant="sme2_on", runner__runner_sha256="r2")
    night_of_operators(maker, 16, {LINEAR_SME2: 1_000_000}, variant="sme2_on")
    maker.load()
    rows = maker.ask(
        "SELECT day(night), verdict, round(baseline_value, 2), round(value, 2) FROM metric_verdict"
        " WHERE metric = 'SME coverage' AND night IN ('2026-11-07', '2026-11-08', '2026-11-16') ORDER BY night"
    )
    assert rows == [(7, "no change", 1.0, 1.0), (8, "regression", 1.0, 0.6), (16, "improvement", 0.6, 1.0)]
    # and without SME2 there is nothing to cover
    night_of_operators(maker, 1, {LINEAR: 1_000_000}, variant="sme2_off")
    maker.load()
    assert maker.ask("SELECT DISTINCT variant FROM metric_verdict WHERE metric = 'SME coverage'") == [("sme2_on",)]


def test_figures_that_no_session_reports_have_no_rows(maker: BundleMaker) -> None:
    # given a runner that reports neither load time nor memory, and no outputs to compare
    week_of(maker, 2)
    maker.load()
    assert maker.ask("SELECT DISTINCT metric FROM metric_verdict ORDER BY metric") == [
        (".pte size",),
        ("first execution",),
        ("latency",),
        ("portable share",),
    ]


def test_a_night_without_a_figure_is_left_out(maker: BundleMaker) -> None:
    for day in range(1, 6):
        night_of(maker, day, stats=stats() if day != 3 else None)
    maker.load()
    assert maker.ask("SELECT day(night), verdict FROM metric_verdict WHERE metric = 'peak memory' ORDER BY night") == [
        (1, "insufficient data"),
        (2, "no change"),
        (4, "no change"),
        (5, "no change"),
    ]


def test_views_about_latency_have_one_row_per_night_of_a_series(maker: BundleMaker) -> None:
    # given nights with all figures
    week_of(maker, stats=stats(), accuracy=error_of(1e-6))
    maker.load()
    # then verdict, night_over_night, noise_floor and series_overview have rows for latency alone
    for view, rows in (("verdict", 7), ("night_over_night", 7), ("noise_floor", 6), ("series_overview", 1)):
        assert maker.ask(f"SELECT count(*) FROM {view}") == [(rows,)], view
    assert maker.ask("SELECT count(*), count(DISTINCT metric) FROM metric_verdict") == [(49, 7)]
    # and the rows of the metric latency are those of verdict
    same = "night, device, series_id, verdict, ratio, low, high, z, noise_floor, reason, cell, is_newest"
    assert (
        maker.ask(f"SELECT {same} FROM verdict EXCEPT SELECT {same} FROM metric_verdict WHERE metric = 'latency'") == []
    )
