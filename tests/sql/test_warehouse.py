"""The warehouse file: created once, brought up to date, rejected in one sentence, written by one, read by many."""

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from sql import schema
from sql.errors import RowsRefused, WarehouseError
from sql.schema import seed_rows
from sql.warehouse import open_read_only, query, writing
from tests.fixtures.command import run_python
from tests.fixtures.warehouse import BundleMaker, add_sweep, sweeps

_HOLD = "import duckdb, sys; connection = duckdb.connect(sys.argv[1]); print('held', flush=True); sys.stdin.read()"


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return BundleMaker(tmp_path).warehouse


@pytest.fixture
def holder(warehouse: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the warehouse open until its standard input is closed."""
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(warehouse)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        yield process
        if process.stdin and not process.stdin.closed:
            process.stdin.close()


def assert_refused(path: Path, sentence: str) -> None:
    """Neither a reader nor a writer opens it."""
    with pytest.raises(WarehouseError, match=sentence):
        query(path, "SELECT 1")
    with pytest.raises(WarehouseError, match=sentence):
        add_sweep(path, "a")


def test_each_view_and_each_macro_is_the_only_thing_in_a_file_of_its_name() -> None:
    paths = list(Path(schema.__file__).parent.glob("views/*/*.sql"))
    assert sorted(path.stem for path in paths) == sorted(file.name for file in schema.views())
    views = [(file, f"CREATE OR REPLACE VIEW {file.name} AS\n") for file in schema.views()]
    macros = [(file, f"CREATE OR REPLACE MACRO {file.name}(") for file in schema.sql_files("macros")]
    for file, beginning in views + macros:
        assert f"\n{beginning}" in file.text, file.name
        assert file.text.count("CREATE") == 1, file.name


def test_a_transaction_is_stored_only_if_it_ended_without_an_error(warehouse: Path) -> None:
    add_sweep(warehouse, "kept")
    with contextlib.suppress(KeyError), writing(warehouse) as connection:
        connection.execute("INSERT INTO sweep (sweep_id, name, night) VALUES ('lost', 'smoke', NULL)")
        raise KeyError
    # and rows that do not fit are all refused
    refused = r"warehouse\.duckdb: rows were refused \(Constraint Error: .*duplicate key"
    with pytest.raises(RowsRefused, match=refused), writing(warehouse) as connection:
        connection.execute("INSERT INTO sweep (sweep_id, name, night) SELECT 'a', 'smoke', NULL FROM range(2)")
    assert sweeps(warehouse) == ["kept"]


def test_a_file_that_is_missing_or_not_a_warehouse_is_refused_and_left_alone(tmp_path: Path) -> None:
    with pytest.raises(WarehouseError, match=r"w\.duckdb: there is no warehouse here"):
        query(tmp_path / "w.duckdb", "SELECT 1")
    assert list(tmp_path.iterdir()) == []
    notes, theirs = tmp_path / "notes.txt", tmp_path / "theirs.duckdb"
    notes.write_text("not a database, only long enough to be taken for one" * 100, encoding="utf-8")
    assert_refused(notes, r"notes\.txt is not a warehouse: it is not a DuckDB file")
    assert notes.read_text(encoding="utf-8").startswith("not a database")
    with duckdb.connect(str(theirs)) as connection:
        connection.execute("CREATE TABLE sweep (broom VARCHAR)")
    assert_refused(theirs, r"theirs\.duckdb is not a warehouse: it lacks the farm's tables")
    with duckdb.connect(str(theirs)) as connection:
        assert connection.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("sweep",)]
    # and a path that cannot be written is one sentence
    with pytest.raises(WarehouseError, match=r"could not be written[^\n]*$"):
        add_sweep(notes / "w.duckdb", "a")


@pytest.mark.fault
def test_a_full_disk_is_reported_in_one_sentence_and_loses_nothing(full_disk: Path) -> None:
    path = full_disk / "w.duckdb"
    add_sweep(path, "kept")
    sentence = r"w\.duckdb: the warehouse could not be written[^\n]*$"
    with pytest.raises(WarehouseError, match=sentence), writing(path) as connection:
        connection.execute(
            "INSERT INTO sweep (sweep_id, name) SELECT gen_random_uuid(), repeat('x', 100) FROM range(100_000)"
        )
    assert sweeps(path) == ["kept"]


@pytest.mark.fault
def test_a_damaged_block_is_an_answer_or_a_sentence(tmp_path: Path) -> None:
    # given a warehouse of some blocks, and its answer
    maker = BundleMaker(tmp_path)
    operators = {f"Convolution (NHWC, F32) IGEMM #{number}": 100 + number for number in range(40)}
    maker.session([(1_000_000 + run, operators) for run in range(60)])
    maker.load()
    question = "SELECT count(*), sum(self_ns), sum(start_ns) FROM event"
    answer, content = maker.ask(question), maker.warehouse.read_bytes()
    refused = []
    # when a bit of each block is flipped
    for start in range(12_288, len(content), 262_144):
        damaged = bytearray(content)
        damaged[start + 1000] ^= 1
        maker.warehouse.write_bytes(damaged)
        try:
            assert maker.ask(question) == answer
        except WarehouseError as error:
            refused.append(str(error))
    # then each error names the damage and the command, and there were some
    assert refused
    for sentence in refused:
        assert re.search(r"the warehouse is damaged \(.*`etfarm warehouse rebuild`", sentence)
        assert "\n" not in sentence


def test_a_warehouse_of_another_version_or_a_newer_farm_is_refused(warehouse: Path) -> None:
    with writing(warehouse) as connection:
        connection.execute("INSERT INTO schema_migration VALUES (9999, '9999_future', 'x', '2099-01-01')")
    count = len(schema.migrations())
    assert_refused(warehouse, rf"written by a newer farm \({count + 1} migrations, this one has {count}\)")
    with duckdb.connect(str(warehouse)) as connection:
        connection.execute("UPDATE schema_migration SET sha256 = 'another' WHERE number = 1")
    cause = "its tables are those of another version of etfarm"
    assert_refused(warehouse, f"{cause}; `etfarm warehouse rebuild` builds it again from the bundles")


def test_an_older_warehouse_is_brought_up_to_date_and_keeps_its_rows_and_one_that_cannot_be_stays(
    warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_sweep(warehouse, "old")
    bad = schema.SqlFile("9999_bad", "CREATE TABLE half (x INTEGER); SELECT nonsense FROM nowhere", "sha")
    newer = schema.SqlFile("9999_more", "ALTER TABLE sweep ADD COLUMN mood VARCHAR DEFAULT 'fine'", "sha")
    before = schema.migrations()
    # given a migration that fails, then nothing is changed
    with monkeypatch.context() as patched:
        patched.setattr(schema, "migrations", lambda: (*before, bad))
        with pytest.raises(WarehouseError):
            add_sweep(warehouse, "a")
    assert query(warehouse, "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'half'")[1] == [(0,)]
    # given another one, then each writer finds its column
    monkeypatch.setattr(schema, "migrations", lambda: (*before, newer))
    for number in range(2):
        with writing(warehouse) as connection:
            connection.execute("INSERT INTO sweep (sweep_id, name, mood) VALUES (?, '', 'better')", [f"new {number}"])
    rows = [("new 0", "better"), ("new 1", "better"), ("old", "fine")]
    assert query(warehouse, "SELECT sweep_id, mood FROM sweep ORDER BY 1")[1] == rows


def test_views_and_categories_are_renewed_when_the_farm_has_others(warehouse: Path) -> None:
    with writing(warehouse) as connection:
        connection.execute("UPDATE schema_part SET sha256 = 'of an older farm'")
        connection.execute("CREATE OR REPLACE VIEW run_latency AS SELECT 1 AS one")
        connection.execute("DELETE FROM operator_category")
    with writing(warehouse):
        pass
    assert query(warehouse, "SELECT execute_ns FROM run_latency") == (["execute_ns"], [])
    expected = len(seed_rows("operator_category"))
    assert query(warehouse, "SELECT count(*) FROM operator_category")[1] == [(expected,)]


@pytest.mark.thorough
@pytest.mark.long
def test_a_reader_of_a_warehouse_of_another_version_sees_this_versions_views(warehouse: Path) -> None:
    add_sweep(warehouse, "old")
    with duckdb.connect(str(warehouse)) as connection:
        connection.execute("UPDATE schema_part SET sha256 = 'of an older farm'")
        connection.execute("DROP VIEW _pair; DROP MACRO _has_times; DROP MACRO TABLE _sme_rule")
        connection.execute("CREATE OR REPLACE VIEW _session AS SELECT 1 AS one")
    before = warehouse.read_bytes()
    for file in schema.views():
        query(warehouse, f"SELECT * FROM {file.name}")
    assert sweeps(warehouse) == ["old"]
    assert warehouse.read_bytes() == before


def test_a_wrong_query_is_answered_with_one_line(warehouse: Path) -> None:
    for text, answer in {
        "SELEC 1": r'Parser Error: syntax error at or near "SELEC"',
        "SELECT nothing FROM run_latency": r'Binder Error: .* "nothing" not found in .* Candidate bindings: "\w+"',
        "SELECT * FROM run_latenci": r'Catalog Error: .* run_latenci does not exist! Did you mean "run_latency"',
        "SELECT 'x'::INTEGER": r"Conversion Error: Could not convert string 'x' to INT32$",
    }.items():
        with pytest.raises(WarehouseError, match=rf"^the query failed: {answer}[^\n]*$") as caught:
            query(warehouse, text)
        assert "LINE 1" not in str(caught.value)


def test_every_query_of_the_farm_fits_the_views(warehouse: Path) -> None:
    queries = schema.sql_files("queries")
    assert queries
    with open_read_only(warehouse) as connection:
        for file in queries:
            connection.execute(file.text, dict.fromkeys(re.findall(r"\$(\w+)", file.text)))


@pytest.mark.thorough
def test_a_writer_and_a_reader_wait_for_another_process_to_let_go(
    warehouse: Path, holder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = []

    def let_go(seconds: float) -> None:
        waits.append(seconds)
        if holder.poll() is None and holder.stdin:
            holder.stdin.close()
            holder.wait()

    monkeypatch.setattr(time, "sleep", let_go)
    # given that neither waits, then both name the process
    expected = rf"warehouse\.duckdb is open in another process \(process {holder.pid}\); close it there"
    for opened in (writing, open_read_only):
        with pytest.raises(WarehouseError, match=expected), opened(warehouse, max_wait_s=0):
            pass
    add_sweep(warehouse, "after")
    assert waits
    assert sweeps(warehouse) == ["after"]


def test_a_version_has_the_same_parts_in_every_process() -> None:
    # otherwise each reader would create its views, and each writer replace them
    program = "from sql import schema; print(sorted(schema._expected_parts().items()))"
    printed = {run_python("-c", program, env={**os.environ, "PYTHONHASHSEED": seed}).stdout for seed in "0123"}
    assert len(printed) == 1
