"""`etfarm warehouse check` finds each kind of damage, names it in one line, and finds nothing in what is right."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sql.warehouse import writing
from tasks.maintain.check import check_warehouse
from tasks.store.bundle_store import Forgotten
from tests.fixtures.command import DataFolder, Etfarm
from tests.fixtures.warehouse import CONVOLUTION, LINEAR, MEAN

SWEEP, SESSION = "smoke-2026-11-20", f"{2:016x}"


def fill(data: DataFolder) -> None:
    """Write three sessions of a cell."""
    for index in range(3):
        data.session([(100 + index, {CONVOLUTION: 60, MEAN: 5})] * 2, repetition=index)


def changed(statement: str) -> Callable[[DataFolder], object]:
    def change(data_folder: DataFolder) -> None:
        with writing(data_folder.warehouse) as connection:
            connection.execute(statement)

    return change


def bundle(data_folder: DataFolder) -> Path:
    return data_folder.bundles / SWEEP / SESSION


def change_snapshot(data_folder: DataFolder) -> None:
    [snapshot] = data_folder.workspace.snapshots.glob("*.duckdb")
    snapshot.chmod(0o644)
    snapshot.write_bytes(snapshot.read_bytes() + b"x")


DAMAGES: dict[str, tuple[Callable[[DataFolder], object], list[str]]] = {
    "bundles that were not loaded": (
        lambda data_folder: [data_folder.session([100]) for _ in range(3)],
        [" and 2 more of "],
    ),
    "a changed file": (
        lambda data_folder: (bundle(data_folder) / "model.etdump").write_bytes(b"x"),
        ["does not match its hash"],
    ),
    "a lost bundle": (
        lambda data_folder: bundle(data_folder).rename(data_folder.workspace.root / "x"),
        ["not what was loaded; restore it"],
    ),
    "a changed snapshot": (change_snapshot, ["the snapshot was changed"]),
    "a forgotten session that is still there": (
        lambda data_folder: data_folder.store.forget(
            Forgotten(reason="x", forgotten_at="2026", sessions={SESSION: SWEEP})
        ),
        ["forgotten, but still in the warehouse"],
    ),
    "a changed run summary": (changed("UPDATE run_summary SET other_ns = 1 WHERE run_id = 1"), ["run_summary is not"]),
    "a changed cell": (changed("UPDATE cell_operator SET share = 0.5"), ["cell_operator is not"]),
    "a changed night": (changed("UPDATE series_night SET median_ns = 5"), ["series_night is not"]),
    "a lost aggregate": (
        changed("DELETE FROM session_node WHERE session_key = 2"),
        ["session_node is not what its sessions give (10 rows, 15 computed)"],
    ),
    "lost events": (
        changed("DELETE FROM event WHERE run_id = 1"),
        ["1 runs without events", "run_summary is not", "session_summary is not"],
    ),
    "a run that is stored twice": (
        changed("INSERT INTO run SELECT * FROM run WHERE run_id = 1"),
        ["1 runs that are stored twice", "whose number of runs is not", "run_summary is not", "session_summary is not"],
    ),
    "a session without its place in the ledger": (
        changed("DELETE FROM load_ledger WHERE session_key = 2"),
        ["1 sessions without a row in load_ledger", "whose ETDump is not in load_ledger", "not in the warehouse"],
    ),
}


def test_a_farm_without_damage_has_no_finding(data_folder: DataFolder, etfarm: Etfarm) -> None:
    # given a farm that also has two operators of each kind, a failed session, a forgotten one and a thinned one
    data_folder.session([(120, {CONVOLUTION: 60, LINEAR: 10, MEAN: 5, "native_call_add.out": 3})], repetition=3)
    data_folder.session(status="failed", reason_code="crash")
    data_folder.session([70], sweep__sweep_id="other-2026-11-20", sweep__name="other")
    etfarm("warehouse", "load")
    etfarm("decisions", "forget", "other-2026-11-20", "--reason", "x")
    with writing(data_folder.warehouse) as connection:
        connection.execute("INSERT INTO thinned_session VALUES (2, now()::TIMESTAMP)")
        connection.execute("DELETE FROM event WHERE run_id IN (SELECT run_id FROM run WHERE session_key = 2)")
    code, printed = etfarm("warehouse", "check")
    assert code == 0
    [line] = [line for line in printed.splitlines() if not line.startswith("check")]
    assert line == "no finding: 6 bundles with 5 files, 5 sessions (1 thinned), 11 runs, 46 events"


@pytest.mark.thorough
@pytest.mark.parametrize("damage", DAMAGES)
def test_each_damage_is_found(data_folder: DataFolder, damage: str) -> None:
    cause, sentences = DAMAGES[damage]
    cause(data_folder)
    findings = check_warehouse(data_folder.workspace).findings
    assert len(findings) == len(sentences), findings
    assert all(any(sentence in finding for finding in findings) for sentence in sentences), findings
