"""`etfarm sql`: every format, files that are complete or absent, bounded memory, and Ctrl-C."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from flows.cli.sql import print_answer
from sql.errors import WarehouseError
from sql.question import questions
from sql.warehouse import writing
from tasks.store.workspace import Workspace
from tests.fixtures.command import Command
from tests.fixtures.farm import ETFARM
from tests.fixtures.waiting import ENOUGH_S, SCALE, wait_for

# They print rows for hours, and compute for hours before they have a row.
ENDLESS = "SELECT range FROM range(10_000_000_000_000)"
ENDLESS_COUNT = "SELECT count(*) FROM range(10_000_000_000_000) WHERE hash(range) = 0"
Show = Callable[..., str]


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("asked") / "warehouse.duckdb"
    with writing(path):
        pass
    return path


@pytest.fixture
def show(warehouse: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Show:
    """Print the rows of a query in a format or write them to a file; return what is printed."""

    def run(query: str, format: Any = None, file: Path | None = None) -> str:
        print_answer(query, format, file, Workspace(tmp_path, warehouse))
        return capsys.readouterr().out

    return run


def start(*words: object, folder: Path) -> "subprocess.Popen[str]":
    command = [*ETFARM, "sql", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder)


def columns_and_rows(file: Path) -> tuple[list[str], list[list[Any]]]:
    """Read a file back with an independent reader of its format."""
    if file.suffix == ".json":
        rows = json.loads(file.read_text(encoding="utf-8"))
        return list(rows[0]), [list(row.values()) for row in rows]
    if file.suffix in (".parquet", ".arrow"):
        table = parquet.read_table(file) if file.suffix == ".parquet" else pa.ipc.open_file(file).read_all()
        return table.schema.names, [list(row) for row in zip(*table.to_pydict().values(), strict=True)]
    lines = file.read_text(encoding="utf-8").splitlines()
    if file.suffix == ".csv":
        header, *body = list(csv.reader(lines))
    else:
        header, rule, *body = [[cell.replace("\\", "") for cell in line.strip("| ").split(" | ")] for line in lines]
        assert set(rule) == {"---"}
    return header, [[int(cell) if cell.isdigit() else cell for cell in row] for row in body]


@pytest.mark.parametrize("suffix", [".csv", ".json", ".parquet", ".arrow", ".md"])
def test_rows_are_written_in_the_format_of_the_suffix(show: Show, tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"out{suffix}"
    printed = show("SELECT 'mobilenet_v2' AS model, range AS ms, 2 AS ms, 3 AS ms FROM range(2)", None, file)
    assert printed == f"{file}: 2 rows\n"
    columns, rows = columns_and_rows(file)
    assert rows == [["mobilenet_v2", 0, 2, 3], ["mobilenet_v2", 1, 2, 3]]
    # and columns of one name survive
    assert columns == ["model", *(["ms"] * 3 if suffix in (".csv", ".md") else ["ms", "ms_1", "ms_2"])]


@pytest.mark.parametrize(
    ("query", "format", "printed"),
    [
        ("SELECT 1 AS ms, 2 AS ms", None, "ms  ms\n--  --\n 1   2\n(1 row)\n"),
        ("SELECT 'a|b' || chr(10) || '<c>_d' AS x", "markdown", "| x |\n| --- |\n| a\\|b \\<c\\>\\_d |\n"),
        ("SELECT 'a' || chr(10) || 'b' AS log", None, "log\n---\na b\n(1 row)\n"),
        ("SELECT MAP {DATE '2026-11-01': 1} AS nights", "json", [{"nights": {"2026-11-01": 1}}]),
        ("SELECT 'nan'::DOUBLE AS a, ['inf'::DOUBLE, 1] AS b", "json", [{"a": None, "b": [None, 1.0]}]),
    ],
)
def test_values_that_a_format_cannot_show_as_they_are(show: Show, query: str, format: Any, printed: object) -> None:
    out = show(query, format)
    assert (json.loads(out, parse_constant=pytest.fail) if format == "json" else out) == printed


@pytest.mark.parametrize("suffix", [".json", ".parquet"])  # the writers of text and of Arrow
def test_a_query_that_fails_late_leaves_its_file(show: Show, tmp_path: Path, suffix: str) -> None:
    # given a file from before, and a query that fails after 50 000 rows
    (file := tmp_path / f"out{suffix}").write_text("from before", encoding="utf-8")
    query = "SELECT CASE WHEN range < 50_000 THEN range ELSE error('too late') END FROM range(50_001)"
    # when it is written, then the file is as it was, and nothing else is there
    with pytest.raises(WarehouseError, match=r"Error: too late$|(too late|run it again to see the cause)$"):
        show(query, None, file)
    assert ([*tmp_path.iterdir()], file.read_text(encoding="utf-8")) == ([file], "from before")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["SELECT 1", "--output", "rows.xlsx"], "rows.xlsx: unknown output format; end its name in .csv, .json, "),
        (["SELECT 1", "--output", "rows.csv", "--format", "json"], "--format and --output exclude each other"),
        (["SELECT INTERVAL 1 DAY AS i", "--output", "rows.parquet"], "rows.parquet: this format cannot store a column"),
        (["SELECT 1", "--output", "folder.csv"], "folder.csv: is a folder; name a file"),
        *(([nothing], "the query is empty") for nothing in ("", ";", "/* a comment */")),
        (["slowest-operator"], "unknown question `slowest-operator`; did you mean `slowest-operators`?; list"),
        (["slowest-operators", "--since", "2026-11-20"], "--since: not an option of slowest-operators; use --model, "),
        (["slowest-operators", "--model"], "--model: its value is missing; write --model VALUE"),
        (["SELECT 1", "--model", "toy"], "--model: unknown option or second argument; SQL has an option for each $"),
        (["SELECT $$x$$ || $tag$y$tag$ || 'US$z'", "--x", "1"], "--x: unknown option or second argument"),
        (["SELECT $model", "--modl", "toy"], "--modl: not an option of this query; use --model; did you mean"),
        (["SELECT $day"], "Values were not provided for the following prepared statement parameters: day"),
        ([], "name a question, or pass SQL or a .sql file; list the questions with `etfarm sql --list`"),
    ],
)
def test_a_mistake_is_one_sentence_and_leaves_no_file(
    command: Command, warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.csv").mkdir()
    assert message in command("sql", *words, "--warehouse", warehouse).refusal
    assert [path.name for path in tmp_path.iterdir()] == ["folder.csv"]


def test_all_rows_of_a_table_are_printed(show: Show) -> None:
    head, _, *lines, count = show("SELECT range AS n FROM range(25_000)").splitlines()
    assert (head.strip(), count) == ("n", "(25000 rows)")
    assert [int(line) for line in lines] == list(range(25_000))


@pytest.mark.thorough
@pytest.mark.long
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_big_result_does_not_stay_in_memory(warehouse: Path, tmp_path: Path, suffix: str) -> None:
    # given a result of 600 MB, and a small one to compare with
    peak_bytes = []
    for count in (1, 2_000_000):
        query = f"SELECT range, md5(range::VARCHAR) || repeat('x', 270) AS text FROM range({count})"
        process = start(query, "--warehouse", warehouse, "--output", f"out{suffix}", folder=tmp_path)
        _, status, used = os.wait4(process.pid, 0)
        assert status == 0
        peak_bytes.append(used.ru_maxrss * (1 if sys.platform == "darwin" else 1024))
    assert peak_bytes[1] - peak_bytes[0] < 300e6


@pytest.mark.parametrize(("query", "rows"), [(ENDLESS, 10_000), (ENDLESS_COUNT, 0)])
def test_ctrl_c_ends_a_query_at_once(warehouse: Path, tmp_path: Path, query: str, rows: int) -> None:
    # given a query that runs for hours, which prints rows or has opened its output file
    goal = ("--format", "csv") if rows else ("--output", "out.csv")
    process = start(query, *goal, "--warehouse", warehouse, folder=tmp_path)
    assert process.stdout
    if rows:
        assert [process.stdout.readline() for _ in range(rows + 1)][-1] == f"{rows - 1}\n"
    else:
        wait_for(lambda: list(tmp_path.glob(".part-*")), "the output file to be opened")
    pressed = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=ENOUGH_S)
    # then it ends at once, without a traceback, and leaves no file
    assert time.monotonic() - pressed < 10 * SCALE
    assert (process.returncode, err, [*tmp_path.iterdir()]) == (130, "", [])


def test_questions_are_listed_with_their_options(command: Command) -> None:
    listed = command("sql", "--list")
    assert [line.split()[0] for line in listed.lines] == sorted(questions())
    assert re.search(r"^slowest-operators +Which .*\(--model, --device, .*--sweep\)$", listed.out, re.MULTILINE)
