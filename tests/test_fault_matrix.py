"""The fault matrix lists the cases that the tests run, and no others."""

import subprocess
import sys
from pathlib import Path

from tests.fixtures.paths import ROOT
from tests.survival.matrix import README


def test_the_matrix_lists_every_case_that_the_tests_run(tmp_path: Path) -> None:
    written = tmp_path / "README.md"
    subprocess.run([sys.executable, "-m", "tests.survival.matrix", str(written)], cwd=ROOT, check=True)
    assert README.read_text(encoding="utf-8") == written.read_text(encoding="utf-8"), (
        "run `python -m tests.survival.matrix`"
    )
