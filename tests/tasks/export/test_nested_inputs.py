"""Inputs in tuples, lists and dicts, with numbers and None between them, become a flat tuple of tensors."""

import copy
from pathlib import Path
from typing import Any

import pytest

from devices.errors import FarmError
from tasks.export.factory import build_methods
from tasks.export.lowering import lower
from tasks.export.recipes import parse_recipe

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


@pytest.mark.parametrize(
    ("others", "sentence"),
    [
        (inputs(2, scale=4), "make: all inputs must have the structure of the example inputs: "),
        (inputs(2)[:3], "make: all inputs must have the structure of the example inputs: "),
    ],
)
def test_inputs_of_another_structure_are_refused(others: Any, sentence: str) -> None:
    content = {"module": Nested(), "inputs": inputs(2), "calibration": [others]}
    with pytest.raises(FarmError) as refused:
        build_methods(content, "make")
    assert str(refused.value) == f"{sentence}(first, pair_0, pair_1_right), and its numbers and None"


def test_parameters_that_are_passed_by_keyword_take_the_last_inputs() -> None:
    class ByKeyword(torch.nn.Module):  # type: ignore[misc]
        def forward(self, first: Any, *, second: Any, third: Any = 1) -> Any:
            return first - second * third

    [method] = build_methods((ByKeyword(), (torch.ones(2), torch.full((2,), 4.0))), "make")
    assert method.module(*method.inputs).tolist() == [-3, -3]


def test_any_number_of_inputs_is_passed_by_position() -> None:
    class AnyNumber(torch.nn.Module):  # type: ignore[misc]
        def forward(self, *values: Any, scale: float = 2.0, **others: Any) -> Any:
            return torch.cat(values) * scale

    [method] = build_methods((AnyNumber(), tuple(torch.full((1,), float(value)) for value in range(3))), "make")
    assert method.module(*method.inputs).tolist() == [0, 2, 4]


def test_keys_of_one_name_are_two_inputs() -> None:
    class Named(torch.nn.Module):  # type: ignore[misc]
        def forward(self, values: Any) -> Any:
            return values["a.b"] - values["a_b"]

    [method] = build_methods((Named(), ({"a.b": torch.ones(2), "a_b": torch.full((2,), 3.0)},)), "make")
    assert method.module(*method.inputs).tolist() == [-2, -2]


@pytest.mark.parametrize(
    ("calibration", "sentence"),
    [
        ([torch.ones(2, 4)], "make: inputs must be a tuple of tensors, not Tensor"),
        (torch.ones(2, 4), "make: forward: `calibration` must be a list of inputs"),
    ],
)
def test_a_tensor_is_no_tuple_of_inputs(calibration: Any, sentence: str) -> None:
    with pytest.raises(FarmError) as refused:
        build_methods({"module": Nested(), "inputs": inputs(2), "calibration": calibration}, "make")
    assert str(refused.value) == sentence


def test_an_input_that_no_program_takes_is_named() -> None:
    with pytest.raises(FarmError, match=r"^make: the input pair_1 is a \w*Path; use tensors, numbers, None"):
        build_methods((Nested(), (torch.ones(1), (torch.ones(1), Path()))), "make")


def test_a_model_with_nested_inputs_is_exported_and_equals_eager_pytorch(tmp_path: Path) -> None:
    built = lower.build(build_methods((Nested(), inputs(2)), "make"), parse_recipe("fp32"), tmp_path)
    [case] = built["cases"]
    assert [len(case[kind]) for kind in ("inputs", "outputs_host")] == [3, 1]
    assert [each["sha256"] for each in case["outputs_host"]] == [each["sha256"] for each in case["outputs"]]
