"""The fault matrix has a row for every test that breaks something."""

import subprocess
import sys

import pytest

from tests.fixtures.paths import ROOT


@pytest.mark.thorough
def test_every_file_with_faults_has_rows_in_the_printed_matrix() -> None:
    # given the files of tests with the marker
    files = [
        path for path in (ROOT / "tests").rglob("test_*.py") if "\n@pytest.mark.fault\n" in path.read_text("utf-8")
    ]
    # when the matrix is printed
    command = [sys.executable, "-m", "tests.survival.matrix"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    # then nothing but the table and its counts is printed, and each file is in it
    head, _, table = printed.partition("\n\n")
    rows = table.splitlines()[2:]
    assert head.startswith(f"{len(rows)} faults in ")
    assert all(row.startswith("| ") for row in rows)
    assert files
    assert [path for path in files if f"`{path.relative_to(ROOT)}`" not in table] == []
