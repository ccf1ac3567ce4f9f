"""`etfarm validate`: every mistake of a file with its line, and schemas that editors check files with."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.fixtures.command import Command
from tests.fixtures.paths import ROOT

MISTAKES = """name: Nightly
models: [mobilnet_v2, conv]
precisions: [fp17, fp16]
variants: [sme2]
executoins: 5
threads: [0, some]
"""


def test_all_mistakes_of_all_files_are_listed_with_their_lines(command: Command, tmp_path: Path) -> None:
    # given a sweep with six mistakes in five lines, an inventory with two, and one without
    sweep, inventory, right = tmp_path / "sweep.yaml", tmp_path / "inventory.yaml", tmp_path / "right.yaml"
    sweep.write_text(MISTAKES, encoding="utf-8")
    inventory.write_text("devices:\n- {name: a b, transport: local}\n- {nmae: c, transport: usb}\n", encoding="utf-8")
    right.write_text("name: right\nmodels: [conv]\n", encoding="utf-8")
    ended = command("validate", sweep, inventory, right, tmp_path / "none.yaml")
    # then each is a line with its place, and a misspelt key is not missing, too
    assert ended.code == 1
    lines = [line.removeprefix(f"{tmp_path}/") for line in ended.lines]
    assert [line.split(": ")[:2] for line in lines] == [
        ["sweep.yaml:1", "`name`"],
        ["sweep.yaml:2", "`models.0`"],
        ["sweep.yaml:3", "`precisions.0`"],
        ["sweep.yaml:4", "`variants.0`"],
        ["sweep.yaml:5", "`executoins`"],
        ["sweep.yaml:6", "`threads.0`"],
        ["sweep.yaml:6", "`threads.1`"],
        ["inventory.yaml:2", "`devices.0.name`"],
        ["inventory.yaml:3", "`devices.1.transport`"],
        ["inventory.yaml:3", "`devices.1.nmae`"],
        ["right.yaml", "sweep right, one export"],
        ["none.yaml", "no such file; `etfarm init` writes files to begin with"],
    ]
    refused = command("sweep", sweep)
    assert (refused.code, refused.err.splitlines()) == (2, [f"etfarm: {tmp_path}/{line}" for line in lines[:7]])


def test_a_recipe_and_a_partitioner_of_yours_that_do_not_exist_are_mistakes(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "def nothing():\n    return []\n\n\ndef recipe(module, inputs):\n    return module\n"
    )
    file = tmp_path / "sweep.yaml"
    text = "name: a\nmodels: [conv]\nprecisions: ['mine:{}']\ndelegates:\n- 'mine:{}'\n- '{}:nothing'\n"
    file.write_text(text.format("recip", "nothin", "nomod"))
    ended = command("validate", "sweep.yaml")
    assert (ended.code, ended.lines) == (1, [
        "sweep.yaml:3: `precisions.0`: mine.py: no function named recip; it has nothing, recipe",
        "sweep.yaml:5: `delegates.0`: mine.py: no function named nothin; it has nothing, recipe",
        f"sweep.yaml:6: `delegates.1`: module nomod not found in {tmp_path} or the installed packages",
    ])  # fmt: skip
    file.write_text("name: a\nmodels:\n- conv\n- name: b\n  factory: mine:modul\n  delegate: 'mine:nothin'\n")
    ended = command("validate", "sweep.yaml")
    places = [line.partition(": mine.py: no function named ")[::2] for line in ended.lines]
    assert [(place, name.partition(";")[0]) for place, name in places] == [
        ("sweep.yaml:4: `models.1`", "modul"),
        ("sweep.yaml:6: `models.1.delegate`", "nothin"),
    ]
    file.write_text(text.format("recipe", "nothing", "mine").replace("- 'mine:nothing'\n", "", 1))
    assert command("validate", "sweep.yaml").lines == ["sweep.yaml: sweep a, one export"]


def test_settings_that_every_command_refuses_are_no_valid_file(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "etfarm.yaml"
    file.write_text("data_dir: var\nnotify: slack://a/b/c\n", encoding="utf-8")
    file.chmod(0o644)
    ended = command("validate", file)
    assert (ended.code, f"run `chmod 600 {file}`" in ended.out) == (1, True)
    file.write_text("data_dir: var\ninventory: nope.yaml\n", encoding="utf-8")
    assert command("validate", file).lines == [
        f"{file}:2: `inventory`: no file nope.yaml; correct the path, or write that file"
    ]


WRONG: dict[str, list[dict[str, Any]]] = {
    "sweep": [
        {"name": "a"},
        *({"name": "a", "models": ["conv"], **more} for more in ({"executoins": 5}, {"variants": ["sme2"]})),
        {"name": "a", "models": ["conv"], "finish_by": "7:00"},
        {"name": "a", "models": [{"nmae": "conv"}]},
    ],
    "inventory": [{"devices": []}, {"devices": [{"name": "a", "transport": "adb", "serial": "x", "via": 3}]}],
}


@pytest.mark.parametrize(("kind", "folder"), [("sweep", "sweeps"), ("inventory", "inventories")])
def test_a_schema_accepts_right_files_and_rejects_mistakes(command: Command, kind: str, folder: str) -> None:
    document = json.loads(command("validate", "--schema", kind).out)
    Draft202012Validator.check_schema(document)
    validator = Draft202012Validator(document)
    for file in (ROOT / "deployments" / folder).glob("*.yaml"):
        assert [error.message for error in validator.iter_errors(yaml.safe_load(file.read_text()))] == [], file
    assert [written for written in WRONG[kind] if validator.is_valid(written)] == []
