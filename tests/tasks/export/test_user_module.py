"""A user's file is loaded by its path: it may have any name, and finds the modules beside it."""

import copy
import json
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from devices.errors import FarmError
from tasks.export.entry import ExportRequest
from tasks.export.export import export_cases
from tasks.export.key import export_key
from tasks.export.user_code import explain_error, load_function

MODEL = """
from __future__ import annotations
import dataclasses
import queue
from beside import SCALE
from parts.part import WIDTH

@dataclasses.dataclass
class Item:
    values: list[int]
    scale: dataclasses.InitVar[float] = 1.0

def make():
    import beside
    return Item([SCALE, WIDTH]), queue.Queue, __file__
"""
NET = """
import torch
import beside

class Net(torch.nn.Module):
    def forward(self, values):
        return values * beside.SCALE

def make():
    return Net(), (torch.rand(4),)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working directory, with modules beside a model; what is imported is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    for name in ("meta_path", "path"):
        monkeypatch.setattr(sys, name, list(getattr(sys, name)))
    before = dict(sys.modules)
    Path("beside.py").write_text("SCALE = 2\n")
    Path("parts").mkdir()
    Path("parts", "__init__.py").touch()
    Path("parts", "part.py").write_text("WIDTH = 3\n")
    yield tmp_path
    for name in set(sys.modules) - set(before):
        del sys.modules[name]


@pytest.mark.parametrize(
    ("file", "module"),
    [
        ("model.py", "model"),
        ("my-model.v2.py", "my-model_v2"),
        ("profile.py", "file_profile"),
        ("queue.py", "file_queue"),
        ("types.py", "file_types"),
        ("io.py", "file_io"),
        ("tasks.py", "file_tasks"),
        ("pytest.py", "file_pytest"),
        ("prefect.py", "file_prefect"),
    ],
)
def test_a_file_of_any_name_is_loaded_with_what_is_beside_it(folder: Path, file: str, module: str) -> None:
    Path(file).write_text(MODEL)
    # when its function is loaded
    instance, queue_class, loaded = load_function(f"{folder / file}:make")()
    # then it is that file's, and Python's own module is no file beside it
    assert (loaded, instance.values) == (str(folder / file), [2, 3])
    assert (type(instance).__module__, queue_class.__module__) == (module, "queue")
    # and its classes can be copied and pickled
    assert copy.deepcopy(instance) == pickle.loads(pickle.dumps(instance)) == instance
    assert load_function(f"{folder / file}:Item") is type(instance)


def test_a_factory_and_a_recipe_in_files_of_one_name_are_two_modules(folder: Path) -> None:
    for name in ("models", "recipes"):
        Path(name).mkdir()
        Path(name, "own.py").write_text(f"def make():\n    return {name!r}\n")
    assert [load_function(f"{folder / name / 'own.py'}:make")() for name in ("models", "recipes")] == [
        "models",
        "recipes",
    ]


def test_a_module_of_the_working_directory_may_be_named_like_pythons_own(folder: Path) -> None:
    Path("queue.py").write_text(MODEL)
    assert load_function("queue:make")()[2] == str(folder / "queue.py")
    # but a package named like the farm's is refused with what to do
    Path("tasks").mkdir()
    Path("tasks", "__init__.py").touch()
    Path("tasks", "own.py").write_text("def make(): ...\n")
    with pytest.raises(FarmError, match=r"the name tasks belongs to Python or to etfarm; name the file instead: .*own"):
        load_function("tasks.own:make")


@pytest.mark.parametrize("line", ["from queue import LENGTH", "import queue; queue.LENGTH", "import queue.part"])
def test_a_file_beside_the_model_that_python_hides_is_named(folder: Path, line: str) -> None:
    Path("queue.py").write_text("LENGTH = 1\n")
    Path("model.py").write_text(f"def make():\n    {line}\n")
    with pytest.raises((ImportError, AttributeError)) as error:
        load_function(f"{folder / 'model.py'}:make")()
    sentence = explain_error(error.value, "a sentence")
    assert sentence.endswith(": a sentence; `queue` is Python's own module: rename queue.py beside this file")


@pytest.mark.torch
def test_an_export_of_such_a_file_has_its_lines_and_what_it_imports_in_its_key(folder: Path) -> None:
    pytest.importorskip("executorch", reason="exports need the export extra")
    # given a model in a file named like a module of Python
    Path("profile.py").write_text(NET)
    # when it is exported
    request = ExportRequest("./profile.py:make", "fp32", folder / "exports")
    [export] = export_cases(request)
    # then the line of its operator is known, and it has its short name
    assert export.model == "./profile.py:make"
    sources = json.loads((export.folder / "sources.json").read_text())
    assert "profile.py:7" in {line for _, _, line in sources["sources"]}
    # and a change in the file or in what it imports is a new content
    keys = {export.export_key, export_key(request)}
    for name in ("beside.py", "profile.py"):
        Path(name).write_text(Path(name).read_text() + "# changed\n")
        keys.add(export_key(request))
    assert len(keys) == 3
