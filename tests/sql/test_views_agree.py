"""Views agree with the rows that they are made from, over sessions in which everything differs that can.

Each pair is a public view, and the same figures from views closer to the runs.
"""

import math
from typing import Any

import pytest

from tests.fixtures.described_cells import write_cells
from tests.fixtures.warehouse import BundleMaker


@pytest.fixture(scope="module")
def maker(tmp_path_factory: pytest.TempPathFactory) -> BundleMaker:
    made = BundleMaker(tmp_path_factory.mktemp("agree"))
    write_cells(made)
    made.load()
    return made


SERIES = "sweep_id, device, model, precision, threads"
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
    "category_share is the sum of operator_time": (
        "SELECT cell, category, time_ms, share, sessions, runs FROM category_share",
        """
        SELECT cell, category, sum(operator_time.time_ms), sum(operator_time.share), counted.sessions, counted.runs
        FROM operator_time
        JOIN (SELECT cell, count(*) AS sessions, sum(runs) AS runs FROM session_latency GROUP BY cell) AS counted
        USING (cell)
        GROUP BY ALL
        """,
    ),
    "what clocks hide of operators is missing in the unattributed time": (
        "SELECT cell, category = 'Unattributed', sum(resolution_ms) FROM category_share GROUP BY ALL",
        """
        SELECT cell, unnest([TRUE, FALSE]), sum(calls_per_run) FILTER (kind = 'delegated') * 0.001
        FROM operator_time GROUP BY cell
        """,
    ),
    "portable_weight is the sum of operator_time by kind": (
        "SELECT cell, portable_ms, share, delegated_ms, execute_ms, sessions, runs FROM portable_weight",
        """
        SELECT cell, sum(time_ms) FILTER (kind = 'portable'), sum(share) FILTER (kind = 'portable'),
            sum(time_ms) FILTER (kind = 'delegated'), sum(time_ms), any_value(sessions), any_value(runs)
        FROM operator_time GROUP BY cell
        """,
    ),
    "sme2_speedup compares the times of both sides": (
        f"""
        SELECT {SERIES}, sessions_on, sessions_sme1, sessions_off, time_on_ms, time_sme1_ms, time_off_ms,
            speedup, speedup_sme1, saved_ms
        FROM sme2_speedup
        """,
        f"""
        SELECT {SERIES}, n[3], n[1], n[2], ms[3], ms[1], ms[2],
            CASE WHEN counts[2] AND counts[3] THEN ms[2] / ms[3] END,
            CASE WHEN counts[2] AND counts[1] THEN ms[2] / ms[1] END,
            CASE WHEN counts[2] AND counts[3] THEN ms[2] - ms[3] END
        FROM (
            SELECT {SERIES},
                list(NOT emulated AND accuracy IS DISTINCT FROM 'inaccurate' ORDER BY side) AS counts,
                list(n ORDER BY side) AS n, list(ms ORDER BY side) AS ms
            FROM (
                SELECT {SERIES}, side, bool_or(emulated) AS emulated,
                    max(accuracy) FILTER (variant = side) AS accuracy, count(*) FILTER (variant = side) AS n,
                    avg(time_ms) FILTER (variant = side AND is_typical) AS ms
                FROM session_latency, (VALUES ('sme2_on'), ('sme1'), ('sme2_off')) AS sides (side)
                GROUP BY ALL
            )
            GROUP BY {SERIES}
        )
        """,
    ),
    "operator_speedup sets operator_time with SME2 beside that without": (
        f"""
        SELECT {SERIES}, operator, coalesce(microkernel, ''), data_types_on, data_types_off, calls_on, calls_off,
            time_on_ms, time_off_ms, speedup, saved_ms, below_resolution
        FROM operator_speedup
        """,
        f"""
        WITH side AS (
            SELECT {SERIES}, operator, coalesce(microkernel, '') AS microkernel, variant, max(data_type) AS types,
                sum(calls_per_run) AS calls, sum(time_ms) AS ms, device <> 'qemu' AND model <> 'wrong' AS counts
            FROM operator_time
            WHERE category <> 'Unattributed' AND model <> 'alone'
            GROUP BY ALL
        )
        SELECT {SERIES}, operator, microkernel, a.types, b.types, a.calls, b.calls, a.ms, b.ms,
            CASE WHEN counts THEN b.ms / a.ms END, CASE WHEN counts THEN b.ms - a.ms END, FALSE
        FROM (FROM side WHERE variant = 'sme2_on') AS a
        FULL JOIN (FROM side WHERE variant = 'sme2_off') AS b USING ({SERIES}, operator, microkernel, counts)
        """,
    ),
    "bottleneck_shift sets category_share with SME2 beside that without": (
        f"""
        SELECT {SERIES}, category, share_on, share_off, time_on_ms, time_off_ms, change_points, change_ms
        FROM bottleneck_shift
        """,
        f"""
        SELECT {SERIES}, category, coalesce(a.share, 0) AS of_on, b.share, coalesce(a.time_ms, 0) AS on_ms, b.time_ms,
            CASE WHEN NOT b.emulated THEN 100 * (of_on - b.share) END,
            CASE WHEN NOT b.emulated THEN on_ms - b.time_ms END
        FROM (FROM category_share WHERE variant = 'sme2_on') AS a
        RIGHT JOIN (FROM category_share WHERE variant = 'sme2_off' AND model <> 'alone') AS b
            USING ({SERIES}, category)
        """,
    ),
    "thread_scaling compares times with those of one thread": (
        """
        SELECT sweep_id, device, model, variant, threads, sessions, time_ms, speedup, efficiency
        FROM thread_scaling
        """,
        """
        WITH timed AS (
            SELECT sweep_id, device, model, emulated, variant, threads, count(*) AS sessions,
                avg(time_ms) FILTER (is_typical) AS ms
            FROM session_latency WHERE NOT starts_with(model, 'wrong') GROUP BY ALL
        )
        SELECT sweep_id, device, model, variant, timed.threads, timed.sessions, timed.ms,
            CASE WHEN NOT timed.emulated THEN one.ms / timed.ms END,
            CASE WHEN NOT timed.emulated THEN one.ms / timed.ms / timed.threads END
        FROM timed JOIN (FROM timed WHERE threads = 1) AS one USING (sweep_id, device, model, variant)
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
    "device_overview counts the sessions of each device": (
        "SELECT sweep_id, device, sessions, succeeded, started_at, ended_at FROM device_overview",
        """
        SELECT sweep_id, device, count(*), count(*) FILTER (status = 'succeeded'), min(started_at), max(ended_at)
        FROM session_overview GROUP BY ALL
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
    "failed_session is superseded by a success of the same session": (
        "SELECT session_id, superseded FROM failed_session",
        """
        SELECT session_id, (sweep_id, device, model, precision, variant, mode, threads, repetition) IN (
            SELECT (sweep_id, device, model, precision, variant, mode, threads, repetition)
            FROM session_overview WHERE status = 'succeeded'
        )
        FROM session_overview
        WHERE status <> 'succeeded' AND reason_code <> 'first_session'
        """,
    ),
    "device_wait adds up the waits of sessions": (
        """
        SELECT sweep_id, device, limit_name, sessions, waited_sessions, outside_sessions, unread_sessions, waited_s,
            longest_s, worst, bound, note
        FROM device_wait
        """,
        """
        SELECT sweep_id, device, limit_name, count(*), count(*) FILTER (waited_s > 0), count(*) FILTER (is_outside),
            count(*) - count(value), sum(waited_s), max(waited_s),
            CASE limit_name WHEN 'max_die_c' THEN max(worst) ELSE min(worst) END,
            CASE limit_name WHEN 'max_die_c' THEN min(bound) ELSE max(bound) END,
            max(note)
        FROM session_readiness GROUP BY sweep_id, device, limit_name
        """,
    ),
    "sme2_coverage is the sum of sme2_operator_coverage": (
        "SELECT cell, eligible_ms, sme_ms, name_share, eligible_calls, sme_calls FROM sme2_coverage",
        """
        SELECT cell, sum(time_ms), sum(time_ms * yes), sum(time_ms * yes) / sum(time_ms), sum(calls_per_run),
            sum(calls_per_run * yes)
        FROM (SELECT *, (sme_by_name = 'yes')::INTEGER AS yes FROM sme2_operator_coverage)
        GROUP BY cell
        """,
    ),
    "kernel_use has the part of each kernel in the samples of its cell": (
        "SELECT cell, kernel, weight, sessions, share FROM kernel_use",
        """
        SELECT cell, kernel, any_value(weight), count(*), any_value(weight) / sum(samples)
        FROM kernel_use JOIN session_profile USING (cell) GROUP BY cell, kernel
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
def test_a_view_agrees_with_the_rows_it_is_made_from(maker: BundleMaker, promise: str) -> None:
    shown, expected = (sorted(maker.ask(query), key=repr) for query in AGREE[promise])
    assert len(shown) > 1
    assert len(shown) == len(expected)
    differing = [rows for rows in zip(shown, expected, strict=True) if not all(map(is_equal, *rows))]
    assert differing == []


def is_equal(shown: Any, expected: Any) -> bool:
    """Whether both are one value; of a sum, the order of its numbers changes the last digits."""
    if isinstance(shown, float) and isinstance(expected, float):
        return math.isclose(shown, expected, rel_tol=1e-6, abs_tol=1e-12)
    return bool(shown == expected)
