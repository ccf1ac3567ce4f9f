"""The commands of docs/operations.md that copy Prefect's database, as written, while its server uses it."""

import contextlib
import os
import sqlite3
import subprocess
from pathlib import Path

import pytest

from tests.deployments.test_backup import OPERATIONS
from tests.fixtures.needs import needs
from tests.fixtures.prefect_server import asked, running_prefect
from tests.fixtures.team_server import TeamServer
from tests.fixtures.waiting import ENOUGH_S
from tests.test_manual import blocks

(_COMMANDS,) = blocks("sh", OPERATIONS.partition("### Prefect's database\n")[2].partition("\n### ")[0])
SQLITE, POSTGRESQL = _COMMANDS.splitlines()


def run(command: str, **environment: str) -> str:
    """Run a command in a shell and return what it prints."""
    words, everything = ["sh", "-e", "-c", command], os.environ | environment
    ended = subprocess.run(words, env=everything, capture_output=True, text=True, check=False, timeout=ENOUGH_S)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.thorough
def test_a_copy_of_the_sqlite_database_in_use_is_complete_and_has_the_runs(tmp_path: Path) -> None:
    needs("sqlite3")
    copy = tmp_path / "copy.db"
    # given a server with a run, which goes on
    with running_prefect(lambda: tmp_path) as (api, _):
        flow = asked(f"{api}/flows/", {"name": "sweep"})["id"]
        asked(f"{api}/flow_runs/", {"flow_id": flow, "name": "nightly", "state": {"type": "COMPLETED"}})
        # when its database is copied
        run(
            SQLITE.replace("/var/lib/etfarm/prefect/prefect.db", str(tmp_path / "prefect.db")).replace(
                "/mnt/backup/prefect.db", str(copy)
            )
        )
    # then the copy is complete and has the run
    with contextlib.closing(sqlite3.connect(copy)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert database.execute("SELECT name FROM flow_run").fetchall() == [("nightly",)]


@pytest.mark.thorough
def test_a_dump_of_the_servers_postgresql_can_be_restored(team_server: TeamServer, tmp_path: Path) -> None:
    needs("pg_dump")
    dump = tmp_path / "prefect.dump"
    # given the server of a team, and the command without the container that it runs in
    _, _, command = POSTGRESQL.partition(" postgres ")
    assert command.startswith("pg_dump ")
    connection = {
        "PGHOST": "127.0.0.1",
        "PGPORT": str(team_server.database_port),
        "PGPASSWORD": team_server.auth.partition(":")[2],
    }
    # when its database is dumped
    run(command.replace("/mnt/backup/prefect.dump", str(dump)), **connection)
    # then the dump has the runs' table and its rows
    content = run(f"pg_restore --list {dump}")
    assert "TABLE public flow_run " in content
    assert "TABLE DATA public flow_run " in content
