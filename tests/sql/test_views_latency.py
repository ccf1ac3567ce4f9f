"""Latency and where it goes: sessions, a query, the expected rows."""

from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.warehouse import CONVOLUTION, LINEAR, MEAN, TRANSPOSE, BundleMaker, etdump_of

MS = 1_000_000


def test_every_run_has_a_row_with_its_nanoseconds_and_warm_up_is_marked(maker: BundleMaker) -> None:
    maker.session([1_000_001, 2_000_002], session_id="a" * 16)
    maker.load()
    assert maker.ask("SELECT session_id, run_index, is_warmup, execute_ns, execute_ms FROM run_latency ORDER BY 2") == [
        ("a" * 16, 0, True, 9_000_009, 9.000009),
        ("a" * 16, 1, False, 1_000_001, 1.000001),
        ("a" * 16, 2, False, 2_000_002, 2.000002),
    ]


@pytest.mark.parametrize(("runs", "p99_ms"), [(99, None), (100, 99.01)])
def test_the_99th_percentile_needs_a_hundred_runs(maker: BundleMaker, runs: int, p99_ms: float | None) -> None:
    maker.session([number * MS for number in range(1, runs + 1)])
    maker.load()
    assert maker.ask("SELECT round(p99_ms, 6) FROM session_latency") == [(p99_ms,)]


def test_a_session_of_warm_up_alone_has_no_statistics(maker: BundleMaker) -> None:
    maker.session([MS], warmup_executions=2)
    maker.load()
    assert maker.ask("SELECT runs, warmup_runs, median_ms, cv FROM session_latency") == [(0, 2, None, None)]
    assert maker.ask("SELECT count(*) FROM category_share") == [(0,)]


def test_a_session_has_what_its_runner_reported(maker: BundleMaker) -> None:
    maker.session([MS], stats={"load_ns": 5 * MS, "peak_memory_bytes": 1 << 20, "threads_used": 2})
    maker.load()
    assert maker.ask("SELECT load_ms, peak_memory_bytes, threads_used FROM session_latency") == [(5.0, 1 << 20, 2)]


def test_the_cost_of_an_etdump_is_known_where_it_was_measured(maker: BundleMaker) -> None:
    # given a session that also ran without an ETDump, whose first run is warm-up, and one that did not
    stats = {"load_ns": MS, "threads_used": 1, "execution_ns": [12_000, 1280, 1280, 1290]}
    maker.session([1270, 1270, 1280], stats=stats | {"untraced_execution_ns": [9000, 1000, 1000]})
    maker.session([1270, 1270, 1280], stats=stats | {"untraced_execution_ns": []})
    maker.load()
    costs = maker.ask("SELECT round(tracing_cost, 3) FROM session_latency ORDER BY ALL")
    assert costs == [(0.28,), (None,)]


def test_a_loose_etdump_is_a_session_of_an_unknown_device(maker: BundleMaker, tmp_path: Path) -> None:
    (tmp_path / "my model.etdump").write_bytes(etdump_of([(9, {}), (5 * MS, {}), (7 * MS, {})]))
    maker.load(tmp_path / "my model.etdump")
    assert maker.ask("""
        SELECT device, emulated, model, precision, variant, mode, threads, night, runs, warmup_runs, median_ms
        FROM session_latency
    """) == [("unknown", None, "my model", "unknown", "unknown", "timing", None, None, 2, 1, 6.0)]
    assert (
        maker.ask("SELECT session_id = etdump_sha256[:16], sweep_id = 'loose-' || session_id FROM run_latency")
        == [(True, True)] * 3
    )


def test_shares_of_categories_add_up_to_one_with_unattributed_time(maker: BundleMaker) -> None:
    maker.session([(100, {CONVOLUTION: 50, LINEAR: 20, MEAN: 5}), (300, {CONVOLUTION: 150, LINEAR: 60, MEAN: 15})] * 2)
    maker.load()
    assert maker.ask("SELECT category, time_ms * 1e6, share FROM category_share ORDER BY share DESC") == [
        ("Convolution", 100.0, 0.5),
        ("Unattributed", pytest.approx(50.0), 0.25),
        ("GEMM", 40.0, 0.2),
        ("Other", 10.0, 0.05),
    ]


def test_a_run_that_is_shorter_than_its_operators_is_refused(maker: BundleMaker) -> None:
    folder = maker.session([(100, {CONVOLUTION: 110})])
    ((path, sentence),) = maker.load().refused
    assert path == folder
    assert "Method::execute lasts 100 ns in execution 1, 10 ns less than what ran inside it" in sentence
    assert maker.ask("SELECT * FROM session_latency") == []


