"""The Prefect server of one sweep: a damaged database is kept aside, and a server that cannot start is one sentence."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fixtures.command import run_python
from tests.fixtures.paths import ROOT
from tests.fixtures.prefect_server import copy_database, embedded_server_of
from tests.fixtures.waiting import ENOUGH_S, wait_for
from tests.lab import processes

pytestmark = pytest.mark.fault
# Starts the server of a sweep as `etfarm sweep` does, asks it for the runs it knows, and ends it.
PROGRAM = """
import signal, sys
from pathlib import Path
from rich.console import Console
from flows.server.settings import prepare_prefect
home = Path(sys.argv[1])
prepare_prefect(home)
from prefect.client.orchestration import get_client
from devices.errors import FarmError
from flows.server.embedded import embedded_server
from flows.progress import board
with board.display(Console(stderr=True)):
    try:
        with embedded_server(home), get_client(sync_client=True) as client:
            print(len(client.read_flow_runs()), "runs", flush=True)
            if len(sys.argv) > 2:
                signal.pause()
    except FarmError as error:
        sys.exit(f"etfarm: {error}")
"""
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}


def start(home: Path) -> "subprocess.CompletedProcess[str]":
    return run_python("-c", PROGRAM, home, env=ENVIRONMENT)


def overwritten_in_the_middle(database: Path) -> None:
    database.write_bytes(database.read_bytes()[:4096] + os.urandom(database.stat().st_size - 4096))


def of_an_unknown_version(database: Path) -> None:
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = 'ffffffffffff'")


@pytest.mark.long
@pytest.mark.thorough
@pytest.mark.parametrize("damage", [overwritten_in_the_middle, of_an_unknown_version])
def test_a_damaged_database_is_kept_aside_and_replaced(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    # given a database that is damaged
    database = tmp_path / "prefect.db"
    copy_database(tmp_path)
    damage(database)
    damaged = database.read_bytes()
    # when the server of a sweep is started
    started = start(tmp_path)
    # then it runs with a new database, the damaged one is kept, and one sentence names both
    assert (started.returncode, started.stdout) == (0, "0 runs\n"), started.stderr
    (kept,) = tmp_path.glob("prefect.db.damaged-*[0-9]Z")
    assert kept.read_bytes() == damaged
    assert f"{database}: damaged (" in started.stderr
    assert f"kept as {kept.name} and replaced by a new one; no result is lost" in started.stderr
    assert "Traceback" not in started.stderr


@pytest.mark.thorough
def test_a_server_that_cannot_start_is_one_sentence_with_its_cause(tmp_path: Path) -> None:
    (tmp_path / "prefect.db").mkdir()
    started = start(tmp_path)
    last = started.stderr.splitlines()[-1]
    assert (started.returncode, "Traceback" in started.stderr) == (1, False)
    assert last.startswith("etfarm: the Prefect server of this sweep did not start: ")
    assert "unable to open database file" in last
    assert str(tmp_path / "own-server.log") in last


@pytest.mark.thorough
@pytest.mark.parametrize("end", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_an_embedded_server_ends_with_its_command_however_that_ends(tmp_path: Path, end: signal.Signals) -> None:
    # given a command whose server runs
    words = [sys.executable, "-c", PROGRAM, str(tmp_path), "stay"]
    with subprocess.Popen(words, env=ENVIRONMENT, stdout=subprocess.PIPE, cwd=ROOT) as command:
        assert command.stdout is not None
        assert command.stdout.readline() == b"0 runs\n"
        server = embedded_server_of(command.pid)
        started = processes.start_of(server)
        # when the command ends
        command.send_signal(end)
    # then its server does, too, and the next one uses the same database
    assert start(tmp_path).stdout == "0 runs\n"
    wait_for(lambda: not processes.is_alive(server, started), "the server to end", longest_s=ENOUGH_S)
    assert not list(tmp_path.glob("prefect.db.damaged-*"))
