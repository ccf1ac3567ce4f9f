"""`etfarm warehouse path`: what other programs open."""

from tests.fixtures.command import DataFolder, Etfarm, run_python


def test_the_path_opens_in_any_duckdb(data: DataFolder, etfarm: Etfarm) -> None:
    data.session([10, 20, 30])
    etfarm("warehouse", "load")
    _, printed = etfarm("warehouse", "path")
    program = "import duckdb, sys; print(duckdb.connect(sys.argv[1], read_only=True).sql(sys.argv[2]).fetchall())"
    answer = run_python("-c", program, printed.rstrip("\n"), "SELECT median_ms FROM session_latency")
    assert answer.stdout == "[(2e-05,)]\n"
