"""`etfarm warehouse`: the path that other programs open, and the data dictionary."""

from pathlib import Path

from tests.fixtures.command import Command, DataFolder, Etfarm, run_python


def test_the_path_opens_in_any_duckdb(data: DataFolder, etfarm: Etfarm) -> None:
    # given a data folder with a loaded session
    data.session([10, 20, 30])
    etfarm("warehouse", "load")
    # when its path is printed
    _, printed = etfarm("warehouse", "path")
    # then another program reads the public views there
    program = "import duckdb, sys; print(duckdb.connect(sys.argv[1], read_only=True).sql(sys.argv[2]).fetchall())"
    answer = run_python("-c", program, printed.rstrip("\n"), "SELECT median_ms FROM session_latency")
    assert answer.stdout == "[(2e-05,)]\n"


def test_the_dictionary_is_printed_or_written(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "dictionary.md"
    assert command("warehouse", "docs", "-o", file).out == f"{file}\n"
    assert file.read_text(encoding="utf-8") == command("warehouse", "docs").out
