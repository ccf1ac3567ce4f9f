"""Which operators of a program are layers, whose values the mode numerics compares."""

from typing import Any

import pytest

from tasks.export.convert import convert
from tasks.export.factory import build_methods
from tasks.export.layer_probes import tapped
from tasks.export.recipes import parse_recipe

pytestmark = pytest.mark.torch
torch: Any = pytest.importorskip("torch", reason="torch is not installed (export extra)")


def test_a_constant_of_a_dynamic_size_is_not_a_layer() -> None:
    # given a model that adds ones, as many as its input has rows, and then takes parts of the result
    class Growing(torch.nn.Module):  # type: ignore[misc]
        def forward(self, values: Any) -> Any:
            left, right = torch.var_mean(values + torch.full((values.shape[0], 1), 1.0), 1)
            return left * right

    content = {"module": Growing(), "inputs": (torch.rand(3, 4),), "dynamic_shapes": ({0: torch.export.Dim.AUTO},)}
    [method] = build_methods(content, "growing")
    # then its layers are what it computes from its input
    layers = [layer["operator"] for layer in tapped(convert(method, parse_recipe("fp32"))).layers]
    assert "aten.full.default" not in layers
    assert {"aten.add.Tensor", "aten.mul.Tensor"} <= set(layers)
