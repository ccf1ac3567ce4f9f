"""Views agree with the rows that they are made from, over sessions in which everything differs that can.

Each pair is a public view, and the same figures from views closer to the runs. Medians are never means here, no minimum
is a first value, warm-up is faster than any run, and each device, sweep, model, variant and number of threads has
another time: a row that pools two of them has a figure of neither.
"""

import math
from itertools import count, product
from typing import Any

import pytest

from tests.fixtures.warehouse import COMPARED, BundleMaker, profile_of

US = 1_000
DEVICES: dict[str, dict[str, Any]] = {
    "host": {"device__name": "host"},
    "phone": {"device__name": "phone", "device__facts": {"model": "phone", "serial": "s1", "soc": "SM8850"}},
    "qemu": {"device__name": "qemu", "device__emulated": True},
}
SCATTER = (1.0, 1.5, 1.01)  # of sessions: the median is none of minimum, maximum and mean
RUNS = (1.3, 1.0, 2.0, 1.1)  # of a session
# What makes a failed session another one than those that succeeded: nothing, or one thing each.
ALONE: list[dict[str, Any]] = [
    {},
    {"sweep__sweep_id": "smoke-2026-11-22", "sweep__night": "2026-11-22", "started_at": "2026-11-22T10:20:00+00:00"},
    *({"device__name": "tablet"}, {"model__name": "lost"}, {"model__precision": "fp16"}, {"mode": "trace"}),
    *({"threads": 4}, {"repetition": 7}),
]


def write_sessions(maker: BundleMaker) -> None:
    """Write sessions of every device, variant and number of threads, and those that failed beside them."""
    numbers = count(1)
    for device, variant, threads in product(DEVICES, ("sme2_on", "sme1", "sme2_off"), (1, 2)):
        measure(maker, next(numbers), variant=variant, threads=threads, **DEVICES[device])
    for threads in (1, 2):
        sweep = {"sweep__sweep_id": "smoke-2026-11-21", "sweep__night": "2026-11-21"}
        measure(maker, next(numbers), threads=threads, **sweep)
    for variant in ("sme2_on", "sme2_off"):
        accuracy = compared(variant == "sme2_on")
        measure(maker, next(numbers), variant=variant, model__name="wrong", accuracy=accuracy)
    for status, code in (("failed", "no_stats"), ("invalid", "no_stats"), ("failed", "first_session")):
        maker.session([5 * US] * 3, status=status, reason="broke", reason_code=code, variant="sme2_on")
    for change in ALONE:
        lost: dict[str, Any] = {"status": "failed", "reason": "broke", "reason_code": "no_stats", "variant": "sme2_on"}
        maker.session([5 * US] * 3, **lost | change)
    maker.session([100 * US], mode="profile", files=profile_of(memcpy=15))


def measure(maker: BundleMaker, number: int, **changes: Any) -> None:
    """Write the sessions of one cell, whose times no other cell has."""
    for index, factor in enumerate(SCATTER):
        unit = US * (100 + 37 * (7 * number % 29)) * factor
        maker.session([round(unit * run) for run in RUNS], warmup=0.7, repetition=index, **changes)


def compared(is_inaccurate: bool) -> list[dict[str, Any]]:
    """Two outputs, compared with both references; one of them is beyond its limit."""
    rows = []
    for output, reference in product((0, 1), ("eager", "fp32")):
        is_fp32, is_wrong = reference == "fp32", is_inaccurate and output == 1
        row = COMPARED | {"output": output, "reference": reference, "max_abs_error": 0.5 * output + is_fp32}
        row |= {"snr_db": 40.0 - 10 * output - is_fp32, "min_snr_db": 35.0 - 20 * output}
        row |= {"cosine": 0.9 - 0.1 * output, "top1_agreement": 0.8 - 0.1 * output, "is_inaccurate": is_wrong}
        rows.append(row)
    return rows


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
