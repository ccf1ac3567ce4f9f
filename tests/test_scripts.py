"""Shell scripts: shellcheck has nothing to add, and all of them are used."""

import re
import subprocess
import sys
from pathlib import Path

from tests.fixtures.paths import ROOT

SCRIPTS = sorted((ROOT / "devices/ondevice/scripts").glob("*.sh"))
ROOMS = ("deployments/ci", "tasks/runner", "tests/lab")
OTHERS = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.sh"))


def with_needed(script: Path) -> str:
    """The script after the script that it needs, comments included: they hold shellcheck's directives."""
    text = script.read_text(encoding="utf-8")
    needed = re.search(r"^# needs: (\w+)$", text, re.MULTILINE)
    return (with_needed(script.with_stem(needed[1])) if needed else "") + text


def test_shellcheck_has_nothing_to_add(tmp_path: Path) -> None:
    for script in (*SCRIPTS, *OTHERS):
        (tmp_path / script.relative_to(ROOT).as_posix().replace("/", " ")).write_text(with_needed(script), "utf-8")
    words = [f"{Path(sys.executable).parent}/shellcheck", "--shell=sh", "--format=gcc", *map(str, tmp_path.iterdir())]
    assert subprocess.run(words, capture_output=True, text=True, check=False).stdout == ""


def test_every_script_is_used() -> None:
    python = "".join(
        path.read_text(encoding="utf-8") for room in ("devices", "tasks") for path in (ROOT / room).rglob("*.py")
    )
    names = {script.stem for script in SCRIPTS}
    needed = "".join(script.read_text(encoding="utf-8") for script in SCRIPTS)
    unused = {name for name in names if f'"{name}"' not in python and f"# needs: {name}\n" not in needed}
    assert unused == set()
