"""What sweeps ask of a Prefect server on SQLite, and what they leave there; memory and files of server and worker.

Run: python -m tests.benchmarks.engine [--devices 10] [--sessions 10] [--seconds 0.2] [--sweeps 1]

Simulated devices are swept by one process after the other, for a night each, at one server. A line tells for the sweeps
so far: requests to the server and what its database gained for each session, and the server's memory, descriptors and
database.
"""

import argparse
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path

from flows.server.settings import prepare_prefect
from tests.fixtures.prefect_server import answers, copy_database
from tests.fixtures.simulated import SimulatedFarm
from tests.fixtures.waiting import wait_for
from tests.lab.loopback import free_port

_APP = "prefect.server.api.server:create_app"
_TABLES = ("flow_run", "flow_run_state", "task_run", "task_run_state", "log", "artifact", "events", "event_resources")
_SETTLED_S = 12.0
_SHOWN = (1, 10, 30, 60)


def main() -> None:
    """Sweep, and print a line after the first sweep and after 10, 30 and 60."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--devices", type=int, default=10)
    parser.add_argument("--sessions", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--sweeps", type=int, default=1)
    asked = parser.parse_args()
    shared = Path(os.environ.get("ETFARM_DATA_DIR", "var")).absolute()
    with tempfile.TemporaryDirectory(prefix="etfarm-engine-") as folder:
        farm = SimulatedFarm(Path(folder) / "farm", asked.devices, asked.sessions, asked.seconds)
        command, server = farm.prepare(shared), _Server(Path(folder) / "server")
        try:
            before = server.rows()
            sessions = 0
            for number in range(1, asked.sweeps + 1):
                night = date.today() - timedelta(days=asked.sweeps - number)
                _sweep([*command, "--night", f"{night}"], server.api, farm.folder / "log")
                sessions += asked.devices * (asked.sessions + 1)
                if number in {*_SHOWN, asked.sweeps}:
                    server.print_line(number, sessions, before)
        finally:
            server.end()


def _sweep(command: list[str], api: str, log: Path) -> None:
    """Run a sweep at the server; ends this program with its output if it fails."""
    with log.open("wb") as output:
        ended = subprocess.run(command, env=os.environ | {"PREFECT_API_URL": api}, stdout=output, stderr=output)
    if ended.returncode:
        raise SystemExit(log.read_text(encoding="utf-8")[-2000:])


class _Server:
    """A Prefect server with the farm's settings, which logs each request."""

    def __init__(self, home: Path) -> None:
        prepare_prefect(home)  # also sets this process's PREFECT_HOME
        self._home, port = home, free_port()
        self.api = f"http://127.0.0.1:{port}/api"
        copy_database(home)
        command = [sys.executable, "-m", "uvicorn", "--factory", _APP, "--port", str(port), "--lifespan", "on"]
        logging = {"PREFECT_SERVER_LOGGING_LEVEL": "INFO", "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "INFO"}
        environment = os.environ | {"PREFECT_HOME": str(home), **logging}
        with (home / "requests").open("wb") as log:
            self._process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        wait_for(lambda: answers(f"{self.api}/health"), "the server to answer")

    def end(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait()

    def rows(self) -> dict[str, int]:
        with closing(sqlite3.connect(f"file:{self._home / 'prefect.db'}?mode=ro", uri=True)) as database:
            return {table: database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in _TABLES}

    def _settled(self) -> dict[str, int]:
        """The rows of each table when the server has written all of them, which it does some seconds later."""
        rows: dict[str, int] = {}
        newest = self.rows()
        while rows != newest:
            time.sleep(_SETTLED_S)
            rows, newest = newest, self.rows()
        return newest

    def print_line(self, sweeps: int, sessions: int, before: dict[str, int]) -> None:
        log = (self._home / "requests").read_text(encoding="utf-8")
        requests = len(re.findall(r'"(?:GET|POST|PATCH|PUT|DELETE) /api/(?!health|admin/version)', log))
        gained = {table: count - before[table] for table, count in self._settled().items()}
        database_bytes = sum(path.stat().st_size for path in self._home.glob("prefect.db*"))
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        memory_mb = int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1000
        descriptors = len(list(Path(f"/proc/{self._process.pid}/fd").iterdir()))
        print(
            f"{sweeps} sweeps, {sessions} sessions: {requests / sessions:.2f} requests and "
            f"{sum(gained.values()) / sessions:.1f} rows a session; "
            f"server {memory_mb:.0f} MB, {descriptors} descriptors, database {database_bytes / 1e6:.1f} MB; "
            f"{', '.join(f'{count} {table}' for table, count in gained.items() if count)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
