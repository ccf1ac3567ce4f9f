"""`etfarm init`: what it writes runs as it is, and what is there stays."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from devices.settings import settings
from flows.setup.starter import FILES
from tests.fixtures.command import Command


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("ETFARM_DATA_DIR", "ETFARM_INVENTORY", "PREFECT_API_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_files_are_valid_also_with_what_their_comments_offer(command: Command, folder: Path) -> None:
    assert command("init").code == 0
    for name in ("etfarm.yaml", "inventory.yaml"):
        lines = (folder / name).read_text(encoding="utf-8").splitlines()
        offered = [re.sub(r"^( *)# (?=- \{|\w+: )", r"\1", line) for line in lines]
        assert offered != lines
        (folder / name).write_text("\n".join(offered), encoding="utf-8")
    (folder / "etfarm.yaml").chmod(0o600)
    assert command("validate", "sweep.yaml", "inventory.yaml", "etfarm.yaml").lines == [
        "sweep.yaml: sweep first, two exports",
        "inventory.yaml: inventory, three devices",
        "etfarm.yaml: settings: data_dir, inventory, log, notify",
    ]
    assert (settings().inventory, settings().data_dir) == (Path("inventory.yaml"), Path("var"))


def test_nothing_is_overwritten_and_then_nothing_is_written(command: Command, folder: Path) -> None:
    (folder / "farm").mkdir()
    (folder / "farm/model.py").write_text("mine", encoding="utf-8")
    assert command("init", "farm").refusal.startswith("etfarm: farm/model.py: not overwritten; ")
    assert [path.name for path in (folder / "farm").iterdir()] == ["model.py"]


@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_the_commands_that_it_names_end_well_one_after_the_other(command: Command, folder: Path) -> None:
    named = [line.split("#")[0] for line in command("init").lines if line.startswith("  etfarm ")]
    assert len(named) > 3
    for line in named:
        more = ["--publish", "pages"] if line.split()[1:] == ["site"] else []  # otherwise it serves until Ctrl-C
        words = [sys.executable, "-m", "flows.cli.main", *line.split()[1:], *more]
        ended = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, (line, ended.stderr, ended.stdout)
    assert set(FILES) < {path.name for path in folder.iterdir()}
