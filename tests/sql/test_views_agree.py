"""Views agree with the rows that they are made from, over sessions in which everything differs that can.

Each pair is a public view, and the same figures from views closer to the runs. Medians are never means here, no minimum
is a first value, warm-up is faster than any run, and each device, sweep, model, variant and number of threads has
another time: a row that pools two of them has a figure of neither.
"""

import math
from itertools import count, product
from typing import Any

import pytest

from tests.fixtures.warehouse import CONVOLUTION, CONVOLUTION_SME2, LINEAR, MEAN, TRANSPOSE, BundleMaker, profile_of

US = 1_000
ADD = "native_call_add.out"
DEPTHWISE = "Convolution (NHWC, F32) DWConv #1"
DEVICES: dict[str, dict[str, Any]] = {
    "host": {"device__name": "host"},
    "phone": {"device__name": "phone", "device__facts": {"model": "phone", "serial": "s1", "soc": "SM8850"}},
    "qemu": {"device__name": "qemu", "device__emulated": True},
}
SCATTER = (1.0, 1.5, 1.01)  # of sessions: the median is none of minimum, maximum and mean
RUNS = (1.3, 1.0, 2.0, 1.1)  # of a session
KAI_SME2 = "kai_kernel_matmul_clamp_f32_qai8dxp1vlx4_qsi8cxp4vlx4_1vlx4vl_sme2_mopa"
# What makes a failed session another one than those that succeeded: nothing, or one thing each.
ALONE: list[dict[str, Any]] = [
    {},
    {"sweep__sweep_id": "smoke-2026-11-22", "sweep__night": "2026-11-22"},
    {"device__name": "tablet"},
    {"model__name": "lost"},
    {"model__precision": "fp16"},
    {"model__name": "alone"},
    {"mode": "trace"},
    {"threads": 4},
    {"index": 7},
]


@pytest.fixture(scope="module")
def maker(tmp_path_factory: pytest.TempPathFactory) -> BundleMaker:
    made = BundleMaker(tmp_path_factory.mktemp("agree"))
    numbers = count(1)
    for device, variant, threads in product(DEVICES, ("sme2_on", "sme1", "sme2_off"), (1, 2)):
        measure(made, next(numbers), SCATTER, variant=variant, threads=threads, **DEVICES[device])
    for variant, threads in product(("sme2_on", "sme2_off"), (1, 2)):
        measure(made, next(numbers), SCATTER[:2], variant=variant, threads=threads, **night("2026-11-21"))
    for variant in ("sme2_on", "sme2_off"):
        measure(made, next(numbers), SCATTER[:2], variant=variant, model__name="wrong", **wrong(variant == "sme2_on"))
    for variant in ("sme2_on", "sme1", "sme2_off"):
        measure(made, next(numbers), SCATTER[:2], variant=variant, model__name="wrong1", **wrong(variant == "sme1"))
    for threads in (2, 1):
        measure(made, next(numbers), SCATTER[:2], variant="sme2_off", threads=threads, model__name="alone")
    for index, status in enumerate(("failed", "invalid", "failed")):
        reason: dict[str, Any] = {"reason": "broke", "reason_code": "first_session" if index == 2 else "broke"}
        made.session(status=status, index=index, variant="sme2_on", threads=1 + index, **reason, **gates(index, 70))
    for change in ALONE:
        lost: dict[str, Any] = {"index": 1, **change}
        made.session(status="failed", reason="broke", reason_code="broke", variant="sme2_on", **lost)
    for variant, weight in product(("sme2_on", "sme2_off"), (60, 90)):
        kernels = {KAI_SME2: weight, "memcpy": 15, "unresolved": 20}
        made.session([100 * US], variant=variant, mode="profile", files=profile_of(**kernels))
    made.load()
    return made


def measure(maker: BundleMaker, number: int, scatter: tuple[float, ...], variant: str, **changes: Any) -> None:
    """Write the sessions of one cell, whose times no other cell has."""
    convolution = CONVOLUTION_SME2 if variant == "sme2_on" else CONVOLUTION
    for index, factor in enumerate(scatter):
        unit = US * (100 + 37 * (7 * number % 29)) * factor
        times = {convolution: 5, LINEAR: 3 * factor, DEPTHWISE: 2, TRANSPOSE: 1.5, MEAN: 1 + index}
        if variant == "sme2_off":
            times |= {TRANSPOSE.replace("#1", "#2"): 4, ADD: 3}
        operators = {name: round(parts * unit) for name, parts in times.items()}
        runs = [(round(sum(operators.values()) * run), operators) for run in RUNS]
        details: dict[str, Any] = {"index": index, "stats": {"load_ns": number * 1000, "threads_used": 1}}
        maker.session(runs, warmup=0.9, variant=variant, **(details | gates(index, 40 + number)), **changes)


