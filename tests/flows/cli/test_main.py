"""The command line: every command shows an example, every mistake is one sentence, and help imports nothing heavy."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest
import typer

from flows.cli.main import PANELS, app
from tests.fixtures.command import Command, run_python
from tests.fixtures.documented import assert_documented
from tests.fixtures.etdump_builder import METHOD, Profile, Run, build_etdump
from tests.fixtures.paths import DEPLOYMENTS


def commands(group: Any, path: str = "") -> Iterator[str]:
    """Every command of the command line, as a user types it."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{path}{name} ")
        if not getattr(command, "no_args_is_help", False):
            yield f"{path}{name}"


SMOKE, LOCAL = str(DEPLOYMENTS / "sweeps/smoke.yaml"), str(DEPLOYMENTS / "inventories/local.yaml")
COMMANDS = list(commands(typer.main.get_command(app)))


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """An ETDump of three executions of 30, 40 and 50 ns."""
    runs = [
        Run(
            [
                Profile(text="Convolution (NHWC, F32) IGEMM #1", start=10, end=20, instruction=1),
                Profile(name="DELEGATE_CALL", start=5, end=25, instruction=1),
                Profile(name=METHOD, start=0, end=end),
            ]
        )
        for end in (30, 40, 50)
    ]
    path = tmp_path / "some model.etdump"
    path.write_bytes(build_etdump(runs))
    return path


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_an_example_of_itself(command: Command, name: str) -> None:
    ended = command(*name.split(), "--help")
    assert ended.code == 0
    assert f"Example: etfarm {name}" in ended.out


def test_the_help_lists_each_command_in_its_panel(command: Command) -> None:
    printed = command("--help").out
    for panel, modules in PANELS.items():
        listed = printed.partition(f"\n{panel}:\n")[2].partition("\n\n")[0]
        assert [line.split()[0] for line in listed.splitlines()] == [
            module.__name__.rpartition(".")[2] for module in modules
        ]


def test_a_misspelt_command_is_answered_with_the_closest_one(command: Command) -> None:
    ended = command("swep")
    assert (ended.code, "Did you mean 'sweep'?" in ended.err) == (2, True)


def test_help_imports_nothing_heavy() -> None:
    # given a fresh Python that asks for help
    program = (
        "import sys\nfrom flows.cli.main import app\n"
        "try:\n    app(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'prefect', 'torch', 'duckdb', 'numpy', 'pandas', 'paramiko', 'pyarrow', 'pydantic'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)\n"
    )
    ended = run_python("-c", program)
    # then none of what takes long to import was
    assert ended.returncode == 0, ended.stderr


def test_a_loose_etdump_is_loaded_once_and_its_first_run_is_a_warm_up(
    command: Command, dump: Path, tmp_path: Path
) -> None:
    warehouse = ("--warehouse", tmp_path / "w.duckdb")
    loads = [command("warehouse", "load", dump, *warehouse).out for _ in range(2)]
    assert [line.partition(" in the")[0] for line in loads] == ["1 loaded, 0 already", "0 loaded, 1 already"]
    # when its runs are requested by a query in a file
    file = tmp_path / "runs.sql"
    file.write_text("SELECT model, run_index, is_warmup, execute_ns FROM run_latency ORDER BY 2", encoding="utf-8")
    ended = command("sql", file, *warehouse, "--format", "csv")
    # then there is a row per run
    assert ended.lines[1:] == ["some model,0,True,30", "some model,1,False,40", "some model,2,False,50"]


