"""Mistakes in a user's own code are reported with file and line, and nobody else's code is blamed."""

import copy
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from devices.errors import FarmError
from tasks.export.user_code import check_function, explain_error, load_function
from tests.fixtures.exports import exported_cases
from tests.fixtures.paths import ROOT


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
    ("text", "sentence"),
    [
        ("def make()\n", "model.py, line 1: expected ':': `def make()`"),
        ("def build(): ...\ndef _own(): ...\n", "model.py: no function named make; it has build"),
        ("class Net:\n    def make(self): ...\n", "model.py: no function named make; it defines none"),
        ("\n\ndef make(width): ...\n", "model.py, line 3: `def make(width): ...`: a function that"),
        ("def make(*, width): ...\n", "model.py, line 1: `def make(*, width): ...`: a function that"),
        ("x = '\0'\n", "model.py: source code string cannot contain null bytes"),
    ],
)
def test_a_mistake_is_found_without_running_the_file(folder: Path, text: str, sentence: str) -> None:
    (folder / "model.py").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="model") as mistake:
        check_function(folder / "model.py", "make")
    assert str(mistake.value).startswith(sentence)


@pytest.mark.parametrize(
    "text",
    [
        "def make(): ...\n",
        "def make(width=8, *rest, depth=2): ...\n",
        "make = lambda: ...\n",
        "from elsewhere import make\n",
        "from elsewhere import *\n",
        "if True:\n    def make(): ...\n",
        "try:\n    import make\nexcept ImportError:\n    make = None\n",
        "@cached(1)\ndef make(filled_in): ...\n",
    ],
)
def test_a_function_that_may_exist_is_left_to_the_import(text: str) -> None:
    Path("model.py").write_text(text, encoding="utf-8")
    check_function(Path("model.py"), "make")


def test_functions_in_packages_are_checked_before_any_import(tmp_path: Path) -> None:
    # given a package in the working directory whose import would fail
    Path("team").mkdir()
    Path("team/__init__.py").write_text("raise SystemExit('imported')\n", encoding="utf-8")
    Path("team/models.py").write_text("def voice(): ...\ndef half(module): ...\n", encoding="utf-8")
    # then an unknown factory, and a recipe with too few arguments, are found
    with pytest.raises(FarmError, match=r"team/models.py: no function named voices; it has voice, half$"):
        exported_cases("team.models:voices", "fp32", tmp_path)
    takes = r"team/models.py, line 2: `def half\(module\): ...`: a function that etfarm calls takes \(module, inputs\)"
    with pytest.raises(FarmError, match=takes):
        exported_cases("team.models:voice", "team.models:half", tmp_path)


def raised_by(text: str, file: str = "model.py") -> BaseException:
    """What a user's file raises when it is loaded or its `make` is called."""
    Path(file).write_text(text, encoding="utf-8")
    with pytest.raises(Exception) as raised:  # noqa: PT011  any
        load_function(f"{Path(file).resolve()}:make")()
    return raised.value


def test_an_error_has_the_innermost_line_of_the_users_own_code() -> None:
    # given a function that calls one that calls the standard library, which raises
    error = raised_by(
        "import json\n\ndef weights():\n    return json.loads('{')\n\ndef make():\n    return weights()\n"
    )
    # then the user's line is named, and neither that of json nor this test's
    assert explain_error(error, "it is not JSON").endswith("model.py, line 4: `return json.loads('{')`: it is not JSON")
    wrong = raised_by("import einopz\n", "wrong.py")
    assert explain_error(wrong, "no module").endswith("wrong.py, line 1: `import einopz`: no module")


def test_code_of_the_farm_and_of_installed_packages_is_not_blamed(tmp_path: Path) -> None:
    zoo = ROOT / "tasks/export/zoo/operators.py"
    installed = Path(pytest.__file__)
    for path in (zoo, installed):
        assert explain_error(RuntimeError(f'File "{path}", line 3, in f'), "a sentence") == "a sentence"
    # but a folder beside the farm's whose name begins alike is a user's
    beside = tmp_path / f"{ROOT.name}-models.py"
    beside.write_text("x\n", encoding="utf-8")
    assert "-models.py, line 1: `x`" in explain_error(RuntimeError(f'File "{beside}", line 1, in f'), "a sentence")


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


@pytest.mark.parametrize(
    ("file", "module"),
    [
        ("model.py", "model"),
        ("my-model.v2.py", "my-model_v2"),
        ("queue.py", "file_queue"),
        ("io.py", "file_io"),
        ("tasks.py", "file_tasks"),
        ("prefect.py", "file_prefect"),
    ],
)
def test_a_file_of_any_name_is_loaded_with_what_is_beside_it(folder: Path, file: str, module: str) -> None:
    Path(file).write_text(MODEL)
    instance, queue_class, loaded = load_function(f"{folder / file}:make")()
    # then it is that file's, and Python's own module is no file beside it
    assert (loaded, instance.values) == (str(folder / file), [2, 3])
    assert (type(instance).__module__, queue_class.__module__) == (module, "queue")
    # and its classes can be copied and pickled
    assert copy.deepcopy(instance) == pickle.loads(pickle.dumps(instance)) == instance
    assert load_function(f"{folder / file}:Item") is type(instance)


@pytest.mark.parametrize("line", ["from queue import LENGTH", "import queue; queue.LENGTH"])
def test_a_file_beside_the_model_that_python_hides_is_named(line: str) -> None:
    Path("queue.py").write_text("LENGTH = 1\n")
    sentence = explain_error(raised_by(f"def make():\n    {line}\n"), "a sentence")
    assert sentence.endswith(": a sentence; `queue` is Python's own module: rename queue.py beside this file")