def gates(index: int, die_c: float) -> dict[str, Any]:
    """Two limits: of one a session waits longer the later it is, and the other cannot be read of every second one."""
    hot = {"limit": "max_die_c", "bound": 50 - index, "value": die_c, "worst": die_c + 9 * index, "waited_s": 7 * index}
    free = {"limit": "min_free_memory_mb", "bound": 500 + index, "value": None, "note": "not reported"}
    if index % 2:
        free |= {"value": 400 + 150 * index, "worst": 300 + index, "note": None}
    return {"gates": [hot, free]}


def night(date: str) -> dict[str, Any]:
    return {"sweep__sweep_id": f"smoke-{date}", "sweep__night": date}


def wrong(is_inaccurate: bool) -> dict[str, Any]:
    """Two outputs, compared with both references; one of them is beyond its limit."""
    return {
        "accuracy": [
            {
                "output": output,
                "reference": reference,
                "max_abs_error": 0.5 * output + (reference == "fp32"),
                "max_rel_error": 0.1,
                "nonfinite_mismatches": 0,
                "snr_db": 40.0 - 10 * output - (reference == "fp32"),
                "least_snr_db": 35.0 - 20 * output,
                "cosine": 0.9 - 0.1 * output,
                "top1_agreement": 0.8 - 0.1 * output,
                "is_inaccurate": is_inaccurate and output == 1,
            }
            for output, reference in product((0, 1), ("eager", "fp32"))
        ]
    }


SERIES = "sweep_id, device, model, precision, threads"
AGREE = {
    "session_latency is the statistics of its measured runs": (
        """
        SELECT session_id, runs, warmup_runs, median_ms, mad_ms, iqr_ms, p90_ms, p95_ms, min_ms, max_ms, cv
        FROM session_latency
        """,
        """
        SELECT session_id, count(ms), count(*) - count(ms), median(ms), mad(ms),
            quantile_cont(ms, 0.75) - quantile_cont(ms, 0.25), quantile_cont(ms, 0.9), quantile_cont(ms, 0.95),
            min(ms), max(ms), stddev_samp(ms) / avg(ms)
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
    "sme2_speedup compares medians of sessions of both sides": (
        f"""
        SELECT {SERIES}, sessions_on, sessions_sme1, sessions_off, median_on_ms, median_sme1_ms, median_off_ms,
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
                    median(median_ms) FILTER (variant = side) AS ms
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
    "thread_scaling compares medians of sessions with those of one thread": (
        """
        SELECT sweep_id, device, model, variant, threads, sessions, median_ms, speedup, efficiency
        FROM thread_scaling
        """,
        """
        WITH timed AS (
            SELECT sweep_id, device, model, emulated, variant, threads, count(*) AS sessions, median(median_ms) AS ms
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
        SELECT cell, accuracy, sessions, compared_sessions, inaccurate_sessions, max_abs_error, snr_db, least_snr_db,
            snr_fp32_db, least_snr_fp32_db, cosine, top1_agreement
        FROM cell_accuracy
        """,
        """
        SELECT cell, CASE bool_or(is_inaccurate) WHEN TRUE THEN 'inaccurate' WHEN FALSE THEN 'accurate'
                ELSE 'not compared' END,
            count(DISTINCT session_id), count(DISTINCT session_id) FILTER (output IS NOT NULL),
            count(DISTINCT session_id) FILTER (is_inaccurate), max(max_abs_error) FILTER (reference = 'eager'),
            min(snr_db) FILTER (reference = 'eager'), max(least_snr_db) FILTER (reference = 'eager'),
            min(snr_db) FILTER (reference = 'fp32'), max(least_snr_db) FILTER (reference = 'fp32'),
            min(cosine), min(top1_agreement)
        FROM (SELECT cell, session_id FROM session_overview WHERE status = 'succeeded')
        LEFT JOIN session_accuracy USING (cell, session_id)
        GROUP BY cell
        """,
    ),
    "failed_session is superseded by a success of the same session": (
        "SELECT session_id, superseded FROM failed_session",
        """
        SELECT session_id, (sweep_id, device, model, precision, variant, mode, threads, session_index) IN (
            SELECT (sweep_id, device, model, precision, variant, mode, threads, session_index)
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
    "series_latency is the statistics of the medians of sessions": (
        "SELECT cell, sessions, median_ms, mad_ms, min_ms, max_ms FROM series_latency",
        """
        SELECT cell, count(*), median(median_ms), mad(median_ms), min(median_ms), max(median_ms)
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
