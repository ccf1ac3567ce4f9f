"""Verdicts on other figures than latency, from bundles: one row per metric and night of a series on a device."""

from typing import Any

import pytest

from tests.fixtures.nights import night_of, night_of_operators, week_of
from tests.fixtures.warehouse import COMPARED, LINEAR, MEAN, BundleMaker

MB = 1_000_000
LINEAR_SME2 = "Fully Connected (NC, PF32) GEMM #1"


def stats(load_ms: float = 5, peak_mb: float = 48.4) -> dict[str, Any]:
    return {"load_ns": round(load_ms * MB), "peak_memory_bytes": round(peak_mb * MB), "threads_used": 1}


def error_of(error: float) -> list[dict[str, Any]]:
    return [COMPARED | {"max_abs_error": error}]


def plan(size_bytes: int) -> dict[str, Any]:
    return {"arenas_bytes": [size_bytes], "instructions": 2, "live_bytes": size_bytes, "live_at": 0}


# A figure before and after, and its row: it got worse beside an unchanged latency.
WORSE: list[tuple[dict[str, Any], dict[str, Any], tuple[Any, ...]]] = [
    ({"stats": stats(peak_mb=48.4)}, {"stats": stats(peak_mb=96.8), "model__pte_sha256": "p2"},
        ("peak memory", "regression", 48.4 * MB, 96.8 * MB, 2.0, "peak memory 48.4 MB -> 96.8 MB (+100.0 %)")),
    ({"model__pte_bytes": 4 * MB}, {"model__pte_bytes": 5 * MB, "model__pte_sha256": "p2"},
        (".pte size", "regression", 4 * MB, 5 * MB, 1.25, ".pte size 4 MB -> 5 MB (+25.0 %)")),
    ({"model__memory": plan(4 * MB)}, {"model__memory": plan(8 * MB), "model__pte_sha256": "p2"},
        ("planned memory", "regression", 4 * MB, 8 * MB, 2.0, "planned memory 4 MB -> 8 MB (+100.0 %)")),
    ({"accuracy": error_of(0.0)}, {"accuracy": error_of(0.25), "runner__runner_sha256": "r2"},
        ("output error", "regression", 0.0, 0.25, None, "output error 0 -> 2.5e-01")),
    ({"stats": stats(load_ms=5)}, {"stats": stats(load_ms=15), "model__pte_sha256": "p2"},
        ("load time", "suspected", 5 * MB, 15 * MB, 3.0, "load time 5 ms -> 15 ms (+200 %)")),
    ({"warmup": 5}, {"warmup": 15, "model__pte_sha256": "p2"},
        ("first execution", "suspected", 5 * MB, 15 * MB, 3.0, "first execution 5 ms -> 15 ms (+200 %)")),
]  # fmt: skip


def write_sessions(maker: BundleMaker) -> None:
    """Write the nights of all questions, which have a model each."""
    for before, after, (metric, *_) in WORSE:
        week_of(maker, 5, model__name=metric, **before)
        night_of(maker, 6, model__name=metric, **after)
    # an operator that became portable
    for day in range(1, 6):
        night_of_operators(maker, day, {LINEAR: 1_000_000}, model__name="portable")
    night_of_operators(maker, 6, {LINEAR: 700_000, MEAN: 300_000}, model__name="portable", model__pte_sha256="p2")
    # nights on SME2, nights of a runner that uses it for a part, the first runner again, and a night without SME2
    for day in range(1, 14):
        split = {LINEAR_SME2: 600_000, LINEAR: 400_000} if 4 < day < 13 else {LINEAR_SME2: 1_000_000}
        runner = {"runner__runner_sha256": "r2" if 4 < day < 13 else "r1"}
        night_of_operators(maker, day, split, variant="sme2_on", model__name="sme", **runner)
    night_of_operators(maker, 1, {LINEAR: 1_000_000}, model__name="sme")
    for day in range(1, 6):
        night_of(maker, day, sessions=5, stats=stats() if day != 3 else None, model__name="gap")


def rows_of(farm: BundleMaker, model: str, metric: str, columns: str) -> list[tuple[Any, ...]]:
    of_metric = f"model = '{model}' AND metric = '{metric}'"
    return farm.ask(f"SELECT {columns} FROM metric_verdict WHERE {of_metric} ORDER BY night")


def test_a_figure_that_got_worse_is_listed_beside_an_unchanged_latency(farm: BundleMaker) -> None:
    for _, _, (metric, verdict, before, *expected) in WORSE:
        columns = "metric, verdict, baseline_value, value, round(ratio, 6), split_part(reason, ' against ', 1)"
        row = (metric, verdict, pytest.approx(before), *expected)
        assert rows_of(farm, metric, metric, columns)[-1] == row
        # and no other figure has changed, nor the latency
        changed = f"model = '{metric}' AND verdict NOT IN ('no change', 'insufficient data', 'new')"
        assert farm.ask(f"SELECT metric FROM metric_verdict WHERE {changed}") == [(metric,)]


def test_an_operator_that_became_portable_raises_the_portable_share(farm: BundleMaker) -> None:
    columns = "verdict, baseline_value, round(value, 2), ratio, day(since)"
    assert rows_of(farm, "portable", "portable share", columns)[-1] == ("regression", 0.0, 0.3, None, 6)


def test_less_sme2_coverage_is_a_regression_and_more_an_improvement(farm: BundleMaker) -> None:
    columns = "day(night), verdict, round(baseline_value, 2), round(value, 2)"
    rows = {row[0]: row[1:] for row in rows_of(farm, "sme", "SME coverage", columns)}
    assert rows[4] == ("no change", 1.0, 1.0)
    assert rows[5] == ("regression", 1.0, 0.6)
    assert rows[13] == ("improvement", 0.6, 1.0)
    # and without SME2 there is nothing to cover
    assert set(rows_of(farm, "sme", "SME coverage", "variant")) == {("sme2_on",)}


def test_figures_that_no_session_reports_have_no_rows(farm: BundleMaker) -> None:
    # given a runner that reports neither load time nor memory, and no outputs to compare
    assert farm.ask("SELECT DISTINCT metric FROM metric_verdict WHERE model = '.pte size' ORDER BY ALL") == [
        (".pte size",), ("first execution",), ("latency",), ("portable share",),
    ]  # fmt: skip
    # and a night without a figure is left out
    assert [day for (day,) in rows_of(farm, "gap", "peak memory", "day(night)")] == [1, 2, 4, 5]


def test_views_about_latency_have_one_row_per_night_of_a_series(farm: BundleMaker) -> None:
    # then the rows of the metric latency are those of verdict, and of the other views about latency
    columns = "night, device, series_id, verdict, ratio, low, high, z, noise_floor, reason, cell, is_newest"
    of_metrics = f"SELECT {columns} FROM metric_verdict WHERE metric = 'latency'"
    assert farm.ask(f"SELECT {columns} FROM verdict EXCEPT {of_metrics}") == []
    counts = [farm.ask(f"SELECT count(*) FROM {rows}") for rows in ("verdict", "night_over_night", f"({of_metrics})")]
    assert counts == [counts[0]] * 3
    assert farm.ask("SELECT count(*) FROM series_overview") == farm.ask("SELECT count(DISTINCT series_id) FROM verdict")
