"""Mistakes in a user's own code are reported with file and line, and nobody else's code is blamed."""

import importlib.util
import json
from pathlib import Path

import pytest

from devices.errors import FarmError
from tasks.export.exported import ExportError
from tasks.export.user_code import check_function, explain_error
from tests.fixtures.exports import exported_cases
from tests.fixtures.paths import ROOT

NET = """import torch


class Net(torch.nn.Module):
    def forward(self, x):
        {forward}


def make():
    return Net(), (torch.ones(4, 4),)
"""


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("def make()\n", "model.py, line 1: expected ':': `def make()`"),
        ("def build(): ...\ndef _own(): ...\n", "model.py: no function named make; it has build"),
        ("x = 1\n", "model.py: no function named make; it defines none"),
        ("class Net:\n    def make(self): ...\n", "model.py: no function named make; it defines none"),
        ("def build():\n    make = 1\n", "model.py: no function named make; it has build"),
        ("\n\ndef make(width): ...\n", "model.py, line 3: `def make(width): ...`: a function that"),
        ("def make(*, width): ...\n", "model.py, line 1: `def make(*, width): ...`: a function that"),
        ("x = '\0'\n", "model.py: source code string cannot contain null bytes"),
    ],
)
def test_a_mistake_in_a_file_is_found_without_running_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "model.py"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="model") as mistake:
        check_function(path, "make")
    assert str(mistake.value).startswith(sentence)


@pytest.mark.parametrize(
    "text",
    [
        "def make(): ...\n",
        "def make(width=8, *rest, depth=2): ...\n",
        "make = lambda: ...\n",
        "from elsewhere import make\n",
        "from elsewhere import build as make\n",
        "from elsewhere import *\n",
        "def __getattr__(name): ...\n",
        "class make: ...\n",
        "if True:\n    def make(): ...\n",
        "try:\n    import make\nexcept ImportError:\n    make = None\n",
        "@cached(1)\ndef make(filled_in): ...\n",
    ],
)
def test_a_function_that_may_exist_is_left_to_the_import(tmp_path: Path, text: str) -> None:
    (tmp_path / "model.py").write_text(text, encoding="utf-8")
    check_function(tmp_path / "model.py", "make")


def test_factories_and_recipes_in_packages_are_checked_before_anything_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a package in the working directory whose import would fail
    (tmp_path / "team").mkdir()
    (tmp_path / "team" / "__init__.py").write_text("raise SystemExit('imported')\n", encoding="utf-8")
    text = "def voice(): ...\ndef half(module): ...\n"
    (tmp_path / "team" / "models.py").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    # then an unknown factory, and a recipe with too few arguments, are found
    with pytest.raises(FarmError, match=r"team/models.py: no function named voices; it has voice, half$"):
        exported_cases("team.models:voices", "fp32", tmp_path)
    takes = r"team/models.py, line 2: `def half\(module\): ...`: a function that etfarm calls takes \(module, inputs\)"
    with pytest.raises(FarmError, match=takes):
        exported_cases("team.models:voice", "team.models:half", tmp_path)


def raised_by(path: Path, text: str) -> BaseException:
    """What a user's file raises when its `make` is called."""
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        module.make()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def test_an_error_has_the_innermost_line_of_the_users_own_code(tmp_path: Path) -> None:
    # given a function that calls one that calls the standard library, which raises
    text = "import json\n\ndef weights():\n    return json.loads('{')\n\ndef make():\n    return weights()\n"
    error = raised_by(tmp_path / "model.py", text)
    # then the user's line is named, and neither that of json nor this test's
    assert explain_error(error, "it is not JSON").endswith("model.py, line 4: `return json.loads('{')`: it is not JSON")
    wrong = raised_by(tmp_path / "wrong.py", "import einopz\n")
    assert explain_error(wrong, "no module").endswith("wrong.py, line 1: `import einopz`: no module")


