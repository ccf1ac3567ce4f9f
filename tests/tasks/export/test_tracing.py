"""Models of every form: outputs that are not tensors, writes to inputs and parameters, states, layouts and types."""

import copy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from devices.errors import FarmError
from tasks.export.process.child import avoid_repeated_work
from tests.fixtures.exports import as_module, build_here, read_tensors

pytestmark = pytest.mark.torch
torch: Any = pytest.importorskip("torch", reason="torch is not installed (export extra)")


class Scaled(torch.nn.Module):  # type: ignore[misc]
    """Changes its parameter, also through a view."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(4))

    def forward(self, values: Any) -> Any:
        self.scale.view(2, 2)[0].add_(1)
        return values * self.scale


class Ring(torch.nn.Module):  # type: ignore[misc]
    """Keeps the last 8 values of its input, which begin as random numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("last", torch.randn(1, 4, 8))
        self.conv = torch.nn.Conv1d(4, 4, 8)

    def forward(self, values: Any) -> Any:
        self.last.copy_(torch.cat([self.last[:, :, 1:], values], 2))
        return self.conv(self.last)


class Boxes(NamedTuple):
    corners: Any
    scores: Any


def convolution(**options: Any) -> Any:
    return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU()).eval().to(**options)


VALUES, ROWS, IMAGES = torch.linspace(-1, 2, 4), torch.rand(2, 8), torch.rand(1, 3, 8, 8)
LINEAR, IN_PLACE = torch.nn.Linear(8, 8), torch.nn.ReLU(inplace=True)
WRITES = "writes to its inputs"
# A module, its input, the recipe, the least SNR in dB, and what the program does without.
MODELS = {
    "the type of topk": (as_module(lambda x: x.topk(3)), ROWS, "fp32", 120, []),
    "a named tuple, a dict, None and a number": (
        as_module(lambda x: (Boxes(x + 1, x - 1), None, {"twice": x * 2}, 3)), ROWS, "fp32", 120,
        ["outputs that are numbers or text"],
    ),
    "an input written": (as_module(lambda x: x.mul_(2) + 1), ROWS, "fp32", 120, [WRITES]),
    "a part of an input written": (
        as_module(lambda x: (parts := x.chunk(2, -1))[0].add_(1) * parts[1]), ROWS, "fp32", 120, [WRITES]
    ),
    "an input replaced": (torch.nn.Sequential(IN_PLACE, LINEAR), ROWS, "fp32", 120, [WRITES]),
    "a value written": (torch.nn.Sequential(LINEAR, IN_PLACE), ROWS, "fp32", 120, []),
    "a parameter written": (Scaled(), VALUES, "fp32", 120, []),
    "a state in calibration": (Ring(), torch.randn(1, 4, 1), "int8_static", 25, []),
    "channels-last weights": (
        convolution(memory_format=torch.channels_last), IMAGES, "fp32", 120, ["channels-last weights"]
    ),
    "half weights in fp16": (torch.nn.Linear(8, 8).half(), ROWS, "fp16", 50, []),
    "bfloat16 weights in int8": (torch.nn.Linear(8, 8).bfloat16(), ROWS, "int8_dynamic", 30, []),
}  # fmt: skip


QUICK = {"a named tuple, a dict, None and a number", "an input replaced", "a parameter written"}
QUICK |= {"a state in calibration", "channels-last weights", "half weights in fp16"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.thorough) for name in MODELS]
)
def test_a_model_of_any_form_is_exported_and_equals_eager_pytorch(name: str, tmp_path: Path) -> None:
    module, inputs, precision, min_snr_db, left_out = MODELS[name]
    with torch.no_grad():
        expected = copy.deepcopy(module)(inputs.to(next(module.parameters(), inputs).dtype, copy=True))
    built = build_here(module, (inputs,), precision, tmp_path)
    [case] = built["cases"]
    # then it has as many outputs as the model has tensors, with its values
    tensors = [each for each in torch.utils._pytree.tree_leaves(expected) if isinstance(each, torch.Tensor)]
    assert len(case["outputs_host"]) == len(case["outputs"]) == len(tensors)
    references = case["outputs_fp32"] or case["outputs"]
    for pair in zip(*(read_tensors(tmp_path, each) for each in (case["outputs_host"], references)), strict=True):
        actual, exact = (each.astype(float) for each in pair)
        assert np.square(actual - exact).sum() <= np.square(exact).sum() * 10 ** (-min_snr_db / 10)
    # and states what the program does without
    assert [each["step"] for each in built["left_out"]] == left_out


def test_a_changed_parameter_starts_with_the_models_value(tmp_path: Path) -> None:
    module = Scaled()
    built = build_here(module, (VALUES,), "fp16", tmp_path)
    for kind in ("outputs", "outputs_fp32", "outputs_host"):
        [values] = read_tensors(tmp_path, built["cases"][0][kind])
        assert values.tolist() == [-2, 0, 1, 2]
    assert built["methods"]["forward"]["is_stateful"]
    assert module.scale.tolist() == [1, 1, 1, 1]


def test_a_model_that_returns_no_tensor_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FarmError, match=r"its forward returns no tensor \(int, str\); return a tensor or a tuple"):
        build_here(as_module(lambda _: ("a", 3)), (ROWS,), "fp16", tmp_path)


def test_composite_operators_are_looked_up_again_only_after_others_were_registered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from torch._export import utils

    original, calls = utils._materialize_cpp_cia_ops, list[None]()
    monkeypatch.setattr(utils, "_materialize_cpp_cia_ops", lambda: calls.append(original()))
    avoid_repeated_work()
    utils._collect_all_valid_cia_ops()
    utils._collect_all_valid_cia_ops()
    assert len(calls) == 1
    library = torch.library.Library("test_tracing", "DEF")
    library.define("same(Tensor values) -> Tensor")
    library.impl("same", lambda values: values.clone(), "CompositeImplicitAutograd")
    assert "test_tracing::same" in {each.name() for each in utils._collect_all_valid_cia_ops()}
    assert len(calls) == 2


def test_a_torch_that_looks_up_composite_operators_elsewhere_exports_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from torch._export import utils

    monkeypatch.delattr(utils, "_materialize_cpp_cia_ops")
    avoid_repeated_work()
    assert not hasattr(utils, "_materialize_cpp_cia_ops")