def test_operators_differ_by_layout_types_and_kernel_but_not_by_number(maker: BundleMaker) -> None:
    second = CONVOLUTION.replace("#1", "#2")
    maker.session([(100, {CONVOLUTION: 30, second: 10, "Convolution (NHWC, F32) DWConv #1": 20, TRANSPOSE: 15})])
    maker.load()
    assert maker.ask("""
        SELECT operator, kind, category, layout, data_type, microkernel, calls_per_run, time_ms * 1e6, share
        FROM operator_time WHERE category <> 'Unattributed' ORDER BY share DESC
    """) == [
        ("Convolution", "delegated", "Convolution", "NHWC", "F32", "IGEMM", 2.0, 40.0, 0.4),
        ("Convolution", "delegated", "Convolution", "NHWC", "F32", "DWConv", 1.0, 20.0, 0.2),
        ("Transpose", "delegated", "Data Movement", "ND", "X32", None, 1.0, 15.0, 0.15),
    ]
    assert maker.ask("SELECT operator, share FROM operator_time WHERE category = 'Unattributed' ORDER BY 2") == [
        ("DELEGATE_CALL", 0.0),
        ("Method::execute", 0.25),
    ]


def test_sessions_that_differ_in_anything_that_matters_are_not_mixed(maker: BundleMaker) -> None:
    maker.session([(100, {CONVOLUTION: 60})])
    maker.session([(100, {CONVOLUTION: 61})], threads=2)
    maker.session([(100, {CONVOLUTION: 62})], variant="sme2_on")
    maker.session([(100, {CONVOLUTION: 63})], device__name="phone")
    maker.session([(100, {CONVOLUTION: 64})], runner__source_sha256="source2")
    maker.session([(100, {CONVOLUTION: 65})], model__precision="fp16")
    maker.session([(100, {CONVOLUTION: 66})], sweep__sweep_id="smoke-2026-11-20.2")
    maker.session([(100, {CONVOLUTION: 67})], runner__source_sha256=None, runner__runner_sha256="other")
    maker.load()
    each = [(percent / 100, 1) for percent in range(60, 68)]
    for rows in ("category_share WHERE category = 'Convolution'", "operator_time WHERE operator = 'Convolution'"):
        assert maker.ask(f"SELECT share, sessions FROM {rows} ORDER BY share") == each
    assert maker.ask("SELECT count(*) FROM portable_weight") == [(8,)]


@pytest.mark.parametrize(
    "ending", [{"mode": "profile"}, {"mode": "trace"}, {"status": "failed"}, {"status": "invalid"}]
)
def test_only_timing_sessions_that_succeeded_enter_latency_and_shares(
    maker: BundleMaker, ending: dict[str, Any]
) -> None:
    maker.session([(100, {CONVOLUTION: 60, MEAN: 5})], **ending)
    maker.load()
    by_operator = ("category_share", "operator_time", "portable_weight")
    for view in ("run_latency", "session_latency", "series_latency", *by_operator):
        assert maker.ask(f"SELECT * FROM {view}") == [], view
    assert maker.ask("SELECT count(*) FROM session_overview") == [(1,)]


def test_a_failed_session_is_listed_with_its_reasons(maker: BundleMaker) -> None:
    maker.session(
        status="failed", reason_code="crashed", reason="by signal 11", log_tail="oops", signal=11, session_id="f" * 16
    )
    maker.load()
    columns = "session_id, status, reason_code, reason, log_tail, signal, attempt, superseded"
    assert maker.ask(f"SELECT {columns} FROM failed_session") == [
        ("f" * 16, "failed", "crashed", "by signal 11", "oops", 11, 1, False)
    ]


def test_accuracy_has_one_row_per_output(maker: BundleMaker) -> None:
    outputs = [
        {"output": 0, "max_abs_error": 1e-6, "max_rel_error": 1e-3, "nonfinite_mismatches": 0},
        {"output": 1, "max_abs_error": None, "max_rel_error": None, "nonfinite_mismatches": 4},
    ]
    maker.session([100], accuracy=outputs)
    maker.load()
    query = "SELECT output, max_abs_error, max_rel_error, nonfinite_mismatches FROM session_accuracy ORDER BY 1"
    assert maker.ask(query) == [(0, 1e-6, 1e-3, 0), (1, None, None, 4)]


def test_an_operator_without_a_category_counts_as_other_and_is_listed(maker: BundleMaker) -> None:
    maker.session([(100, {"Frobnicate (NC, F32) #1": 10, "native_call_frob.out": 20, CONVOLUTION: 30})])
    maker.session([(101, {"Frobnicate (NC, F16) #2": 10})])
    maker.load()
    assert maker.ask("SELECT name, kind, sessions, model FROM unknown_operator ORDER BY name") == [
        ("Frobnicate", "delegated", 2, "toy"),
        ("frob", "portable", 1, "toy"),
    ]
    assert maker.ask("SELECT sum(share) FROM operator_time WHERE category = 'Other'") == [(pytest.approx(0.3),)]