@pytest.mark.parametrize(
    ("name", "message", "remedy"),
    [
        ("GuardOnDataDependentSymNode", "Could not guard on ... Eq(u0, 1)", "use torch.where or torch.cond"),
        ("UserError", "Could not extract specialized integer from data-dependent", "keep the value in a tensor"),
    ],
)
def test_code_that_depends_on_data_is_explained_with_a_remedy(
    tmp_path: Path, name: str, message: str, remedy: str
) -> None:
    raising = f"class {name}(Exception): ...\n\ndef make():\n    raise {name}({message!r})\n"
    sentence = explain_error(raised_by(tmp_path / "model.py", raising), "an unreadable text")
    assert f"` depends on data, which an export cannot follow; {remedy}" in sentence
    assert "unreadable" not in sentence
    assert message not in sentence.partition("` depends")[2]


def test_a_line_that_torch_names_in_its_text_is_found(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text("\n\nx.abs()\n", encoding="utf-8")
    of_torch = Path(json.__file__)
    trace = f'Operator: <EdgeOpOverload: aten.abs.default>: x\nFile "{path}", line 3, in f\nFile "{of_torch}", line 9'
    sentence = explain_error(RuntimeError(trace), "mismatched dtypes:")
    assert (
        "model.py, line 3: `x.abs()`: ExecuTorch does not support aten.abs.default, or not with these types" in sentence
    )


def test_code_of_the_farm_and_of_installed_packages_is_not_blamed(tmp_path: Path) -> None:
    zoo = ROOT / "tasks/export/zoo/operators.py"
    installed = Path(pytest.__file__)
    for path in (zoo, installed):
        assert explain_error(RuntimeError(f'File "{path}", line 3, in f'), "a sentence") == "a sentence"
    # but a folder beside the farm's whose name begins alike is a user's
    beside = tmp_path / f"{ROOT.name}-models.py"
    beside.write_text("x\n", encoding="utf-8")
    assert "-models.py, line 1: `x`" in explain_error(RuntimeError(f'File "{beside}", line 1, in f'), "a sentence")


@pytest.mark.thorough
@pytest.mark.torch
@pytest.mark.parametrize(
    ("forward", "sentence"),
    [
        ("return x[:, : int(x.sum())]", "line 6: `return x[:, : int(x.sum())]` depends on data, which"),
        ("return x @ torch.ones(5, 5)", "model.py, line 6: `return x @ torch.ones(5, 5)`: RuntimeError: "),
        ("return torch.fft.rfft(x).abs()", "`: ExecuTorch does not support aten.abs.default, or not with these types"),
        ("return torch.linalg.svd(x).S", "ExecuTorch does not support aten._linalg_svd.default, or not with these"),
    ],
)
def test_a_model_that_cannot_be_exported_is_reported_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forward: str, sentence: str
) -> None:
    pytest.importorskip("executorch", reason="exports need the export extra")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(NET.format(forward=forward), encoding="utf-8")
    with pytest.raises(ExportError, match="full log is") as failure:
        exported_cases("./model.py:make", "fp32", tmp_path / "exports")
    assert sentence in str(failure.value)


@pytest.mark.thorough
@pytest.mark.torch
@pytest.mark.parametrize(
    ("model", "recipe", "sentence"),
    [
        ("team:alone", "fp32", "team.py, line 3: alone must return (torch.nn.Module, tuple of tensors) or a dict, not"),
        ("team:pair", "team:half", "team.py, line 10: `raise LookupError('no such layer')`: LookupError: no such"),
    ],
)
def test_a_factory_or_a_recipe_that_is_wrong_is_reported_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, recipe: str, sentence: str
) -> None:
    pytest.importorskip("executorch", reason="exports need the export extra")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "team.py").write_text(
        "import torch\n\ndef alone():\n    return torch.nn.Linear(4, 4)\n\n"
        "def pair():\n    return alone(), (torch.ones(1, 4),)\n\n"
        "def half(module, inputs):\n    raise LookupError('no such layer')\n",
        encoding="utf-8",
    )
    with pytest.raises(ExportError) as failure:
        exported_cases(model, recipe, tmp_path / "exports")
    assert sentence in str(failure.value)
