"""`etfarm warehouse`: the path that other programs open, and the data dictionary."""

import subprocess
import sys
from pathlib import Path

import pytest

from flows.cli.keep.warehouse import docs, path
from flows.warehouse.publish import load_and_publish
from sql.dictionary import data_dictionary
from sql.errors import WarehouseError
from tests.fixtures.warehouse import BundleMaker


def test_the_path_opens_in_any_duckdb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # given a var folder with a loaded session
    maker = BundleMaker(tmp_path / "made")
    maker.session([10, 20, 30])
    load_and_publish([maker.bundles], tmp_path / "var", None)
    # when its path is printed
    path(tmp_path / "var")
    printed = capsys.readouterr().out
    # then another program reads the public views there
    program = "import duckdb, sys; print(duckdb.connect(sys.argv[1], read_only=True).sql(sys.argv[2]).fetchall())"
    words = [sys.executable, "-c", program, printed.rstrip("\n"), "SELECT median_ms FROM session_latency"]
    answer = subprocess.run(words, capture_output=True, text=True, check=True)
    assert answer.stdout == "[(2e-05,)]\n"


def test_without_a_snapshot_the_path_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(WarehouseError, match="no snapshot was published here yet"):
        path(tmp_path)


def test_the_dictionary_is_printed_or_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    docs(None)
    assert capsys.readouterr().out == data_dictionary()
    docs(tmp_path / "dictionary.md")
    assert capsys.readouterr().out == f"{tmp_path / 'dictionary.md'}\n"
    assert (tmp_path / "dictionary.md").read_text(encoding="utf-8") == data_dictionary()
