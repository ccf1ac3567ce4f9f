"""The process of `etfarm mcp`: how it ends, and what it leaves."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sql.warehouse import writing
from tests.fixtures.paths import ROOT
from tests.fixtures.waiting import ENOUGH_S, SCALE, wait_for

ENDLESS = "SELECT count(*) FROM range(10_000_000_000_000) WHERE hash(range) = 0"
_Server = Any  # a process with three pipes


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[], _Server]]:
    """Start the server of an empty warehouse, with temporary folders in `scratch`, and end what is left of it."""
    with writing(tmp_path / "warehouse.duckdb"):
        pass
    (tmp_path / "scratch").mkdir()
    command = [sys.executable, "-m", "flows.cli.main", "mcp", "--warehouse", str(tmp_path / "warehouse.duckdb")]
    started = list[Any]()

    def begin() -> _Server:
        environment = {**os.environ, "TMPDIR": str(tmp_path / "scratch")}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        started.append(subprocess.Popen(command, cwd=ROOT, env=environment, **pipes))  # type: ignore[call-overload]
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        assert ask(started[-1], "initialize", hello)["result"]
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def send(process: Any, method: str, params: object, number: int = 1) -> None:
    process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode())
    process.stdin.write(b"\n")
    process.stdin.flush()


def ask(process: Any, method: str, params: object) -> Any:
    send(process, method, params)
    return json.loads(process.stdout.readline())


def folders(tmp_path: Path) -> list[Path]:
    return sorted(tmp_path.glob("scratch/etfarm-scratch-*/*"))


def test_signals_end_it_at_once_and_the_next_start_removes_what_a_killed_one_left(
    start: Callable[[], _Server], tmp_path: Path
) -> None:
    # given a server that was killed, whose folder stays
    killed: Any = start()
    [left] = folders(tmp_path)
    killed.kill()
    killed.wait(ENOUGH_S)
    for number in (signal.SIGTERM, signal.SIGINT):
        # when another one starts, that folder is removed
        server: Any = start()
        assert left not in folders(tmp_path)
        assert len(folders(tmp_path)) == 1
        # and a signal ends it, in the middle of a query, without a trace
        send(server, "tools/call", {"name": "sql", "arguments": {"query": ENDLESS}})
        sent = time.monotonic()
        server.send_signal(number)
        _, errors = server.communicate(timeout=ENOUGH_S)
        assert (server.returncode, errors) == (128 + number, b"")
        assert time.monotonic() - sent < 10 * SCALE
        assert folders(tmp_path) == []


def test_it_answers_halves_of_characters_and_ends_its_queries_when_its_input_closes(
    start: Callable[[], _Server], tmp_path: Path
) -> None:
    # given a question with half of a surrogate pair
    server: Any = start()
    answer = ask(server, "tools/call", {"name": "describe", "arguments": {"view": "a\ud800\U0001f600"}})
    # then it is answered, and the character beside the half is complete
    assert "unknown view `a?\U0001f600`" in json.loads(answer["result"]["content"][0]["text"])["error"]["foreign_text"]
    # given a query that runs for hours
    send(server, "tools/call", {"name": "sql", "arguments": {"query": ENDLESS}})
    wait_for(lambda: "sql/cage/child.py" in _children(server.pid), "the query's process")
    # when the agent ends
    closed = time.monotonic()
    server.stdin.close()
    server.stdin = None
    _, errors = server.communicate(timeout=ENOUGH_S)
    # then so does the server, at once
    assert (server.returncode, errors) == (0, b"")
    assert time.monotonic() - closed < 20 * SCALE
    assert folders(tmp_path) == []


def _children(pid: int) -> str:
    """The commands of the child processes of a process."""
    listed = subprocess.run(["ps", "-ww", "-A", "-o", "ppid=,args="], capture_output=True, text=True, check=True)
    return "".join(line for line in listed.stdout.splitlines() if line.split()[0] == str(pid))
