"""The Prefect server of one sweep: a damaged database is kept aside, and a server that cannot start is one sentence."""

import contextlib
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.server.embedded import end_orphans
from tests.fixtures.command import run_python
from tests.fixtures.prefect_server import copy_database
from tests.fixtures.waiting import ENOUGH_S

# Starts the server of a sweep as `etfarm sweep` does, asks it for the runs it knows, and ends it.
PROGRAM = """
import sys
from pathlib import Path
from rich.console import Console
from flows.server.settings import prepare_prefect
home = Path(sys.argv[1])
prepare_prefect(home)
from prefect.client.orchestration import get_client
from devices.errors import FarmError
from flows.server.embedded import start_server, stop_server
from flows.progress import board
with board.shown(Console(stderr=True)):
    try:
        start_server(home)
    except FarmError as error:
        sys.exit(f"etfarm: {error}")
    with get_client(sync_client=True) as client:
        print(len(client.read_flow_runs()), "runs")
    stop_server()
"""


# The same with a server that accepts connections and never answers.
SILENT = """
import flows.server.embedded, os, sys
code = "import socket, sys, time; s = socket.create_server(('127.0.0.1', int(sys.argv[1]))); time.sleep(600)"
os.getloadavg = lambda: (3.0 * os.cpu_count(), 0, 0)
flows.server.embedded.command = lambda host, port, level: [sys.executable, "-c", code, str(port)]
"""


def start(home: Path) -> "subprocess.CompletedProcess[str]":
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    return run_python("-c", PROGRAM, home, env=environment)


def of_an_unknown_version(database: Path) -> None:
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = 'ffffffffffff'")


@pytest.mark.long
@pytest.mark.thorough
@pytest.mark.parametrize(
    "damage",
    [
        lambda file: file.write_bytes(b"this is not a database at all\n" * 1000),
        lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2 + 100]),
        lambda file: file.write_bytes(file.read_bytes()[:4096] + os.urandom(file.stat().st_size - 4096)),
        of_an_unknown_version,
    ],
    ids=["garbage", "truncated", "overwritten in the middle", "of an unknown version"],
)
@pytest.mark.fault(
    stage="start",
    done="the Prefect database of the var folder overwritten, cut or of an unknown version",
    holds="it is kept under another name, a new one is used, one sentence names both",
)
def test_a_damaged_database_is_kept_aside_and_replaced(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    # given a database that is damaged
    database = tmp_path / "prefect.db"
    copy_database(tmp_path)
    damage(database)
    damaged = database.read_bytes()
    # when the server of a sweep is started
    started = start(tmp_path)
    # then it runs with a new database, the damaged one is kept, and one sentence names both
    assert started.returncode == 0, started.stderr
    assert started.stdout == "0 runs\n"
    (kept,) = tmp_path.glob("prefect.db.damaged-*[0-9]Z")
    assert kept.read_bytes() == damaged
    assert f"{database}: damaged (" in started.stderr
    assert f"kept as {kept.name} and replaced by a new one; no result is lost" in started.stderr
    assert "Traceback" not in started.stderr


@pytest.mark.thorough
@pytest.mark.fault(
    stage="start",
    done="a folder in the place of Prefect's database",
    holds="one sentence with the cause and the log; nothing is moved",
)
def test_a_server_that_cannot_start_is_one_sentence_with_its_cause(tmp_path: Path) -> None:
    (tmp_path / "prefect.db").mkdir()
    started = start(tmp_path)
    assert started.returncode == 1
    last = started.stderr.splitlines()[-1]
    assert last.startswith("etfarm: the Prefect server of this sweep did not start: ")
    assert "unable to open database file" in last
    assert str(tmp_path / "own-server.log") in last
    assert "Traceback" not in started.stderr
    assert (tmp_path / "prefect.db").is_dir()


@pytest.mark.thorough
def test_a_server_that_never_answers_is_given_up_after_the_time_that_the_sentence_states(tmp_path: Path) -> None:
    # given a second for the start, a machine with three processes a core, and a server that never answers
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    environment["PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS"] = "1"
    program = PROGRAM.replace("with board.shown", f"{SILENT}\nwith board.shown")
    ended = run_python("-c", program, tmp_path, env=environment)
    # then it waits 3 seconds, not once more for each request, and states so
    assert ended.returncode == 1
    waited = r"did not start: http://\S+/api/health gave no answer for [34] s \(load \d+\.0 on \d+ cores\); its log is"
    assert re.search(waited, ended.stderr), ended.stderr


@pytest.mark.fault(
    stage="start",
    done="sweep killed (SIGKILL); its server still runs",
    holds="the next start ends that server and no other process",
)
def test_the_server_of_a_killed_sweep_is_ended_by_the_next_start_and_no_other_process_is(tmp_path: Path) -> None:
    # given what a killed sweep's server looks like, a live sweep's, and a foreign process with a noted id
    words = [sys.executable, "-c", "import signal; signal.pause()", "prefect.server.api.server:create_app"]
    orphan, ours, foreign = [subprocess.Popen(words[:count]) for count in (4, 4, 3)]
    notes = tmp_path / "own-servers"
    notes.mkdir()
    for farm, server in (("999999999", orphan), (str(os.getpid()), ours), ("999999998", foreign)):
        (notes / farm).write_text(str(server.pid))
    try:
        # when the next sweep starts
        end_orphans(notes)
        # then only the orphan is ended
        assert orphan.wait(ENOUGH_S) == -signal.SIGTERM
        assert (ours.poll(), foreign.poll()) == (None, None)
        assert [note.name for note in notes.iterdir()] == [str(os.getpid())]
    finally:
        for process in (orphan, ours, foreign):
            process.kill()
            process.wait()


def test_a_server_of_a_killed_sweep_that_does_not_stop_is_gone_before_the_next_one_starts(tmp_path: Path) -> None:
    # given the server of a killed sweep, which holds its database and does not end on SIGTERM
    ignoring = "import signal; signal.signal(15, signal.SIG_IGN); print(flush=True); signal.pause()"
    words = [sys.executable, "-c", ignoring, "prefect.server.api.server:create_app"]
    server = subprocess.Popen(words, stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        server.stdout.readline()
        (tmp_path / "999999999").write_text(str(server.pid), encoding="utf-8")
        # when the next sweep ends such servers
        end_orphans(tmp_path)
        # then it has ended
        assert server.poll() == -signal.SIGKILL
    finally:
        server.kill()
        server.communicate()
    assert list(tmp_path.iterdir()) == []
