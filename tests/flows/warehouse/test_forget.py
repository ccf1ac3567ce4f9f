"""Forgotten sessions leave every table and figure, stay forgotten, and their slots are measured again."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from sql.warehouse import query, writing
from tasks.store.bundle_store import Forgotten
from tasks.store.folder import read_record
from tests.fixtures.command import Command, DataFolder, Etfarm
from tests.fixtures.gated import go_on, stopped_at
from tests.fixtures.warehouse import CONVOLUTION, MEAN, profile_of

CONDITIONS = {"temperature_c": 40.0}
_NEWEST = "(SELECT arg_max(series_id, session_key) FROM session), 'phone', DATE '2026-11-21'"
# What no load of these sessions writes: thinning, sources, layers, counted kernels, judged operators, intervals,
# delegates.
FILL = (
    "INSERT INTO thinned_session SELECT max(session_key), now()::TIMESTAMP FROM session",
    "INSERT INTO source_map SELECT 9, 'x', max(model_id) FROM model",
    "INSERT INTO module_class VALUES (9, 'encoder', 'Encoder')",
    "INSERT INTO node_source BY NAME "
    "SELECT 9 AS source_map_id, 0 AS chain_index, 0 AS instruction_id, 'known' AS certainty",
    "UPDATE session SET source_map_id = 9 WHERE session_key = (SELECT max(session_key) FROM session)",
    "INSERT INTO layer_value BY NAME SELECT max(session_key) AS session_key, 0 AS layer, 'conv' AS operator, "
    "1 AS elements, 0 AS nonfinite_mismatches, 'x' AS values_sha256, [1.0] AS sample FROM session",
    "INSERT INTO cell_interval SELECT max(cell_id), 1.0, 2.0 FROM session_cell",
    "INSERT INTO kernel_counts SELECT max(session_key), 5, 1000, 1.0, [] FROM session",
    "INSERT INTO prediction SELECT max(cell_id), 's', 'phone', DATE '2026-11-21', 'delegated', ['mean'], 1.0, 0.0, "
    "4.0, 3.0, 2.9, 3.1, 'a pair', 'rule' FROM session_cell",
    "INSERT INTO skipped_model VALUES ('other-2026-11-21', NULL, 'third', 'fp32', 'no part of the graph', 'a.json')",
    "INSERT INTO delegate_result SELECT 'other-2026-11-21', max(cell_id), max(cell_id), 1.0, 0.9, 1.1, 'unknown', 5, "
    "NULL FROM session_cell",
    f"INSERT INTO series_cause VALUES ({_NEWEST}, 1.0, NULL, NULL)",
    "INSERT INTO incident_series BY NAME SELECT 'a' AS incident_id, 'model' AS kind, 'm' AS subject, "
    "series_id, device, metric, 'fixed' AS state, night AS onset, night AS last_seen, 0 AS reopened, "
    "[] AS good_nights, night FROM series_verdict LIMIT 1",
    f"INSERT INTO series_operator_verdict VALUES "
    f"({_NEWEST}, 'operator', 'conv', 'Convolution', 'no change', 1.0, NULL, NULL, 80, 80, NULL)",
)
KEPT_TABLES = {"decision", "operator_category", "schema_migration", "schema_part"}


def counts(warehouse: Path) -> dict[str, int]:
    tables = [row[0] for row in query(warehouse, "SELECT table_name FROM duckdb_tables() ORDER BY 1")[1]]
    return dict(query(warehouse, " UNION ALL ".join(f"SELECT '{each}', count(*) FROM {each}" for each in tables))[1])


def fill(data: DataFolder) -> None:
    """Write three sessions of one cell."""
    for index, ns in enumerate((100, 200, 900)):
        data.session([(ns, {CONVOLUTION: ns // 2, MEAN: 5})] * 2, repetition=index)


def test_forgotten_sessions_leave_no_row_and_change_nothing_of_others(data_folder: DataFolder, etfarm: Etfarm) -> None:
    before, figures = counts(data_folder.warehouse), data_folder.ask("SELECT * FROM operator_time ORDER BY ALL")
    # when a sweep with another model, device and runner is loaded that fills every table, and forgotten
    arm = {"purpose": "same_night", "comparison": "c" * 16}
    sweep = {"sweep_id": "other-2026-11-21", "name": "other", "night": "2026-11-21"}
    other: dict[str, Any] = {"sweep": sweep, "device__name": "phone"}
    for side in "ab":
        data_folder.session([200], arm={**arm, "side": side}, **other)
    folder = data_folder.session(
        [(200, {CONVOLUTION: 80})],
        **other,
        model__name="second",
        model__delegated=[{"operator": "conv", "count": 1}],
        runner__runner_sha256="r2",
        accuracy=[{"output": 0, "max_abs_error": 0.0, "max_rel_error": 0.0, "nonfinite_mismatches": 0}],
        conditions={"before": CONDITIONS, "after": CONDITIONS},
        gates=[{"limit": "max_die_c", "bound": 50.0, "value": 49.0}],
        files=profile_of(xnn_f32_gemm=10),
    )
    data_folder.session(status="failed", reason_code="device_lost", reason="phone: cable", model__name="third", **other)
    etfarm("warehouse", "load")
    with writing(data_folder.warehouse) as connection:
        for statement in FILL:
            connection.execute(statement)
    grown = counts(data_folder.warehouse)
    assert {table for table in before if grown[table] == before[table]} == KEPT_TABLES
    code, printed = etfarm("decisions", "forget", "other-2026-11-21", "--reason", "wrong governor")
    # then every table is as it was, the bundle too, and the line tells it
    assert code == 0
    assert "4 forgotten; 4 removed from the warehouse; the bundles are unchanged" in printed
    assert counts(data_folder.warehouse) == before
    assert data_folder.ask("SELECT * FROM operator_time ORDER BY ALL") == figures
    assert read_record(folder).status == "succeeded"


def test_a_forgotten_sweep_has_no_figures_and_is_not_loaded_again(data_folder: DataFolder, etfarm: Etfarm) -> None:
    other = data_folder.session([100], sweep__sweep_id="other-2026-11-20", sweep__name="other")
    figures = "SELECT time_ms, sessions FROM series_latency WHERE sweep_id = 'smoke-2026-11-20'"
    assert data_folder.ask(figures) == [(0.0002, 3)]
    # when the slowest of three sessions is forgotten, then the time is that of the other two: of two, the faster
    etfarm("decisions", "forget", f"{3:016x}", "--reason", "wrong wheel")
    assert data_folder.ask(figures) == [(0.0001, 2)]
    assert data_folder.ask("SELECT time_ms FROM operator_time WHERE operator LIKE 'Conv%'") == [(0.00005,)]
    # when its sweep is, twice, then it is done once
    forget = ("decisions", "forget", "smoke-2026-11-20", "--reason")
    assert "2 forgotten, 1 were already forgotten; 2 removed" in etfarm(*forget, "wrong wheel")[1]
    assert "0 forgotten, 3 were already forgotten; 0 removed" in etfarm(*forget, "again")[1]
    assert set(data_folder.store.forgotten().values()) == {"wrong wheel"}
    # and when everything is loaded again, also by path, then only another sweep is loaded
    assert etfarm("warehouse", "load")[1].startswith("1 loaded")
    code, printed = etfarm("warehouse", "load", data_folder.bundles / "smoke-2026-11-20", other)
    assert (code, printed) == (0, "0 loaded, 1 already in the warehouse, 0 refused, 3 forgotten (left out)\n")
    assert data_folder.session_ids() == [other.name]


@pytest.mark.thorough
@pytest.mark.parametrize("moment", ["1 sessions are recorded", "1 sessions are removed"])
def test_a_forget_that_is_killed_is_finished_by_the_next_load(
    data_folder: DataFolder, etfarm: Etfarm, moment: str
) -> None:
    # given a forget of the fastest session that is killed at this moment
    words = ("decisions", "forget", f"{1:016x}", "--reason", "x", "--data-dir", data_folder.workspace.root)
    with stopped_at(moment, *words):
        pass
    # then the warehouse still has all sessions, and a check names the command that removes it
    assert query(data_folder.warehouse, "SELECT sessions FROM series_latency")[1] == [(3,)]
    assert "forgotten, but still in the warehouse" in etfarm("warehouse", "check")[1]
    etfarm("warehouse", "load")
    assert data_folder.ask("SELECT time_ms, sessions FROM series_latency") == [(0.0002, 2)]
    assert etfarm("warehouse", "check")[0] == 0


@pytest.mark.thorough
def test_a_session_that_is_forgotten_while_it_is_loaded_is_not_in_the_warehouse(data_folder: DataFolder) -> None:
    # given a load that has committed a session, and has not ended
    folder = data_folder.session([100])
    with stopped_at("loaded 1", "warehouse", "load", "--data-dir", data_folder.workspace.root) as load:
        # when the session is recorded as forgotten, and the load goes on
        data_folder.store.forget(Forgotten(reason="x", forgotten_at="2026", sessions={folder.name: "smoke-2026-11-20"}))
        go_on(load)
    assert folder.name not in data_folder.session_ids()


@pytest.mark.parametrize(
    ("name", "reason", "sentence"),
    [
        ("smoke-2026-11-21", "x", "or the warehouse; did you mean `smoke-2026-11-20`?"),
        ("nothing-like-it", "x", "list sessions with `etfarm sql`"),
        ("smoke-2026-11-20", " ", "--reason: the text is empty"),
    ],
)
def test_what_cannot_be_forgotten_is_named(
    loaded: Path, command: Command, name: str, reason: str, sentence: str
) -> None:
    assert sentence in command("decisions", "forget", name, "--reason", reason, "--data-dir", loaded).refusal
    assert not (loaded / "bundles" / "forgotten").exists()


def test_a_loose_etdump_can_be_forgotten(data: DataFolder, etfarm: Etfarm, tmp_path: Path) -> None:
    loose = Path(shutil.copy(data.session([100]) / "model.etdump", tmp_path / "loose.etdump"))
    etfarm("warehouse", "load", loose)
    assert "1 forgotten; 1 removed" in etfarm("decisions", "forget", *data.session_ids(), "--reason", "x")[1]
    # then the ETDump is left out by its content
    assert "0 loaded, 0 already in the warehouse, 0 refused, 1 forgotten" in etfarm("warehouse", "load", loose)[1]
