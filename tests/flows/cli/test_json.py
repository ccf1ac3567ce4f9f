"""docs/json.md describes what every command prints for programs, and the end of a sweep is a document or ten lines."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer

from flows.cli.main import app
from flows.cli.sweep_output import end_as_json, show_end
from flows.device.job import COUNTED
from flows.sweep_result import SweepEnd
from flows.warehouse.publish import load_and_publish
from tests.fixtures.command import Command, DataFolder
from tests.fixtures.documented import assert_documented, documented
from tests.fixtures.stand_in import GOOD, publish_stand_in

TIMES_MS = {"a-one": (10,), "b-three": (10.4665, 12.6, 10.51241), "c-six": (10, 11, 12, 13, 14, 15)}


def commands_with_json(group: Any, name: str = "") -> list[str]:
    """The commands that have `--format` with json, also those that have subcommands."""
    options = [each for each in group.params if "--format" in each.opts]
    names = [name for each in options if "'json'" in repr(each.type_descriptor)]
    for word, command in getattr(group, "commands", {}).items():
        names += commands_with_json(command, f"{name} {word}".strip())
    return names


def test_every_command_with_json_is_documented() -> None:
    names = set(commands_with_json(typer.main.get_command(app)))
    variants = {"model check --expect", "sweep --dry-run", "sweep --night A..B", "verdicts --week"}
    assert names | variants == set(documented()["commands"]) | {"sql"}


@pytest.fixture(scope="module")
def sweeps(tmp_path_factory: pytest.TempPathFactory) -> DataFolder:
    """Sweeps: cells of one, three and six sessions and of an emulated device; one of seven cells, and one of eight."""
    data = DataFolder(tmp_path_factory.mktemp("sweeps") / "var")
    for model, times_ms in TIMES_MS.items():
        for index, ms in enumerate(times_ms):
            data.session([round(ms * 1e6)] * 3, model__name=model, repetition=index)
    data.session([10_000_000] * 3, device__name="qemu", device__emulated=True)
    for name in ("toy", "toy@delegate=portable"):
        names: dict[str, Any] = {"sweep__sweep_id": "two-2026-11-20", "sweep__name": "two", "model__name": name}
        data.session([10_000_000] * 3, **names)
    for name, count in (("seven", 7), ("eight", 8)):
        for number in range(count):
            names = {"sweep__sweep_id": f"{name}-2026-11-20", "sweep__name": name}
            data.session([10_000_000] * 3, model__name=f"model-{number}", **names)
    load_and_publish(data.workspace, [data.bundles])
    return data


def test_the_end_of_a_sweep_is_one_document(sweeps: DataFolder) -> None:
    end = SweepEnd(sweep_id="smoke-2026-11-20", message="done", sessions=dict.fromkeys(COUNTED, 1), report=None)
    document = json.loads(end_as_json(end, 1, sweeps.workspace))
    assert_documented("sweep", document)
    assert (document["sweep"], document["state"]) == ("smoke-2026-11-20", "failed")
    worse = end.model_copy(update={"is_regression": True})
    assert json.loads(end_as_json(worse, 1, sweeps.workspace))["state"] == "regression"
    # then a single session has no interval, an emulated device no time
    cells = {row["model"]: tuple(row[name] for name in ("time_ms", "low_ms", "high_ms")) for row in document["cells"]}
    assert cells["c-six"] == pytest.approx((12.5, 10, 15))
    assert (cells["a-one"], cells["toy"]) == ((10, None, None), (None, None, None))
    assert {each["verdict"] for each in document["verdicts"]} == {"new", "insufficient data"}


def test_each_time_is_printed_with_its_sessions_and_their_interval_or_range(
    sweeps: DataFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    show_end(SweepEnd(sweep_id="smoke-2026-11-20", message=""), sweeps.workspace)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("sessions  runs  time ms  95 % interval or range ms")
    one, three, six, emulated = (line.split()[6:] for line in lines[2:6])
    assert one == ["1", "3", "10.0000"]
    # and a time lies within its range, since both have the same digits
    assert three == ["3", "9", "10.5", "10.5", "to", "12.6"]
    assert six == ["6", "18", "12.5", "10.0", "to", "15.0"]
    assert emulated[-1] == "3"


@pytest.mark.parametrize(("name", "rest"), [("seven", []), ("eight", ["2 more cells: etfarm site report"])])
def test_the_end_of_a_sweep_has_at_most_ten_lines(
    sweeps: DataFolder, name: str, rest: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    show_end(SweepEnd(sweep_id=f"{name}-2026-11-20", message="", lines=["all succeeded"]), sweeps.workspace)
    lines = capsys.readouterr().out.splitlines()
    assert (len(lines), lines[-1], [line for line in lines if " more " in line]) == (10, "all succeeded", rest)


def test_a_sweep_of_several_delegates_ends_with_the_question_that_compares_them(
    sweeps: DataFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    question = "the fastest delegate that is accurate: etfarm sql which-delegate"
    for name, expected in (("two", 1), ("seven", 0)):
        show_end(SweepEnd(sweep_id=f"{name}-2026-11-20", message=""), sweeps.workspace)
        assert capsys.readouterr().out.splitlines().count(question) == expected


def test_verdicts_and_decisions_are_as_documented(sweeps: DataFolder, command: Command) -> None:
    data_dir = ("--data-dir", sweeps.workspace.root)
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
