"""What a recipe makes of a method, before it is lowered."""

from typing import Any

import pytest

from devices.errors import FarmError
from tasks.export.convert import convert
from tasks.export.exported import NotApplicableError
from tasks.export.factory import Method, build_methods
from tasks.export.recipes import parse_recipe

pytestmark = pytest.mark.torch
torch: Any = pytest.importorskip("torch", reason="torch is not installed (export extra)")
DIM, export = torch.export.Dim, torch.export.export


def halved(*layers: Any) -> Method:
    """A method of these layers in fp16."""
    module = torch.nn.Sequential(*layers).eval().to(torch.float16)
    return build_methods((module, (torch.ones(1, 4, dtype=torch.float16),)), "layers")[0]


def test_excepted_operators_compute_in_fp32_also_one_after_another() -> None:
    # given two layer norms without anything between them
    method = halved(torch.nn.Linear(4, 4), torch.nn.LayerNorm(4), torch.nn.LayerNorm(4), torch.nn.Linear(4, 4))
    converted = convert(method, parse_recipe("fp16 except layer_norm"))
    types = {
        node.name: {node.meta["val"].dtype, *(each.meta["val"].dtype for each in node.all_input_nodes)}
        for node in converted.program.graph.nodes
        if "linear" in str(node.target) or "layer_norm" in str(node.target)
    }
    # then both compute in fp32, and the linear layers around them in fp16
    assert types == {
        "linear": {torch.float16},
        "layer_norm": {torch.float32},
        "layer_norm_1": {torch.float32},
        "linear_1": {torch.float16},
    }
    assert converted.reference(*method.inputs).dtype == torch.float16


def test_an_exception_that_the_model_does_not_contain_is_not_applicable() -> None:
    with pytest.raises(NotApplicableError, match="the model does not contain softmax"):
        convert(halved(torch.nn.Linear(4, 4)), parse_recipe("fp16 except softmax"))


def test_your_own_recipe_gets_the_dynamic_shapes_that_it_takes() -> None:
    # given a model with a dynamic size, and recipes with and without a parameter for it
    content = {"module": torch.nn.Linear(4, 4), "inputs": (torch.ones(3, 4),), "dynamic_shapes": ({0: DIM.AUTO},)}
    [method] = build_methods(content, "layers")
    recipe = parse_recipe("ours:recipe")
    # then one keeps the size dynamic, and the other is told what to do
    program = convert(method, recipe, lambda m, x, dynamic_shapes: export(m, x, dynamic_shapes=dynamic_shapes)).program
    assert program.range_constraints
    with pytest.raises(FarmError, match="ours:recipe fixes the dynamic shapes of forward; give it a third parameter"):
        convert(method, recipe, lambda m, x: export(m, x))
    # and a model of fixed shapes needs none
    [fixed] = build_methods((torch.nn.Linear(4, 4), (torch.ones(3, 4),)), "layers")
    assert not convert(fixed, recipe, lambda m, x: export(m, x)).program.range_constraints
