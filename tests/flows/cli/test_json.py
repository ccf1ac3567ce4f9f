"""docs/json.md describes what every command prints for programs; tests of the other commands check theirs."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer

from flows.cli.main import app
from flows.cli.sweep_output import end_as_json
from flows.device.job import COUNTED
from flows.sweep_result import SweepEnd
from flows.warehouse.publish import load_and_publish
from tasks.store.workspace import Workspace
from tests.fixtures.command import Command, DataFolder
from tests.fixtures.documented import assert_documented, documented
from tests.fixtures.stand_in import GOOD, publish_stand_in

MS = 1_000_000


def commands_with_json(group: Any, name: str = "") -> list[str]:
    """The commands that have `--format` with json, also those that have subcommands."""
    options = [each for each in group.params if "--format" in each.opts]
    names = [name for each in options if "'json'" in repr(each.type_descriptor)]
    for word, command in getattr(group, "commands", {}).items():
        names += commands_with_json(command, f"{name} {word}".strip())
    return names


def test_every_command_with_json_is_documented() -> None:
    names = set(commands_with_json(typer.main.get_command(app)))
    assert names | {"sweep --dry-run"} == set(documented()["commands"]) | {"sql"}


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> DataFolder:
    """A warehouse with a night of two models on this machine, and of one on an emulated device."""
    data = DataFolder(tmp_path_factory.mktemp("nights") / "var")
    for index in range(6):
        data.session([(10 + index) * MS] * 3, repetition=index)
    data.session([9 * MS] * 3, model__name="other")
    data.session([9 * MS] * 3, device__name="qemu", device__emulated=True)
    load_and_publish(data.workspace, [data.bundles])
    return data


def test_the_end_of_a_sweep_is_one_document(nights: DataFolder) -> None:
    end = SweepEnd(sweep_id="smoke-2026-11-20", message="done", sessions=dict.fromkeys(COUNTED, 1), report=None)
    document = json.loads(end_as_json(end, 1, Workspace(nights.workspace.root, nights.warehouse)))
    assert_documented("sweep", document)
    assert (document["sweep"], document["state"]) == ("smoke-2026-11-20", "failed")
    cells = {(each["device"], each["model"]): each for each in document["cells"]}
    toy = cells["host", "toy"]
    assert (toy["time_ms"], toy["low_ms"], toy["high_ms"]) == pytest.approx((12.5, 10, 15))
    # and a single session has no interval, an emulated device no time
    assert (cells["host", "other"]["time_ms"], cells["host", "other"]["low_ms"]) == (9, None)
    assert cells["qemu (emulated)", "toy"]["time_ms"] is None
    assert {each["verdict"] for each in document["verdicts"]} == {"insufficient data"}


def test_verdicts_and_decisions_are_as_documented(nights: DataFolder, command: Command) -> None:
    data_dir = ("--data-dir", nights.workspace.root)
    assert_documented("verdicts", json.loads(command("verdicts", "--format", "json", *data_dir).out))
    assert command("decisions", "note", "expected, ticket 12", "--model", "toy", *data_dir).code == 0
    (note,) = documents = json.loads(command("decisions", "--format", "json", *data_dir).out)
    assert_documented("decisions", documents)
    assert (note["kind"], note["reason"], note["night"]) == ("note", "expected, ticket 12", None)


def test_a_runner_is_as_documented(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = publish_stand_in(tmp_path / "runners", GOOD)
    monkeypatch.setattr("tasks.runner.build.build_runner", lambda *_: runner)
    document = json.loads(command("devices", "runner", "build", "--format", "json").out)
    for word in ("devices runner build", "devices runner register"):
        assert_documented(word, document)
    assert (document["runner_sha256"], document["folder"]) == (runner.runner_sha256, str(runner.folder))
