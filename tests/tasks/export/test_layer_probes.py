"""Which operators of a program are layers, whose values the mode numerics compares."""

from dataclasses import replace
from typing import Any

import pytest

from tasks.export.convert import convert
from tasks.export.factory import build_methods
from tasks.export.layer_probes import add_taps, compute_fp32_layers
from tasks.export.recipes import parse_recipe
from tasks.export.references import list_cases

pytestmark = pytest.mark.torch
torch: Any = pytest.importorskip("torch", reason="torch is not installed (export extra)")


def test_layers_of_a_method_that_another_one_executes_have_their_values_in_fp32() -> None:
    # given two cases of one program method, with other inputs
    linear, inputs = torch.nn.Linear(2, 2), (torch.ones(1, 2),)
    methods = build_methods(
        {"methods": {name: {"module": linear, "inputs": inputs} for name in ("first", "second")}}, "linear"
    )
    second = replace(methods[1], executes="first", inputs=(torch.zeros(1, 2),))
    cases = list_cases([methods[0], second])
    # then each has the values of its inputs
    values = compute_fp32_layers(methods[:1], cases)
    assert [[value.tolist() for value in values[name].values()] for name in ("first", "second")] == [
        [linear(inputs[0]).tolist()],
        [[linear.bias.tolist()]],
    ]


def test_a_constant_of_a_dynamic_size_is_not_a_layer() -> None:
    # given a model that adds ones, as many as its input has rows, and then takes parts of the result
    class Growing(torch.nn.Module):  # type: ignore[misc]
        def forward(self, values: Any) -> Any:
            left, right = torch.var_mean(values + torch.full((values.shape[0], 1), 1.0), 1)
            return left * right

    content = {"module": Growing(), "inputs": (torch.rand(3, 4),), "dynamic_shapes": ({0: torch.export.Dim.AUTO},)}
    [method] = build_methods(content, "growing")
    # then its layers are what it computes from its input
    layers = [layer["operator"] for layer in add_taps(convert(method, parse_recipe("fp32"))).layers]
    assert "aten.full.default" not in layers
    assert {"aten.add.Tensor", "aten.mul.Tensor"} <= set(layers)
