"""Latency and where it goes: sessions of models, a query, the expected rows."""

from typing import Any

import pytest

from tests.fixtures.warehouse import CONVOLUTION, LINEAR, MEAN, TRANSPOSE, BundleMaker, etdump_of

MS = 1_000_000
NO_TIMING: tuple[dict[str, Any], ...] = (
    {"mode": "profile"},
    {"mode": "trace"},
    {"status": "failed"},
    {"status": "invalid"},
)
FAILED: dict[str, Any] = {
    "status": "failed",
    "reason_code": "runner_crashed",
    "reason": "by signal 11",
    "log_tail": "oops",
}
OUTPUTS = [
    {"output": 0, "max_abs_error": 1e-6, "max_rel_error": 1e-3, "nonfinite_mismatches": 0},
    {"output": 1, "max_abs_error": None, "max_rel_error": None, "nonfinite_mismatches": 4},
]
LOOSE = "loose etdump"
# limits of 50 and values, whether each is outside, which is open of an unknown one, and a note
LIMITS = [
    ("max_die_c", 49.9, False, None), ("max_die_c", 50, False, None), ("max_die_c", 50.1, True, None),
    ("max_die_c", None, None, "no sensor"), ("min_free_memory_mb", 49.9, True, None),
    ("min_free_memory_mb", 50, False, None), ("min_free_memory_mb", 50.1, False, None),
]  # fmt: skip


def write_sessions(maker: BundleMaker) -> None:
    """Write the sessions of all questions, which have a model each."""
    maker.session([1_000_001, 2_000_002], model__name="two runs", accuracy=OUTPUTS)
    for count in (99, 100):
        maker.session([number * MS for number in range(1, count + 1)], model__name=f"{count} runs")
    maker.session([MS], warmup_executions=2, model__name="warm-up")
    # a session that also ran without an ETDump, whose first run is warm-up, and one that did not
    stats: dict[str, Any] = {"load_ns": 5 * MS, "peak_memory_bytes": 1 << 20, "threads_used": 2}
    stats["execution_ns"] = [12_000, 1280, 1280, 1290]
    maker.session([1270, 1270, 1280], stats=stats | {"untraced_execution_ns": [9000, 1000, 1000]}, model__name="costs")
    maker.session([1270, 1270, 1280], stats=stats | {"untraced_execution_ns": []}, model__name="costs")
    runs = [(100, {CONVOLUTION: 50, LINEAR: 20, MEAN: 5}), (300, {CONVOLUTION: 150, LINEAR: 60, MEAN: 15})] * 2
    maker.session(runs, model__name="shares")
    names = {
        CONVOLUTION: 30,
        CONVOLUTION.replace("#1", "#2"): 10,
        "Convolution (NHWC, F32) DWConv #1": 20,
        TRANSPOSE: 15,
    }
    maker.session([(100, names)], model__name="names")
    for changes in NO_TIMING:
        maker.session([(100, {CONVOLUTION: 60, MEAN: 5})], model__name="no timing", **changes)
    maker.session(**FAILED, signal=11, model__name="crashed")
    maker.session(
        [(100, {"Frobnicate (NC, F32) #1": 10, "native_call_frob.out": 20, CONVOLUTION: 30})], model__name="unknown"
    )
    maker.session([(101, {"Frobnicate (NC, F16) #2": 10})], model__name="unknown")
    for limit, value, _, note in LIMITS:
        gate = {"limit": limit, "bound": 50, "value": value, "waited_s": 0, "note": note}
        maker.session([MS], gates=[gate], model__name="limits")
    (maker.bundles / f"{LOOSE}.etdump").write_bytes(etdump_of([(9, {}), (5 * MS, {}), (7 * MS, {})]))


ROWS: list[tuple[str, str, str, list[Any]]] = [
    # every run has its nanoseconds, and warm-up is marked
    ("run_latency", "two runs", "run_index, is_warmup, execute_ns, execute_ms",
        [(0, True, 9_000_009, 9.000009), (1, False, 1_000_001, 1.000001), (2, False, 2_000_002, 2.000002)]),
    ("session_accuracy", "two runs", "output, max_abs_error, max_rel_error, nonfinite_mismatches",
        [(0, 1e-6, 1e-3, 0), (1, None, None, 4)]),
    # the 99th percentile needs a hundred runs
    ("session_latency", "99 runs", "p99_ms", [(None,)]),
    ("session_latency", "100 runs", "round(p99_ms, 6)", [(99.01,)]),
    ("session_latency", "warm-up", "runs, warmup_runs, median_ms, cv", [(0, 2, None, None)]),
    ("category_share", "warm-up", "*", []),
    # the cost of an ETDump is known where it was measured
    ("session_latency", "costs", "round(tracing_cost, 3), load_ms, peak_memory_bytes, threads_used",
        [(0.28, 5.0, 1 << 20, 2), (None, 5.0, 1 << 20, 2)]),
    ("session_latency", LOOSE,
        "device, emulated, precision, variant, mode, threads, night, runs, warmup_runs, median_ms",
        [("unknown", None, "unknown", "unknown", "timing", None, None, 2, 1, 6.0)]),
    ("run_latency", LOOSE, "session_id = etdump_sha256[:16], sweep_id = 'loose-' || session_id", [(True, True)] * 3),
    ("session_readiness", "limits", "limit_name, value, is_outside, note", LIMITS),
    # shares add up to one with unattributed time
    ("category_share", "shares", "share, category, round(time_ms * 1e6, 6)",
        [(0.05, "Other", 10), (0.2, "GEMM", 40), (0.25, "Unattributed", 50), (0.5, "Convolution", 100)]),
    # operators differ by layout, types and kernel, but not by number
    ("operator_time", "names", "share, operator, kind, category, layout, data_type, microkernel, calls_per_run", [
        (0.0, "DELEGATE_CALL", "delegate_call", "Unattributed", None, None, None, 1.0),
        (0.15, "Transpose", "delegated", "Data Movement", "ND", "X32", None, 1.0),
        (0.2, "Convolution", "delegated", "Convolution", "NHWC", "F32", "DWConv", 1.0),
        (0.25, "Method::execute", "method", "Unattributed", None, None, None, 1.0),
        (0.4, "Convolution", "delegated", "Convolution", "NHWC", "F32", "IGEMM", 2.0),
    ]),
    # only timing sessions that succeeded enter latency and shares
    *((view, "no timing", "*", []) for view in ("run_latency", "session_latency", "series_latency", "category_share",
        "operator_time", "portable_weight")),
    ("session_overview", "no timing", "count(*)", [(len(NO_TIMING),)]),
    ("failed_session", "crashed", "status, reason_code, reason, log_tail, signal, attempt, superseded",
        [("failed", "runner_crashed", "by signal 11", "oops", 11, 1, False)]),
    # an operator without a category counts as other and is listed
    ("unknown_operator", "unknown", "name, kind, sessions", [("Frobnicate", "delegated", 2), ("frob", "portable", 1)]),
    ("category_share", "unknown", "round(sum(share) FILTER (category = 'Other'), 9)", [(0.3,)]),
]  # fmt: skip


@pytest.mark.parametrize(("view", "model", "columns", "rows"), ROWS)
def test_a_view_shows(farm: BundleMaker, view: str, model: str, columns: str, rows: list[Any]) -> None:
    order = "" if "count" in columns else "ORDER BY ALL"
    assert farm.ask(f"SELECT {columns} FROM {view} WHERE model = '{model}' {order}") == rows
