"""Views agree with the rows that they are made from, over sessions in which everything differs that can.

Each pair is a public view, and the same figures from views closer to the runs.
"""

import math
from typing import Any

import pytest

from tests.fixtures.described_cells import write_cells
from tests.fixtures.warehouse import BundleMaker


def write_sessions(maker: BundleMaker) -> None:
    write_cells(maker)


AGREE = {
    "session_latency is the statistics of its measured runs": (
        """
        SELECT session_id, runs, warmup_runs, median_ms, mad_ms, iqr_ms, p90_ms, p95_ms, min_ms, max_ms, mean_ms, sd_ms,
            cv
        FROM session_latency
        """,
        """
        SELECT session_id, count(ms), count(*) - count(ms), median(ms), mad(ms),
            quantile_cont(ms, 0.75) - quantile_cont(ms, 0.25), quantile_cont(ms, 0.9), quantile_cont(ms, 0.95),
            min(ms), max(ms), avg(ms), stddev_samp(ms), stddev_samp(ms) / avg(ms)
        FROM (SELECT session_id, CASE WHEN NOT is_warmup THEN execute_ms END AS ms FROM run_latency)
        GROUP BY session_id
        """,
    ),
    "sweep_overview counts how sessions ended": (
        """
        SELECT sweep_id, succeeded, failed, invalid, discarded, devices, models, started_at, ended_at
        FROM sweep_overview
        """,
        """
        SELECT sweep_id, count(*) FILTER (status = 'succeeded'), count(*) FILTER (status = 'failed'),
            count(*) FILTER (status = 'invalid'), count(*) FILTER (reason_code = 'first_session'),
            count(DISTINCT device), count(DISTINCT model), min(started_at), max(ended_at)
        FROM session_overview GROUP BY sweep_id
        """,
    ),
    "cell_overview counts the sessions of each cell": (
        "SELECT cell, sessions, succeeded, started_at, ended_at FROM cell_overview",
        """
        SELECT cell, count(*), count(*) FILTER (status = 'succeeded'), min(started_at), max(ended_at)
        FROM session_overview GROUP BY cell
        """,
    ),
    "cell_accuracy is the worst of its sessions and outputs": (
        """
        SELECT cell, accuracy, sessions, compared_sessions, inaccurate_sessions, max_abs_error, snr_db, min_snr_db,
            snr_fp32_db, min_snr_fp32_db, cosine, top1_agreement
        FROM cell_accuracy
        """,
        """
        SELECT cell, CASE bool_or(is_inaccurate) WHEN TRUE THEN 'inaccurate' WHEN FALSE THEN 'accurate'
                ELSE 'not compared' END,
            count(DISTINCT session_id), count(DISTINCT session_id) FILTER (output IS NOT NULL),
            count(DISTINCT session_id) FILTER (is_inaccurate), max(max_abs_error) FILTER (reference = 'eager'),
            min(snr_db) FILTER (reference = 'eager'), max(min_snr_db) FILTER (reference = 'eager'),
            min(snr_db) FILTER (reference = 'fp32'), max(min_snr_db) FILTER (reference = 'fp32'),
            min(cosine), min(top1_agreement)
        FROM (SELECT cell, session_id FROM session_overview WHERE status = 'succeeded')
        LEFT JOIN session_accuracy USING (cell, session_id)
        GROUP BY cell
        """,
    ),
    "series_latency is the time of its cell and the statistics of the medians of sessions": (
        "SELECT cell, sessions, time_ms, median_ms, mad_ms, min_ms, max_ms FROM series_latency",
        """
        SELECT cell, count(*), avg(time_ms) FILTER (is_typical), median(median_ms), mad(median_ms), min(median_ms),
            max(median_ms)
        FROM session_latency GROUP BY cell
        """,
    ),
}


@pytest.mark.parametrize("promise", AGREE)
def test_a_view_agrees_with_the_rows_it_is_made_from(farm: BundleMaker, promise: str) -> None:
    shown, expected = (sorted(farm.ask(query), key=repr) for query in AGREE[promise])
    assert len(shown) > 1
    assert len(shown) == len(expected)
    differing = [rows for rows in zip(shown, expected, strict=True) if not all(map(is_equal, *rows))]
    assert differing == []


def is_equal(shown: Any, expected: Any) -> bool:
    """Whether both are one value; of a sum, the order of its numbers changes the last digits."""
    if isinstance(shown, float) and isinstance(expected, float):
        return math.isclose(shown, expected, rel_tol=1e-6, abs_tol=1e-12)
    return bool(shown == expected)