@pytest.mark.parametrize("option", ["--data-dir", "--warehouse"])
def test_data_dir_and_warehouse_are_accepted_before_the_command_too(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    for name in ("ETFARM_DATA_DIR", "ETFARM_WAREHOUSE"):  # which the options set for this process
        monkeypatch.setenv(name, "")
    assert str(tmp_path / "none") in command(option, tmp_path / "none", "sql", "SELECT 1").err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["trace", "nothing.etdump"], "nothing.etdump"),
        (["trace", "text.etdump"], "text.etdump"),
        (["warehouse", "load", "nothing", "--warehouse", "w.duckdb"], "nothing: no such file or folder"),
        (["sql", "SELECT 1", "--warehouse", "nothing.duckdb"], "nothing.duckdb: there is no warehouse here"),
        (["sql", "SELECT 1", "--warehouse", "text.etdump"], "text.etdump is not a warehouse"),
        (["sql", "SELECT 1", "--data-dir", "nowhere"], "no snapshot was published here yet"),
        (["sql", "nothing.sql", "--data-dir", "nowhere"], "no snapshot was published here yet"),
        (["sweep", "nothing.yaml"], "nothing.yaml: no such file"),
        (["sweep", SMOKE, "--night", "yesterday"], "`yesterday` is not a night; write a date such as 2026-11-01"),
        (["sweep", SMOKE, "--night", "9999-12-31"], "the night 9999-12-31 is in the future"),
        (["model", "export", "mobilnet_v2"], "did you mean `mobilenet_v2`?"),
        (["model", "export", "linear", "--precision", "int8_statc"], "did you mean `int8_static`?"),
        (["model", "export", "linear", "--precision", "fp64"], "fp32, fp16, int8_static, int8_dynamic"),
        (["devices", "runner", "build", "--platform", "linux-x86-64"], "did you mean `linux-x86_64`?"),
        (
            ["devices", "runner", "build", "--platform", "amiga"],
            "linux-x86_64, linux-aarch64, macos-arm64, android-arm64",
        ),
        (["devices", "probe", "this-machin", "--inventory", LOCAL], "did you mean `this-machine`?"),
        (["devices", "certify", "this-machin", "--inventory", LOCAL], "unknown device `this-machin`; devices: "),
        (["devices", "certify", "this-machine", "--inventory", LOCAL, "-o", "no/page.md"], "-o no/page.md: not a file"),
        (["site", "report", "--data-dir", "nowhere"], "no snapshot was published here yet"),
        (["warehouse", "path", "--data-dir", "nowhere"], "no snapshot was published here yet"),
        (["server", "worker"], "PREFECT_API_URL is not set; set it to the server's address"),
    ],
)
def test_a_mistake_is_one_sentence_and_leaves_nothing(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], sentence: str
) -> None:
    # given a folder that holds one text file
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    Path("text.etdump").write_text("this is a text, and a text it stays", encoding="utf-8")
    # when something wrong is asked for
    ended = command(*words)
    # then it is one sentence, and nothing half-done stays behind
    assert ended.code == 2
    assert ended.out == ""
    assert ended.err.count("\n") == 1
    assert ended.err.startswith("etfarm: ")
    assert sentence in ended.err
    assert [path.name for path in tmp_path.iterdir() if not path.is_dir()] == ["text.etdump"]


UNBUFFERED = pytest.mark.parametrize("unbuffered", ["", "1"])


def print_help_to(output: IO[str] | int, unbuffered: str) -> "subprocess.CompletedProcess[str]":
    words = [sys.executable, "-m", "flows.cli.main", "--help"]
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    return subprocess.run(words, stdout=output, stderr=subprocess.PIPE, text=True, check=False, env=environment)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@UNBUFFERED
def test_an_output_that_has_no_room_is_one_sentence(unbuffered: str) -> None:
    with Path("/dev/full").open("w") as full:
        ended = print_help_to(full, unbuffered)
    assert ended.returncode == 2
    assert ended.stderr.startswith("etfarm: No space left on device; free space")


@UNBUFFERED
def test_an_output_that_nobody_reads_any_more_ends_quietly(unbuffered: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ended = print_help_to(writer, unbuffered)
    finally:
        os.close(writer)
    assert (ended.returncode, ended.stderr) == (1, "")


def test_what_was_refused_is_reported_and_the_rest_is_loaded(command: Command, dump: Path, tmp_path: Path) -> None:
    (tmp_path / "cut.etdump").write_bytes(dump.read_bytes()[:100])
    ended = command("warehouse", "load", tmp_path, "--warehouse", tmp_path / "w.duckdb")
    assert ended.code == 1
    assert ended.out == "1 loaded, 0 already in the warehouse, 1 refused\n"
    assert "cut.etdump" in ended.err


def test_the_findings_of_doctor_are_documented(command: Command, tmp_path: Path) -> None:
    inventory = tmp_path / "inventory.yaml"
    inventory.write_text("devices:\n  - {name: gone, transport: ssh, address: 127.0.0.1, port: 9, user: x, root: /x}\n")
    rows = json.loads(command("doctor", "--inventory", inventory, "--format", "json").out)
    assert rows
    assert_documented("doctor", rows)
