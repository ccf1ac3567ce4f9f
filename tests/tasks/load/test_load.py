"""Loading: everything once, damaged files rejected in one sentence each, the others loaded."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tasks.load.load import load_paths
from tests.fixtures.paths import ROOT
from tests.fixtures.warehouse import CONVOLUTION, MEAN, BundleMaker, edit, etdump_of

COUNTS = "SELECT (SELECT count(*) FROM session), (SELECT count(*) FROM run), (SELECT count(*) FROM event)"


def test_a_bundle_is_loaded_once_however_often_it_is_given(maker: BundleMaker, tmp_path: Path) -> None:
    folder = maker.session([(100, {CONVOLUTION: 60}), (100, {CONVOLUTION: 60})])
    assert maker.load(maker.bundles, folder).loaded == 1
    before = maker.ask(COUNTS)
    assert before == [(1, 3, 9)]
    elsewhere = shutil.copytree(maker.bundles, tmp_path / "copy")
    again = maker.load(maker.bundles, elsewhere, folder / "session.json")
    assert (again.loaded, again.already, again.refused) == (0, 2, [])
    assert maker.ask(COUNTS) == before


def test_loose_etdumps_are_found_at_any_depth_and_bundles_keep_theirs(maker: BundleMaker, tmp_path: Path) -> None:
    maker.session([100])
    for name in ("deep/a.etdump", "b.txt", ".part-1-abc/c.etdump"):
        path = maker.bundles / "more" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(etdump_of([(9, {}), (5, {})]))
    # and one that is named is read under any name
    path = tmp_path / 'it\'s "odd" \udcff name'
    path.write_bytes(etdump_of([(9, {}), (6, {})]))
    assert maker.load(maker.bundles, path).loaded == 3
    models = "SELECT DISTINCT model FROM run_latency WHERE device = 'unknown' ORDER BY 1"
    assert maker.ask(models) == [("a",), ('it\'s "odd" \ufffd name',)]


def test_a_bundle_replaces_its_loose_etdump(maker: BundleMaker) -> None:
    folder = maker.session([(100, {CONVOLUTION: 60, MEAN: 10})])
    other = maker.session([(200, {CONVOLUTION: 60})])
    maker.load(folder / "model.etdump", other)
    assert maker.ask("SELECT count(*), count(*) FILTER (device = 'unknown') FROM run_latency") == [(4, 2)]
    result = maker.load(folder)
    assert (result.loaded, result.refused) == (1, [])
    assert maker.ask("SELECT device, count(*) FROM run_latency GROUP BY device") == [("host", 4)]
    for table in ("session", "model", "sweep", "run", "run_summary", "event", "session_node", "node", "load_ledger"):
        assert maker.ask(f"SELECT count(*) FROM {table} AS t WHERE t::VARCHAR LIKE '%loose%'") == [(0,)], table
    assert maker.ask("SELECT count(*) FROM event WHERE run_id NOT IN (SELECT run_id FROM run)") == [(0,)]
    assert maker.load(folder / "model.etdump").already == 1


def test_a_measurement_in_two_bundles_or_of_other_content_is_refused(maker: BundleMaker, tmp_path: Path) -> None:
    etdump = etdump_of([(900, {}), (100, {})])
    first, second = (maker.session([100], files={"model.etdump": etdump}) for _ in range(2))
    twice = (second, f"{second}: its ETDump was already loaded from another bundle; it is loaded only once")
    result = maker.load()
    assert (result.loaded, result.refused) == (1, [twice])
    # and so is a session that was loaded with other content
    other = BundleMaker(tmp_path / "another").session([200], session_id=first.name)
    [again, (path, sentence)] = maker.load(maker.bundles, other).refused
    assert (again, path) == (twice, other)
    assert f"session {first.name} was already loaded with other content" in sentence
    assert maker.ask("SELECT median_ms FROM session_latency") == [(1e-4,)]


def test_a_wrong_bundle_is_refused_in_one_sentence_and_the_others_are_loaded(maker: BundleMaker) -> None:
    # given a sound bundle, others with one thing wrong each, and a damaged loose ETDump
    good, changed, missing, cut = (maker.session([100]) for _ in range(4))
    (changed / "model.etdump").write_bytes(etdump_of([(1, {}), (2, {})]))
    (missing / "model.etdump").unlink()
    (cut / "session.json").write_text('{"bundle_version": 1,', encoding="utf-8")
    loose = maker.bundles / "loose.etdump"
    loose.write_bytes(etdump_of([(9, {}), (5, {})])[:-20])
    expected = {
        loose: "is truncated",
        changed: "does not match its hash in session.json",
        missing: "the file is missing",
        cut: "session.json: does not match its schema (Invalid JSON",
    }
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"executions": 7}, "contains 2 executions, but session.json states 7"),
        ({"executions": 1}, "contains 2 executions, but session.json states 1"),
        ({"sweep__night": "yesterday"}, "`sweep.night`: 'yesterday' is not an existing date"),
        (
            {"sweep__night": "2026-11-21"},
            "`sweep_id` is smoke-2026-11-20, but the name is smoke and the night 2026-11-21",
        ),
        ({"sweep__name": "nightly"}, "`sweep_id` is smoke-2026-11-20, but the name is nightly"),
        ({"files": {}}, "model.etdump is missing although the session succeeded"),
        ({"threads": 2**40}, "`threads`: Input should be less than or equal to 2147483647"),
    ]
    for change, sentence in wrong:
        folder = maker.session([100])
        edit(folder, **change)
        expected[folder] = sentence
    # when all are loaded, then each of the others is refused in one sentence
    result = maker.load()
    refused = dict(result.refused)
    assert (result.loaded, refused.keys()) == (1, expected.keys())
    for folder, sentence in expected.items():
        assert sentence in refused[folder]
        assert "\n" not in refused[folder]
    assert maker.ask("SELECT session_id FROM session_overview") == [(good.name,)]


def test_paths_without_bundles_are_reported_and_no_warehouse_is_created(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "pipe.etdump")
    warehouse = tmp_path / "w.duckdb"
    result = load_paths([tmp_path / "empty", tmp_path / "nowhere", tmp_path / "pipe.etdump"], warehouse)
    assert [sentence for _, sentence in result.refused] == [
        f"{tmp_path / 'empty'}: contains neither a bundle nor an .etdump file",
        f"{tmp_path / 'nowhere'}: no such file or folder",
        f"{tmp_path / 'pipe.etdump'}: not a file or folder; pass bundles or .etdump files",
    ]
    assert not warehouse.exists()


def test_a_session_without_a_result_is_loaded_with_its_reasons_and_without_runs(maker: BundleMaker) -> None:
    before = {"taken_at": "2026-11-20T03:00:00.500+02:00", "temperature_c": 41.5, "thermal_status": 2}
    ended: dict[str, Any] = {
        "reason_code": "thermal",
        "reason": "it was too hot",
        "files": {"model.etdump": b"cut off"},
    }
    for status in ("failed", "invalid"):
        maker.session([100], status=status, conditions={"before": before, "after": None}, **ended)
    # and one that never started has no runner
    maker.session(status="failed", runner=None, reason="no compiler", model__pte_sha256=None, model__export_key=None)
    assert maker.load().loaded == 3
    assert maker.ask("SELECT status, reason FROM session_overview ORDER BY session_id") == [
        ("failed", "it was too hot"), ("invalid", "it was too hot"), ("failed", "no compiler"),
    ]  # fmt: skip
    assert maker.ask("SELECT count(*) FROM run") == [(0,)]
    taken = "SELECT moment, taken_at::VARCHAR, temperature_c, thermal_status FROM session_conditions"
    assert maker.ask(taken) == [("before", "2026-11-20 01:00:00.5", 41.5, "2")] * 2


def test_what_sessions_share_is_stored_once(maker: BundleMaker) -> None:
    portable = ["aten.mean.dim", "aten.sym_size.int", "<built-in function mul>", "aten._local_scalar_dense.default"]
    delegation: dict[str, Any] = {
        "model__delegated": [{"operator": "aten.convolution.default", "count": 2}],
        "model__portable": [{"operator": name, "count": 1} for name in portable],
    }
    maker.session([(100, {CONVOLUTION: 60, MEAN: 5})], **delegation)
    maker.load()
    # given also one of a farm that reads the versions of libraries, and one of another build
    edit(maker.session([(100, {CONVOLUTION: 60, MEAN: 5})], **delegation), device__facts__glibc="2.36")
    maker.session([(100, {CONVOLUTION: 60})], device__facts={"model": "board", "build": "b2"}, **delegation)
    maker.load()
    for table, count in {"model": 1, "runner": 1, "device": 2, "series": 2, "sweep": 1, "node": 5}.items():
        assert maker.ask(f"SELECT count(*) FROM {table}") == [(count,)], table
    # and operators on shapes and numbers are listed as scalar and not as portable
    assert maker.ask("SELECT operator, placement, count FROM operator_delegation ORDER BY ALL") == [
        ("<built-in function mul>", "scalar", 1),
        ("aten._local_scalar_dense.default", "scalar", 1),
        ("aten.convolution.default", "delegated", 2),
        ("aten.mean.dim", "portable", 1),
        ("aten.sym_size.int", "scalar", 1),
    ]


def test_runs_share_their_nodes_and_their_events_start_after_them(maker: BundleMaker) -> None:
    maker.session([(100, {CONVOLUTION: 60}), (100, {CONVOLUTION: 50, MEAN: 5}), (100, {CONVOLUTION: 40})])
    maker.load()
    assert maker.ask("""
        SELECT node.name, parent.name, count(*), sum(self_ns), max(event.start_ns)
        FROM event JOIN node USING (node_id) LEFT JOIN node AS parent ON node.parent_node_id = parent.node_id
        JOIN run USING (run_id)
        WHERE NOT is_warmup AND node.kind IN ('method', 'delegated', 'portable', 'operator_call')
        GROUP BY ALL ORDER BY 4 DESC
    """) == [
        (CONVOLUTION, "DELEGATE_CALL", 3, 150, 0),
        ("Method::execute", None, 3, 145, 0),
        (MEAN, "OPERATOR_CALL", 1, 5, 50),
        ("OPERATOR_CALL", "Method::execute", 1, 0, 50),
    ]
    # and runs keep the device's clock
    assert maker.ask("SELECT min(start_ns) >= 1_000_000 FROM run") == [(True,)]


def test_bundles_as_the_first_version_writes_them_load(maker: BundleMaker) -> None:
    # given bundles that are kept as they were written: a measured one, a side of a comparison, a failed one
    kept = ROOT / "tests/fixtures/bundles"
    # when they are loaded, then what they state is in the views
    assert (maker.load(kept).loaded, maker.load(kept).already) == (3, 3)
    columns = "load_ms, threads_used, runs, time_ms, accuracy"
    sessions = "session_latency JOIN session_overview USING (session_id) WHERE runs = 3"
    former = "model_peak_memory_bytes, peak_memory_bytes, sme_reported, sme2_reported"
    assert maker.ask(f"SELECT {columns}, {former} FROM {sessions}") == [
        (0.005, 1, 3, pytest.approx(10.0), "inaccurate", 8192, 16_384, False, False)
    ]
    assert maker.ask("SELECT output, reference, min_top1, first_difference, margin FROM session_accuracy") == [
        (0, "eager", None, None, None),
        (0, "fp32", 0.99, None, None),
        (1, "host", None, 3, 0.5),
    ]
    assert maker.ask("SELECT reason_code FROM failed_session") == [("runner_crashed",)]
    assert maker.ask("SELECT purpose, arm FROM session_overview WHERE arm IS NOT NULL") == [("same_night", "a")]
