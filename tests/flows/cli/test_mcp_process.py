"""The process of `etfarm mcp`: how it ends, and what it leaves."""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sql.warehouse import writing
from tests.fixtures.farm import ETFARM
from tests.fixtures.paths import ROOT
from tests.fixtures.waiting import ENOUGH_S, SCALE, wait_for

ENDLESS = "SELECT count(*) FROM range(10_000_000_000_000) WHERE hash(range) = 0"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[], Any]]:
    """Start the server of an empty warehouse, with temporary folders in `scratch`, and end what is left of it."""
    with writing(tmp_path / "warehouse.duckdb"):
        pass
    (tmp_path / "scratch").mkdir()
    command = [*ETFARM, "mcp", "--warehouse", str(tmp_path / "warehouse.duckdb")]
    started = list[Any]()

    def begin() -> Any:
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


def send(process: Any, method: str, params: object) -> None:
    process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n")
    process.stdin.flush()


def ask(process: Any, method: str, params: object) -> Any:
    send(process, method, params)
    return json.loads(process.stdout.readline())


def folders(tmp_path: Path) -> list[Path]:
    return sorted(tmp_path.glob("scratch/etfarm-scratch-*/*"))


def test_a_server_ends_at_once_and_leaves_nothing(start: Callable[[], Any], tmp_path: Path) -> None:
    # when a signal ends it in the middle of a query, then it leaves nothing
    server: Any = start()
    assert len(folders(tmp_path)) == 1
    assert ended_by(server, lambda: server.send_signal(signal.SIGTERM)) == 128 + signal.SIGTERM
    assert folders(tmp_path) == []
    # given a question with half of a surrogate pair
    server = start()
    answer = ask(server, "tools/call", {"name": "describe", "arguments": {"view": "a\ud800\U0001f600"}})
    # then it is answered, and the character beside the half is complete
    assert "unknown view `a?\U0001f600`" in json.loads(answer["result"]["content"][0]["text"])["error"]["foreign_text"]
    # and when the agent ends, so does the server
    assert ended_by(server, server.stdin.close) == 0
    assert folders(tmp_path) == []


def ended_by(server: Any, end: Callable[[], object]) -> int:
    """End a server during a query that runs for hours; return its exit code."""
    send(server, "tools/call", {"name": "sql", "arguments": {"query": ENDLESS}})
    children = ("ps", "-ww", "-A", "-o", "ppid=,args=")
    query = re.compile(rf"^ *{server.pid} .*sql/cage/child.py", re.MULTILINE)
    wait_for(lambda: query.search(subprocess.check_output(children, text=True)), "the query's process")
    ended = time.monotonic()
    end()
    server.stdin = None
    _, errors = server.communicate(timeout=ENOUGH_S)
    assert (errors, time.monotonic() - ended < 20 * SCALE) == (b"", True)
    return int(server.returncode)
