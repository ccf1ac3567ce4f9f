"""What commands import: an answer takes tenths of a second as long as it needs no package that takes as long."""

from pathlib import Path
from typing import Any

import pytest

from flows.cli.main import PANELS
from flows.warehouse.publish import load_and_publish
from tests.fixtures.command import DataFolder, run_python

SLOW = {
    *("prefect", "torch", "executorch", "transformers", "pandas", "pyarrow", "numpy", "duckdb", "fsspec", "rich"),
    *(
        "pydantic_settings",
        "yaml",
        "asyncio",
        "multiprocessing",
        "ssl",
        "jinja2",
        "paramiko",
        "adbutils",
        "mcp",
        "tasks.export.entry",
    ),
    *("tasks.bundle.record", "tasks.load.load"),
}
"""Packages, and modules of ours that read bundles or models."""
NIGHTS = ("2026-11-19", "2026-11-20")
SESSION = f"{1:016x}"
READER = {"duckdb"}
"""What opens a snapshot of this farm; a question of a user is asked in another process."""
RECORDS = {"numpy", "tasks.bundle.record"}
"""What reads an ETDump."""
NEEDED: list[tuple[set[str], list[str]]] = [
    (
        set(),
        [
            *("--help", "compare --help", "mcp --help", "site --help", "sql --list"),
            *("sql slowest-operators --model toy", "sql 'FROM session_latency' --format csv"),
        ],
    ),
    (READER, ["verdicts", "verdicts --format markdown", "explain toy"]),
    ({*READER, "yaml"}, ["status", "status --format json"]),
    ({*READER, "numpy"}, ["compare 2026-11-19 2026-11-20"]),
    (RECORDS, [f"trace {SESSION}"]),
    (
        {"duckdb", "yaml", "tasks.export.entry", "tasks.bundle.record"},
        ["sweep deployments/sweeps/smoke.yaml --dry-run"],
    ),
]
"""What of SLOW commands need: those that need the same run in one process, which has imported it after each of them."""
PROGRAM = """
import shlex, sys
from flows.cli.main import main
slow, data_dir, *lines = set(sys.argv[1].split()), *sys.argv[2:]
for line in lines:
    rest = [] if line.endswith(("--help", "--list")) else ["--data-dir", data_dir]
    sys.argv = ["etfarm", *shlex.split(line), *rest]
    try:
        main()
    except SystemExit as end:
        print(end.code or 0, *sorted(slow & {name for name, module in sys.modules.items() if module}), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with two nights of one series."""
    data = DataFolder(tmp_path_factory.mktemp("nights") / "var")
    for night in NIGHTS:
        sweep: dict[str, Any] = {"sweep__sweep_id": f"smoke-{night}", "sweep__name": "smoke", "sweep__night": night}
        for repetition in range(5):
            data.session([(10_000_000, {"conv": 6_000_000})] * 3, model__name="toy", repetition=repetition, **sweep)
    load_and_publish(data.workspace, [data.bundles])
    return data.workspace.root


@pytest.mark.parametrize(("needed", "lines"), NEEDED)
def test_a_command_imports_no_slow_package_that_it_does_not_need(
    needed: set[str], lines: list[str], nights: Path
) -> None:
    ended = run_python("-c", PROGRAM, " ".join(SLOW), nights, *lines)
    assert ended.stderr.splitlines() == [" ".join(["0", *sorted(needed)])] * len(lines)


def test_the_imports_of_every_command_that_answers_questions_are_listed() -> None:
    assert {*PANELS["Ask"]} <= {line.split()[0] for _, lines in NEEDED for line in lines}


def test_duckdb_and_arrow_work_in_a_command_without_importing_pandas() -> None:
    program = """
import sys
from flows.cli import main
def use(**_):
    import duckdb, pyarrow
    assert pyarrow.Table.from_pylist([{"a": 1}]).num_rows == 1
    assert duckdb.connect().execute("SELECT $a", {"a": 1}).fetchall() == [(1,)]
    assert "pandas" not in sys.modules
main.app = use
main.main()
"""
    ended = run_python("-c", program)
    assert ended.returncode == 0, ended.stderr
