"""A user's query only reads the warehouse: no other file, no extension, no setting, bounded memory."""

from pathlib import Path

import pytest

from sql import warehouse as warehouse_module
from sql.warehouse import WarehouseError, query, writing


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("queried") / "warehouse.duckdb"
    with writing(path) as connection:
        connection.execute("INSERT INTO sweep VALUES ('kept', 'smoke', NULL)")
    return path


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file beside the warehouse that no query may read, as CSV or as text."""
    path = tmp_path / "secret.csv"
    path.write_text("password\nhunter2\n", encoding="utf-8")
    return path


ESCAPES = [
    "ATTACH '{folder}/new.duckdb' AS other",
    "ATTACH '{warehouse}' AS again",
    "COPY sweep TO '{folder}/sweep.csv'",
    "COPY (SELECT * FROM sweep) TO '{folder}/sweep.parquet'",
    "COPY sweep FROM '{secret}'",
    "EXPORT DATABASE '{folder}/exported'",
    "IMPORT DATABASE '{folder}'",
    "SELECT * FROM read_text('{secret}')",
    "SELECT * FROM read_blob('{secret}')",
    "SELECT * FROM read_csv('{secret}')",
    "SELECT * FROM read_parquet('{secret}')",
    "SELECT * FROM read_json('{secret}')",
    "SELECT * FROM '{secret}'",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM sniff_csv('{secret}')",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '{folder}/mine.duckdb_extension'",
    "UPDATE EXTENSIONS",
    "SET enable_external_access = true",
    "SET memory_limit = '999GB'",
    "RESET memory_limit",
    "SET temp_directory = '{folder}'",
    "PRAGMA memory_limit = '999GB'",
    "PRAGMA enable_profiling",
    "PRAGMA disable_optimizer",
    "SET profiling_output = '{folder}/profile.json'",
    "CALL enable_logging(storage = 'file', storage_path = '{folder}/log')",
    "SELECT * FROM enable_logging(storage = 'file', storage_path = '{folder}/log')",
    "EXPLAIN ANALYZE COPY sweep TO '{folder}/sweep.csv'",
    "PREPARE copied AS COPY sweep TO '{folder}/sweep.csv'",
    "CREATE PERSISTENT SECRET mine (TYPE s3)",
    "CREATE TABLE mine AS SELECT 1",
    "INSERT INTO sweep VALUES ('mine', 'smoke', NULL)",
    "DELETE FROM sweep",
    "DROP VIEW run_latency",
    "SELECT 1; COPY sweep TO '{folder}/sweep.csv'",
]


@pytest.mark.parametrize("text", ESCAPES)
def test_a_query_reaches_nothing_but_the_warehouse(warehouse: Path, secret: Path, text: str) -> None:
    # given a file beside the warehouse and a query that reads or writes files, extensions or settings
    folder = secret.parent
    # when it is run
    with pytest.raises(WarehouseError, match=r"^the query (was refused|failed): ") as caught:
        query(warehouse, text.format(folder=folder, secret=secret, warehouse=warehouse))
    # then it is refused in one sentence, and no file was written
    assert "\n" not in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert [path.name for path in folder.iterdir()] == ["secret.csv"]
    assert query(warehouse, "SELECT sweep_id FROM sweep")[1] == [("kept",)]


@pytest.mark.parametrize(
    "text",
    [
        "FROM sweep",
        "WITH one AS (SELECT 1) FROM one",
        "DESCRIBE run_latency",
        "SHOW TABLES",
        "SUMMARIZE sweep",
        "EXPLAIN SELECT 1",
        "PRAGMA table_info('sweep')",
        "PIVOT sweep ON name USING count(*)",
        "CREATE TEMP TABLE half AS SELECT 1 AS one; SELECT one FROM half",
    ],
)
def test_a_query_that_only_reads_is_answered(warehouse: Path, text: str) -> None:
    assert query(warehouse, text)[1]


def test_a_name_in_a_query_never_means_a_variable_of_the_program(warehouse: Path) -> None:
    import pyarrow as pa

    rows_of_the_program = pa.table({"a": [1]})
    with pytest.raises(WarehouseError, match="rows_of_the_program does not exist"):
        query(warehouse, "SELECT * FROM rows_of_the_program")
    assert rows_of_the_program.num_rows == 1


def test_a_query_that_needs_too_much_memory_is_refused_and_does_not_spill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a warehouse whose readers may use 64 MiB
    path = tmp_path / "w.duckdb"
    with writing(path):
        pass
    warehouse_module._reader_settings.cache_clear()
    monkeypatch.setattr(warehouse_module, "_MOST_QUERY_MEMORY_BYTES", 64 << 20)
    try:
        # when a query has to keep far more
        with pytest.raises(WarehouseError, match="it needs more memory than a query may use") as caught:
            query(path, "SELECT count(*) FROM (SELECT DISTINCT repeat('x', 40) || range FROM range(20_000_000))")
    finally:
        warehouse_module._reader_settings.cache_clear()
    # then it is one sentence, and nothing was written beside the warehouse
    assert "\n" not in str(caught.value)
    assert [found.name for found in tmp_path.iterdir()] == ["w.duckdb"]


def test_two_readers_of_one_process_share_a_snapshot(warehouse: Path) -> None:
    with warehouse_module.open_read_only(warehouse):
        assert query(warehouse, "SELECT sweep_id FROM sweep")[1] == [("kept",)]
