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
        ["right.yaml", "sweep right, one pair of model and recipe"],
        ["none.yaml", "no such file"],
    ]
    refused = command("sweep", sweep)
    assert (refused.code, refused.err.splitlines()) == (2, [f"etfarm: {tmp_path}/{line}" for line in lines[:7]])


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
