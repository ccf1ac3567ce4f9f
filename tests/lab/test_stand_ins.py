"""The lab's shell scripts: shellcheck has nothing to add."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.paths import ROOT

SCRIPTS = sorted((ROOT / "deployments/virtual_lab").rglob("*.sh"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_shellcheck_has_nothing_to_add(script: Path) -> None:
    program = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert program, "shellcheck is part of the dev extra"
    checked = subprocess.run([program, str(script)], capture_output=True, text=True, check=False)
    assert checked.stdout == ""
