"""Inputs in tuples, lists and dicts, with numbers and None between them, become a flat tuple of tensors."""

import copy
from pathlib import Path
from typing import Any

import pytest

from devices.errors import FarmError
from tasks.export.factory import build_methods
from tests.fixtures.exports import build_here

pytestmark = pytest.mark.torch
torch: Any = pytest.importorskip("torch", reason="torch is not installed (export extra)")


class Nested(torch.nn.Module):  # type: ignore[misc]
    def forward(self, first: Any, pair: Any, last: Any = None, scale: int = 1) -> Any:
        return first + pair[0] * scale - pair[1]["right"]


def inputs(rows: int, scale: int = 3) -> tuple[Any, ...]:
    first, left, right = (torch.full((rows, 4), float(value)) for value in (1, 2, 4))
    return first, (left, {"right": right}), None, scale


def test_a_method_takes_the_tensors_of_nested_inputs_in_their_order() -> None:
    # given dynamic shapes as torch.export takes them, by parameter, and a module that is copied later
    rows = torch.export.Dim("rows", min=2, max=8)
    shapes = {"first": {0: rows}, "pair": ({0: rows}, {"right": {0: rows}}), "last": None, "scale": None}
    module = Nested()
    content = {"module": module, "inputs": inputs(2), "dynamic_shapes": shapes, "shapes": {"longer": inputs(5)}}
    [method] = build_methods(content, "make")
    # then inputs and shapes are flat
    assert [tuple(each.shape) for each in method.inputs] == [(2, 4)] * 3
    assert [tuple(each.shape) for each in method.shapes["longer"]] == [(5, 4)] * 3
    assert method.dynamic_shapes == ({0: rows},) * 3
    # and the module and its copies compute the same with them
    for each in (module, copy.deepcopy(module)):
        assert each(*method.inputs).unique().tolist() == [1 + 2 * 3 - 4]
    program = torch.export.export(module, method.inputs, dynamic_shapes=method.dynamic_shapes)
    assert list(program.graph_signature.user_inputs) == ["first", "pair_0", "pair_1_right"]


STRUCTURE = (
    "all inputs must have the structure of the example inputs: (first, pair_0, pair_1_right), and its numbers and "
)


@pytest.mark.parametrize(
    ("calibration", "sentence"),
    [
        pytest.param([inputs(2, scale=4)], f"{STRUCTURE}None", id="another number"),
        pytest.param([inputs(2)[:3]], f"{STRUCTURE}None", id="a number is missing"),
        pytest.param([torch.ones(2, 4)], "inputs must be a tuple of tensors, not Tensor", id="a tensor for a tuple"),
        pytest.param(torch.ones(2, 4), "forward: `calibration` must be a list of inputs", id="a tensor for the list"),
    ],
)
def test_inputs_of_another_structure_are_refused(calibration: Any, sentence: str) -> None:
    with pytest.raises(FarmError) as refused:
        build_methods({"module": Nested(), "inputs": inputs(2), "calibration": calibration}, "make")
    assert str(refused.value) == f"make: {sentence}"


class ByKeyword(torch.nn.Module):  # type: ignore[misc]
    def forward(self, first: Any, *, second: Any, third: Any = 1) -> Any:
        return first - second * third


class AnyNumber(torch.nn.Module):  # type: ignore[misc]
    def forward(self, *values: Any, scale: float = 2.0, **others: Any) -> Any:
        return torch.cat(values) * scale


class Named(torch.nn.Module):  # type: ignore[misc]
    def forward(self, values: Any) -> Any:
        return values["a.b"] - values["a_b"]


ONE, THREE = torch.ones(1), torch.full((1,), 3.0)


@pytest.mark.parametrize(
    ("module", "inputs", "output"),
    [
        pytest.param(ByKeyword(), (ONE, THREE), [-2], id="parameters by keyword take the last inputs"),
        pytest.param(AnyNumber(), (ONE, THREE, ONE), [2, 6, 2], id="any number of inputs goes by position"),
        pytest.param(Named(), ({"a.b": ONE, "a_b": THREE},), [-2], id="keys of one name are two inputs"),
    ],
)
def test_each_input_arrives_at_its_parameter(module: Any, inputs: tuple[Any, ...], output: list[float]) -> None:
    [method] = build_methods((module, inputs), "make")
    assert method.module(*method.inputs).tolist() == output


def test_an_input_that_no_program_takes_is_named() -> None:
    with pytest.raises(FarmError, match=r"^make: the input pair_1 is a \w*Path; use tensors, numbers, None"):
        build_methods((Nested(), (torch.ones(1), (torch.ones(1), Path()))), "make")


def test_a_model_with_nested_inputs_is_exported_and_equals_eager_pytorch(tmp_path: Path) -> None:
    [case] = build_here(Nested(), inputs(2), "fp32", tmp_path)["cases"]
    assert [len(case[kind]) for kind in ("inputs", "outputs_host")] == [3, 1]
    assert [each["sha256"] for each in case["outputs_host"]] == [each["sha256"] for each in case["outputs"]]
