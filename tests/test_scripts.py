"""Shell scripts: shellcheck has nothing to add, and all of them are used."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from devices.shell import script_text
from tests.fixtures.paths import ROOT

SCRIPTS = sorted((ROOT / "devices/ondevice/scripts").glob("*.sh"))
ROOMS = ("deployments/ci", "tasks/runner", "tests/lab")
OTHERS = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.sh"))


def with_needed(script: Path) -> str:
    """The script after the script that it needs, comments included: they hold shellcheck's directives."""
    text = script.read_text(encoding="utf-8")
    needed = re.search(r"^# needs: (\w+)$", text, re.MULTILINE)
    return (with_needed(script.with_stem(needed[1])) if needed else "") + text


@pytest.mark.parametrize("script", [*SCRIPTS, *OTHERS], ids=lambda script: script.stem)
def test_shellcheck_has_nothing_to_add(script: Path) -> None:
    program = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert program, "shellcheck is part of the dev extra"
    checked = subprocess.run(
        [program, "--shell=sh", "--format=gcc", "-"],
        input=with_needed(script),
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.stdout == ""


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_is_sent_without_its_comments_and_after_the_one_it_needs(script: Path) -> None:
    sent = script_text(script.stem)
    assert not [line for line in sent.splitlines() if line.lstrip().startswith("#")]
    parsed = subprocess.run(["sh", "-n", "-c", sent], capture_output=True, text=True, check=False)
    assert parsed.stderr == ""


def test_every_script_is_used() -> None:
    python = "".join(
        path.read_text(encoding="utf-8") for room in ("devices", "tasks") for path in (ROOT / room).rglob("*.py")
    )
    needed = "".join(script.read_text(encoding="utf-8") for script in SCRIPTS)
    unused = [
        script.stem
        for script in SCRIPTS
        if f'"{script.stem}"' not in python and f"# needs: {script.stem}\n" not in needed
    ]
    assert unused == []
