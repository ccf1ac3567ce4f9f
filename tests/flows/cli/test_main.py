"""The command line: every command shows an example, every mistake is one sentence."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest
import typer

from flows.cli.main import PANELS, app
from tests.fixtures.command import Command
from tests.fixtures.documented import assert_documented
from tests.fixtures.farm import ETFARM
from tests.fixtures.paths import DEPLOYMENTS
from tests.fixtures.warehouse import etdump_of


def commands(group: Any, path: str = "") -> Iterator[str]:
    """Every command of the command line, as a user types it."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{path}{name} ")
        if not getattr(command, "no_args_is_help", False):
            yield f"{path}{name}"


SMOKE, LOCAL = str(DEPLOYMENTS / "sweeps/smoke.yaml"), str(DEPLOYMENTS / "inventories/local.yaml")
COMMANDS = list(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_an_example_of_itself(command: Command, name: str) -> None:
    ended = command(*name.split(), "--help")
    assert ended.code == 0
    assert f"Example: etfarm {name}" in ended.out


def test_the_help_lists_each_command_in_its_panel(command: Command) -> None:
    printed = command("--help").out
    for panel, names in PANELS.items():
        listed = printed.partition(f"\n{panel}:\n")[2].partition("\n\n")[0].splitlines()
        assert [line.split()[0] for line in listed] == [*names]


def test_an_option_comes_before_a_variable_a_variable_before_the_file_and_the_file_before_the_default(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ETFARM_DATA_DIR", raising=False)

    def data_dir(*words: str) -> str:
        return command(*words).refusal.removeprefix("etfarm: ").partition("/")[0]

    assert data_dir("explain", "toy") == "var"
    Path("etfarm.yaml").write_text("data_dir: file\n", encoding="utf-8")
    assert data_dir("explain", "toy") == "file"
    monkeypatch.setenv("ETFARM_DATA_DIR", "variable")
    assert data_dir("explain", "toy") == "variable"
    assert data_dir("--data-dir", "before", "explain", "toy") == "before"
    assert data_dir("--data-dir", "before", "explain", "toy", "--data-dir", "after") == "after"
    # and the pages find the traces where the setting is
    served: list[str | None] = []
    monkeypatch.setattr("flows.cli.site._serve", lambda _port, _names, site: served.append(site.bundles_location))
    monkeypatch.setenv("ETFARM_BUNDLES", "s3://farm/bundles")
    assert (command("site").code, served) == (0, ["s3://farm/bundles"])
    # and the processes that a worker starts get that of the group `server`
    monkeypatch.setattr("flows.server.shared_server.run_worker", lambda _pool: 0)
    assert command("--data-dir", "first", "server", "--data-dir", "of_worker", "worker").code == 0
    assert os.environ["ETFARM_DATA_DIR"] == str(tmp_path / "of_worker")


def test_what_was_refused_is_reported_and_the_rest_is_loaded(command: Command, tmp_path: Path) -> None:
    (tmp_path / "some model.etdump").write_bytes(etdump_of([(30, {}), (40, {})]))
    (tmp_path / "cut.etdump").write_bytes(etdump_of([(30, {})])[:100])
    warehouse = ("--warehouse", tmp_path / "w.duckdb")
    ended = command("warehouse", "load", tmp_path, *warehouse)
    assert (ended.code, ended.out) == (1, "1 loaded, 0 already in the warehouse, 1 refused\n")
    assert "cut.etdump" in ended.err
    file = tmp_path / "runs.sql"
    file.write_text("SELECT model, run_index, is_warmup, execute_ns FROM run_latency ORDER BY 2", encoding="utf-8")
    rows = command("sql", file, *warehouse, "--format", "csv").lines[1:]
    assert rows == ["some model,0,True,30", "some model,1,False,40"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["trace", "text.etdump"], "text.etdump"),
        (["warehouse", "load", "nothing", "--warehouse", "w.duckdb"], "nothing: no such file or folder"),
        (["sql", "SELECT 1", "--warehouse", "nothing.duckdb"], "nothing.duckdb: there is no warehouse here"),
        (["sql", "SELECT 1", "--warehouse", "text.etdump"], "text.etdump is not a warehouse"),
        (["sql", "nothing.sql", "--data-dir", "nowhere"], "no snapshot was published here yet"),
        (["sweep", "nothing.yaml"], "nothing.yaml: no such file"),
        (["sweep", SMOKE, "--night", "yesterday"], "`yesterday` is not a night; write a date such as 2026-11-01"),
        (["sweep", SMOKE, "--night", "9999-12-31"], "the night 9999-12-31 is in the future"),
        (["model", "export", "mobilnet_v2"], "did you mean `mobilenet_v2`?"),
        (["devices", "probe", "this-machin", "--inventory", LOCAL], "did you mean `this-machine`?"),
        (["devices", "certify", "this-machin", "--inventory", LOCAL], "unknown device `this-machin`; devices: "),
        (["devices", "certify", "this-machine", "--inventory", LOCAL, "-o", "no/page.md"], "-o no/page.md: not a file"),
        (["site", "report", "--data-dir", "nowhere"], "no snapshot was published here yet"),
        (["site", "--data-dir", "nowhere"], "no snapshot was published here yet"),
        (["server", "worker"], "PREFECT_API_URL is not set; set it to the server's address"),
    ],
)
def test_a_mistake_is_one_sentence_and_leaves_nothing(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    Path("text.etdump").write_text("this is a text, and a text it stays", encoding="utf-8")
    # when something wrong is asked for, then it is one sentence, and nothing half-done stays behind
    assert sentence in command(*words).refusal
    assert [path.name for path in tmp_path.iterdir() if not path.is_dir()] == ["text.etdump"]


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_an_output_without_room_is_one_sentence_and_one_that_nobody_reads_ends_quietly(unbuffered: str) -> None:
    def print_help_to(output: IO[str] | int) -> "subprocess.CompletedProcess[str]":
        environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
        words = [*ETFARM, "--help"]
        return subprocess.run(words, stdout=output, stderr=subprocess.PIPE, text=True, check=False, env=environment)

    if Path("/dev/full").exists():  # not on every system
        with Path("/dev/full").open("w") as full:
            ended = print_help_to(full)
        assert (ended.returncode, ended.stderr.startswith("etfarm: No space left on device; free space")) == (2, True)
    reader, writer = os.pipe()
    os.close(reader)
    ended = print_help_to(writer)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (1, "")


def test_the_findings_of_doctor_are_documented(command: Command, tmp_path: Path) -> None:
    inventory = tmp_path / "inventory.yaml"
    inventory.write_text("devices:\n  - {name: gone, transport: ssh, address: 127.0.0.1, port: 9, user: x, root: /x}\n")
    warehouse = tmp_path / "w.duckdb"
    before = ("--warehouse", warehouse)  # what stands before the command's name is its setting, too
    rows = json.loads(command(*before, "doctor", "--inventory", inventory, "--format", "json").out)
    assert f"warehouse = {warehouse} (--warehouse)" in [row["text"] for row in rows]
    assert_documented("doctor", rows)
