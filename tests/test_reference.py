"""docs/reference: it is what the code makes; everything in it has a meaning, and examples that the readers accept."""

import re
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel

from devices.inventory import TRANSPORT_KEYS, DeviceSpec, Inventory, load_inventory
from devices.settings import Settings
from devices.ssh.config import SshAddress
from devices.start_limits import Limits
from docs.reference_pages import FOLDER, KEYS, VARIABLES, commands, example_of, reference_pages
from sql.question import questions
from tasks.bundle.cell import MODE_MEANINGS, VARIANT_MEANINGS, Mode, Variant
from tasks.bundle.failure_kinds import FAILURE_KINDS
from tasks.export.entry import AccuracyRequirement, ModelEntry
from tasks.export.generate_options import CacheOptions, GenerateOptions
from tasks.export.recipes import FORMS, RECIPES, recipe_name
from tasks.measure.run_options import RunOptions
from tasks.measure.sweep_file import SweepSpec, read_sweep
from tasks.runner.executorch_versions import ExecutorchVersions
from tests.fixtures.paths import ROOT


def test_the_committed_pages_are_those_that_the_code_makes() -> None:
    committed = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    assert committed == reference_pages(), "run: make docs"


def test_everything_has_a_meaning_and_every_command_and_key_an_example() -> None:
    missing = [f"{model.__name__}.{name}" for model, name in ENTRIES if not model.model_fields[name].examples]
    missing += [f"{model.__name__}.{name}" for model, name in ENTRIES if not model.model_fields[name].description]
    for words, command in commands():
        has_example = command.no_args_is_help or (command.epilog or "").startswith("Example: etfarm ")
        missing += [words] if not command.help or not has_example else []
        missing += [f"{words} {each.name}" for each in command.params if each.name != "help" and not each.help]
    missing += [each.kind for each in FAILURE_KINDS.values() if not (each.subject and each.meaning and each.remedy)]
    missing += [each.name for each in questions().values() if not each.summary]
    assert missing == []
    assert (set(MODE_MEANINGS), set(VARIANT_MEANINGS)) == (set(get_args(Mode)), set(get_args(Variant)))
    written = [yaml.safe_load(form) for form in FORMS]
    assert RECIPES.keys() <= {recipe_name(each) for each in written}


def test_every_variable_that_the_product_reads_is_listed() -> None:
    code = [path.read_text(encoding="utf-8") for name in PACKAGES for path in (ROOT / name).rglob("*.py")]
    read = re.compile(
        r'environ(?:ment)?\.get\(["\'](\w+)["\']|environ\["(\w+)"\](?! =)|"(\w+)" (?:not )?in os\.environ'
    )
    names = {"".join(groups) for text in code for groups in read.findall(text)}
    assert {name for name in names if not name.startswith("ETFARM_")} - PASSED_ON == VARIABLES.keys()


PACKAGES = ("devices", "flows", "sql", "tasks")
PASSED_ON = {"PATH", "PYTHONPATH", "TZ"}
"""Variables of any program, which processes of the product get."""
ENTRIES = [(model, name) for model in KEYS for name in model.model_fields]
# What the file of an example needs beside it.
MODEL_NEEDS: dict[str, dict[str, Any]] = {
    **{key: {"pte": "./detector.pte"} for key in ("data", "inputs", "shapes", "etrecord")},
    "expected": {"pte": "./detector.pte", "inputs": ["./in0.bin"]},
    **{key: {"transformers": "BertConfig"} for key in ("config", "generate")},
    **{key: {} for key in ("pte", "factory", "transformers")},
    "keep_samples": {"factory": "mobilenet_v2", "samples": "./images"},
}
SAMPLED = {"factory": "./model.py:make", "samples": "./images"}


def file_with(model: type[BaseModel], name: str) -> dict[str, Any]:
    """A sweep file, an inventory or settings with the example of a key."""
    example = yaml.safe_load(example_of(name, model.model_fields[name]))
    entry: dict[str, Any] = {"factory": "mobilenet_v2"}
    generate: dict[str, Any] = {"prefill": [128, 512]}
    if model in (Settings, Inventory):
        return (
            {"devices": [{"name": "a", "transport": "local", "site": "berlin"}], **example}
            if model is Inventory
            else example
        )
    if model in (DeviceSpec, SshAddress):
        transport = next((each for each, keys in TRANSPORT_KEYS.items() if name in keys), "local")
        needs = {"local": {}, "simulated": {}, "ssh": {"address": "a"}, "adb": {"serial": "a"}}
        device = {
            "name": "simulated-a" if transport == "simulated" else "a",
            "transport": transport,
            **needs[transport],
        }
        device |= {"address": "a"} if example == {"transport": "ssh"} else {}
        via = {"name": "a", "transport": "adb", "serial": "a", "via": {"address": "a", **example}}
        return {"devices": [via if model is SshAddress else {**device, **example}]}
    if model is ModelEntry:
        entry = {**MODEL_NEEDS.get(name, entry), **example}
    elif model is AccuracyRequirement:
        entry = {**SAMPLED, "accuracy": example}
    elif model in (GenerateOptions, CacheOptions):
        cases = {**generate, **example} if model is GenerateOptions else {**generate, "cache": example}
        entry = {"transformers": "BertConfig", "generate": cases}
    sweep: dict[str, Any] = {"name": "a", "models": [entry]}
    if model is ExecutorchVersions:
        return {**sweep, "executorch": [example]}
    if model is RunOptions:
        of_coreml = {"delegates": ["coreml"]} if name == "compute_unit" else {}
        return {**sweep, **of_coreml, "options": [{**example, **({"some_key": 3} if name == "unchecked" else {})}]}
    if model is Limits:
        return {**sweep, "limits": example}
    return {**sweep, "sessions": 9, **example} if model is SweepSpec else sweep


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files that examples name."""
    (tmp_path / "images").mkdir()
    (tmp_path / "images/0.npy").touch()
    for name in ("detector.pte", "detector.ptd", "in0.bin", "ref.bin", "detector.etrecord", "prompt.txt", "text.txt"):
        (tmp_path / name).touch()
    (tmp_path / "model.py").write_text("def make(): ...\n", encoding="utf-8")
    return tmp_path


def test_the_reader_of_each_file_accepts_the_example_of_each_of_its_keys(folder: Path) -> None:
    for model, name in ENTRIES:
        file = folder / "file.yaml"
        written = file_with(model, name)
        file.write_text(yaml.safe_dump(written), encoding="utf-8")
        if model is Settings:
            assert Settings.model_validate(written).model_fields_set == {name}
        elif "devices" in written and isinstance(written["devices"], list):
            assert load_inventory(file).devices
        else:
            assert read_sweep(file).models
