"""The backup commands of docs/operations.md, as written: what they copy is the same farm."""

import contextlib
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.fixtures.command import Command, DataFolder
from tests.fixtures.needs import needs
from tests.fixtures.paths import ROOT
from tests.fixtures.prefect_server import asked, running_prefect
from tests.fixtures.waiting import ENOUGH_S
from tests.test_manual import blocks

OPERATIONS = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
_RESTORES = "# to restore"
_OLD = {"sweep_id": "smoke-2026-09-01", "name": "smoke", "night": "2026-09-01"}


class Backup:
    """The commands of one section, in the data folder of a test."""

    def __init__(self, program: str, folder: Path, data_dir: Path) -> None:
        needs(program)
        (text,) = blocks("sh", OPERATIONS.partition(f"### With {program}\n")[2].partition("\n### ")[0])
        (folder / "restic.password").write_text("secret", encoding="utf-8")
        for documented, here in (
            ("/etc/etfarm/restic.password", folder / "restic.password"),
            ("/mnt/backup/etfarm", folder / "backup"),
            ("/var/lib/etfarm", data_dir),
        ):
            text = text.replace(documented, str(here))
        self._lines = text.splitlines()
        self._environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
            # What `rclone config` asks for: the remote `backup`.
            "RCLONE_CONFIG_BACKUP_TYPE": "alias",
            "RCLONE_CONFIG_BACKUP_REMOTE": str(folder / "backup"),
        }

    def every_day(self, *, is_first: bool = False) -> None:
        self._run(line for line in self._lines if _RESTORES not in line and (is_first or "# once" not in line))

    def restore(self) -> None:
        self._run(line for line in self._lines if _RESTORES in line or line.startswith("export "))

    def _run(self, lines: Iterable[str]) -> None:
        words = ["sh", "-e", "-c", "\n".join(lines)]
        ended = subprocess.run(
            words, env=self._environment, capture_output=True, text=True, check=False, timeout=8 * ENOUGH_S
        )
        assert ended.returncode == 0, ended.stderr


@pytest.mark.thorough
@pytest.mark.parametrize("program", ["restic", "rclone"])
def test_what_is_restored_is_the_same_farm(program: str, data: DataFolder, command: Command, tmp_path: Path) -> None:
    data_dir = data.workspace.root
    backup = Backup(program, tmp_path, data_dir)
    # given a farm with an old sweep, a decision, a device's health and files that are not to be kept
    data.session([1_000_000] * 3, sweep=_OLD)
    unfinished = data.session([2_000_000] * 3).parent / ".part-unfinished"
    unfinished.write_bytes(b"half")
    (data.bundles / ".shared").mkdir()
    (data.bundles / ".shared/export").write_bytes(b"for a lab")
    assert command("warehouse", "load", "--data-dir", data_dir).code == 0
    assert command("decisions", "note", "known", "--data-dir", data_dir).code == 0
    (data_dir / "devices").mkdir(exist_ok=True)
    (data_dir / "devices/health.json").write_text("{}", encoding="utf-8")
    figures = data.ask("FROM session_latency ORDER BY session_id")
    # when it is backed up, packed and backed up again, lost, and restored
    backup.every_day(is_first=True)
    assert "packed" in command("warehouse", "prune", "--yes", "--data-dir", data_dir).out
    backup.every_day()
    shutil.rmtree(data_dir)
    backup.restore()
    # then the warehouse that is built from it has every session once, and each file has its hash
    assert command("warehouse", "rebuild", "--data-dir", data_dir).code == 0
    assert command("warehouse", "check", "--data-dir", data_dir).out.startswith("no finding: ")
    assert data.ask("FROM session_latency ORDER BY session_id") == figures
    assert data.ask("SELECT reason FROM decision_overview") == [("known",)]
    assert (data_dir / "devices/health.json").read_text(encoding="utf-8") == "{}"
    assert [path for path in data_dir.rglob("*") if path.name in (".part-unfinished", ".shared")] == []


@pytest.mark.thorough
def test_a_copy_of_prefects_database_in_use_is_complete_and_has_the_runs(tmp_path: Path) -> None:
    needs("sqlite3")
    # given a server with a run, which goes on, and the command of its SQLite
    (commands,) = blocks("sh", OPERATIONS.partition("### Prefect's database\n")[2].partition("\n### ")[0])
    here = {"/var/lib/etfarm/prefect/": f"{tmp_path}/", "/mnt/backup/prefect.db": f"{tmp_path}/copy.db"}
    command = re.sub("|".join(here), lambda match: here[match[0]], commands.splitlines()[0])
    with running_prefect(lambda: tmp_path) as (api, _):
        flow = asked(f"{api}/flows/", {"name": "sweep"})["id"]
        asked(f"{api}/flow_runs/", {"flow_id": flow, "name": "nightly", "state": {"type": "COMPLETED"}})
        # when its database is copied
        subprocess.run(["sh", "-e", "-c", command], check=True, timeout=ENOUGH_S)
    # then the copy is complete and has the run
    with contextlib.closing(sqlite3.connect(tmp_path / "copy.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert database.execute("SELECT name FROM flow_run").fetchall() == [("nightly",)]
