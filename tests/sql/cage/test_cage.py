"""A query of a person or an agent: it reads the warehouse alone, and whatever it does is one sentence at the worst."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

import duckdb
import pytest

from sql.cage.cage import Cage
from sql.cage.connection import open_readable
from sql.cage.limits import Limits, QueryError
from sql.cage.warm import WarmCage
from sql.errors import WarehouseError
from sql.readable import ReadableFile
from sql.warehouse import writing
from tests.fixtures.paths import ROOT
from tests.fixtures.waiting import ENOUGH_S, wait_for

CORPUS = Path(__file__).with_name("corpus.txt")


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> ReadableFile:
    path = tmp_path_factory.mktemp("queried") / "warehouse.duckdb"
    with writing(path) as connection:
        connection.execute("INSERT INTO sweep (sweep_id, name, night) VALUES ('kept', 'smoke', NULL)")
    return ReadableFile(path, is_ours=False, named=path)


@pytest.fixture(scope="module")
def warm() -> Iterator[WarmCage]:
    warm = WarmCage()
    yield warm
    warm.end()


def rows(warm: WarmCage, warehouse: ReadableFile, text: str, **limits: Any) -> list[tuple[Any, ...]]:
    with warm.cage(warehouse, Limits(**limits)) as cage:
        return cage.ask(text).all_rows()


def corpus() -> dict[str, list[str]]:
    """The texts of corpus.txt by how they end."""
    texts: dict[str, list[str]] = {}
    for line in CORPUS.read_text(encoding="utf-8").splitlines():
        ending, _, text = line.partition("\t")
        texts.setdefault(ending, []).append(text)
    return texts


def test_hundreds_of_texts_end_as_they_should(warm: WarmCage, warehouse: ReadableFile) -> None:
    # given a file beside the warehouse, and texts that read, write or crash
    secret = warehouse.path.with_name("secret.csv")
    secret.write_text("password\nhunter2\n", encoding="utf-8")
    beside = sorted(warehouse.path.parent.iterdir())
    texts = corpus()
    assert sum(map(len, texts.values())) >= 500
    for ending, known in texts.items():
        for text in known:
            filled = text.replace("{secret}", str(secret)).replace("{folder}", str(secret.parent))
            # when one is run
            try:
                answer = rows(warm, warehouse, filled, max_s=30)
            except QueryError as error:
                said = str(error)
                assert "\n" not in said
                assert len(said) <= 2_000
            else:
                said = "answered"
                assert "hunter2" not in str(answer)
            # then it ended as its line states
            expected = {"refused": "the query was refused: ", "failed": "the query failed: ", "answered": "answered"}
            assert ending == "survived" or said.startswith(expected[ending]), (ending, text, said)
    # and nothing else happened
    assert sorted(warehouse.path.parent.iterdir()) == beside
    assert rows(warm, warehouse, "SELECT sweep_id FROM sweep") == [("kept",)]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines processes")
def test_a_program_in_the_cage_reaches_neither_files_nor_processes_nor_a_network(
    warehouse: ReadableFile, tmp_path: Path
) -> None:
    # given a program that confined itself as the cage does, and then does what it likes
    secret = tmp_path / "secret"
    secret.write_text("hunter2", encoding="utf-8")
    attempts = {
        "read": "open(secret).read()",
        "write": "open(secret, 'w')",
        "make": "os.mkdir(secret + '-made')",
        "remove": "os.unlink(secret)",
        "attributes": "os.chmod(secret, 0o777)",
        "program": "os.execv('/bin/true', ['true'])",
        "child": "os.fork()",
        "signal": "os.kill(os.getppid(), 0)",
        "signal by a file": "fcntl.fcntl(0, fcntl.F_SETOWN, os.getppid())",
        "priority of its owner": "os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)",
        "processors of its owner": "os.sched_setaffinity(os.getppid(), os.sched_getaffinity(0))",
        "memory that no limit counts": "mmap.mmap(-1, 4096)",
        "attributes by ioctl": "fcntl.ioctl(0, termios.FIONREAD, bytes(4))",
        "rights of root": "resource.setrlimit(resource.RLIMIT_CORE, (1, 1))",
        "network": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
        "environment of its owner": "open(f'/proc/{os.getppid()}/environ').read()",
    }
    program = (
        "import fcntl, mmap, os, resource, socket, sys, termios, threading\nfrom pathlib import Path\n"
        f"sys.path.insert(0, {str(ROOT)!r})\nfrom sql.cage.confine import confine\n"
        f"secret = {str(secret)!r}\nconfine([Path({str(warehouse.path)!r})], 1 << 30)\n"
        f"open({str(warehouse.path)!r}, 'rb').read()\nthreading.Thread(target=print).start()\n"
        "for name, attempt in " + repr(attempts) + ".items():\n"
        "    try:\n        exec(attempt)\n    except (OSError, ValueError):\n        continue\n"
        "    print('reached:', name)\n"
    )
    # when it runs
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],  # of the fork, in the newest versions of Python
        input="",
        capture_output=True,
        text=True,
        timeout=ENOUGH_S,
    )
    # then it read its file and started a thread, and reached nothing else
    assert (ended.returncode, ended.stdout.strip(), ended.stderr) == (0, "", "")
    assert secret.read_text(encoding="utf-8") == "hunter2"


def _frame(kind: str, body: bytes) -> bytes:
    return kind.encode() + len(body).to_bytes(4, "big") + body


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        *(("c", body) for body in (b"5", b"x", b"[" * 100_000, b'["\xff"]', b'["\\ud800"]')),
        *(("r", body) for body in (b"5", b"[[1,2]]", b"[" * 100_000, b'[["\\uDfff"]]', b"[[" + b"9" * 5_000 + b"]]")),
        ("r", rb'[[{"\u0000type":"UUID","value":5}]]'),
        ("e", b"[" * 100_000),
        ("a", b"\xff\xff\xff\xff\x10\0\0\0" + b"\x7f" * 64),
    ],
)
def test_an_answer_that_is_none_is_one_sentence(
    warehouse: ReadableFile, tmp_path: Path, kind: str, body: bytes
) -> None:
    # given a child that sends what a program in the cage likes
    sent = tmp_path / "sent"
    columns = b"" if kind == "c" else _frame("c", b'["a"]')
    sent.write_bytes(_frame("k", b"") + columns + _frame(kind, body) + _frame("z", b""))
    form: Literal["rows", "arrow"] = "arrow" if kind == "a" else "rows"
    with Cage(warehouse) as cage:
        cage.close()
        child = ["sh", "-c", 'cat "$0" -', str(sent)]
        cage._process = subprocess.Popen(child, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

        def read() -> None:
            answer = cage.ask("SELECT 1", form=form)
            list(answer.blocks() if form == "rows" else answer.batches()[1])

        # when it is read, then its owner has one sentence
        with pytest.raises(QueryError, match=r"did not send an answer|sent no reason"):
            read()


def test_values_arrive_as_duckdb_returns_them(warm: WarmCage, warehouse: ReadableFile) -> None:
    text = (
        "SELECT 1 AS a, 1.5, 'nan'::DOUBLE, 1.50::DECIMAL(4, 2), TIMESTAMP '2026-11-01 02:03:04.5', DATE '2026-11-01', "
        "TIMESTAMPTZ '2026-11-01 02:03:04+00', INTERVAL 3 DAY, 'x\\x00'::BLOB, '\u202e\u00e4', NULL, [1, NULL], "
        "{'b': DATE '2026-11-01'}, MAP {1: [TRUE]}, UUID '00000000-0000-0000-0000-000000000001', 170141183460469231731"
    )
    with duckdb.connect() as connection:
        expected = connection.execute(text).fetchall()
    [row] = rows(warm, warehouse, text)
    assert row[6] == expected[0][6]  # the same time, with another class of time zone
    assert repr((*row[:6], *row[7:])) == repr((*expected[0][:6], *expected[0][7:]))
    parameters = {"a": date(2026, 11, 1), "b": datetime(2026, 11, 1), "c": timedelta(1), "d": Decimal("1.5")}
    parameters |= {"e": UUID(int=1), "f": ["x", None], "g": b"\xff"}
    with warm.cage(warehouse) as cage:
        assert cage.ask("SELECT $a, $b, $c, $d, $e, $f, $g", parameters).all_rows() == [tuple(parameters.values())]


def test_a_query_beyond_its_limits_or_that_ends_its_process_is_one_sentence(
    warm: WarmCage, warehouse: ReadableFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(QueryError, match=r"more than 1 MiB"):
        rows(warm, warehouse, "SELECT repeat('x', 1000) FROM range(10_000)", max_bytes=1 << 20)
    with pytest.raises(QueryError, match=r"took longer than 0.2 s"):
        rows(warm, warehouse, "SELECT count(*) FROM range(10_000_000_000_000) WHERE hash(range) = 0", max_s=0.2)
    with warm.cage(warehouse) as cage:
        cage.ask("SELECT 1").all_rows()
        os.kill(cage._process.pid, 9)
        with pytest.raises(QueryError, match=r"ended the process that ran it \(SIGKILL: possibly out of memory\)"):
            cage.ask("SELECT 1").all_rows()
    # and an answer that is kept whole has a limit of its own
    monkeypatch.setattr("sql.cage.limits.MAX_KEPT_BYTES", 1 << 20)
    with pytest.raises(QueryError, match="more than 1 MiB"):
        rows(warm, warehouse, "FROM range(1_000_000_000_000)")


def test_a_query_that_needs_too_much_memory_is_refused_and_does_not_spill(warehouse: ReadableFile) -> None:
    beside = sorted(warehouse.path.parent.iterdir())
    text = "SELECT count(*) FROM (SELECT DISTINCT repeat('x', 40) || range FROM range(20_000_000))"
    with Cage(warehouse, Limits(memory_bytes=64 << 20)) as cage, pytest.raises(QueryError, match="more memory than"):
        cage.ask(text).all_rows()
    # then nothing was written beside the warehouse
    assert sorted(warehouse.path.parent.iterdir()) == beside


def test_the_end_of_a_program_ends_its_queries(warehouse: ReadableFile) -> None:
    # given a query that runs for hours
    warm, raised = WarmCage(), list[Exception]()
    with warm.cage(warehouse) as cage:

        def ask() -> None:
            try:
                cage.ask("SELECT count(*) FROM range(10_000_000_000_000) WHERE hash(range) = 0").all_rows()
            except WarehouseError as error:
                raised.append(error)

        asking = threading.Thread(target=ask)
        asking.start()
        wait_for(lambda: not cage.is_idle, "the query to start")
        # when its program ends, then so does the query, and there is no other
        warm.end()
        asking.join(ENOUGH_S)
        assert len(raised) == 1
    with pytest.raises(WarehouseError, match="has ended"), warm.cage(warehouse):
        pass


def test_a_file_that_was_handed_over_is_read_in_a_cage_with_the_errors_of_duckdb(warehouse: ReadableFile) -> None:
    with open_readable(warehouse) as reading:
        answer = reading.execute("SELECT sweep_id FROM sweep WHERE name = $name", {"name": "smoke"})
        assert [name for name, *_ in answer.description] == ["sweep_id"]
        assert answer.fetchone() == ("kept",)
        assert reading.execute("FROM range(3)").to_arrow_table().to_pydict() == {"range": [0, 1, 2]}
        with pytest.raises(duckdb.CatalogException, match="nothing does not exist"):
            reading.execute("FROM nothing").fetchall()


def test_a_file_that_is_no_warehouse_is_named_as_the_user_named_it(tmp_path: Path) -> None:
    copy, named = tmp_path / "copy.duckdb", tmp_path / "mine.duckdb"
    copy.write_bytes(b"hello")
    with Cage(ReadableFile(copy, is_ours=False, named=named)) as cage, pytest.raises(QueryError) as caught:
        cage.ask("SELECT 1")
    assert str(caught.value) == f"{named} is not a warehouse: it is not a DuckDB file; name another file"
