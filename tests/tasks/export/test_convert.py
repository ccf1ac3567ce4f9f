"""What a recipe makes of a method, before it is lowered."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from devices.errors import FarmError
from tasks.export.convert import _EXPORT_PATTERN, _export_patterns_once, convert
from tasks.export.exported import Export
from tasks.export.factory import build_methods
from tasks.export.lowering.layer_probes import compute_fp32_layers
from tasks.export.lowering.work import count_macs, count_read_bytes
from tasks.export.recipes import parse_recipe
from tasks.export.references import compute_references, list_cases
from tests.fixtures.exports import build_here

pytestmark = pytest.mark.torch
torch: Any = pytest.importorskip("torch", reason="torch is not installed (export extra)")
DIM, export = torch.export.Dim, torch.export.export


def test_excepted_operators_compute_in_fp32_also_one_after_another() -> None:
    # given two layer norms without anything between them
    linear, norm = torch.nn.Linear(4, 4), torch.nn.LayerNorm(4)
    module = torch.nn.Sequential(linear, norm, torch.nn.LayerNorm(4), torch.nn.Linear(4, 4)).eval().half()
    [method] = build_methods((module, (torch.ones(1, 4, dtype=torch.float16),)), "layers")
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


def test_the_layers_that_the_quantizer_looks_for_are_exported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    [method] = build_methods((torch.nn.Linear(4, 4), (torch.ones(1, 4),)), "layers")
    first, is_strict = convert(method, parse_recipe("int8_static")), list[bool]()

    def record(*words: Any, strict: bool = False, **options: Any) -> Any:
        is_strict.append(strict)
        return export(*words, strict=strict, **options)

    monkeypatch.setattr(torch.export, "export", record)
    again = convert(method, parse_recipe("int8_static"))
    # then only the model was, and it is converted as before
    assert is_strict
    assert not any(is_strict)
    assert again.program.graph_module.code == first.program.graph_module.code


def test_a_layer_that_the_quantizer_describes_in_another_way_is_exported() -> None:
    from executorch.backends.xnnpack.quantizer import xnnpack_quantizer_utils as utils

    _export_patterns_once()
    graph = getattr(utils, _EXPORT_PATTERN)(torch.nn.ReLU(), (torch.ones(1),), False)
    assert "relu" in graph.code


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


ONES = (torch.ones(1, 4),)
FORM = "forward: `setup` must be a dict of `method` and `inputs`"


@pytest.mark.parametrize(
    ("setup", "sentence"),
    [
        ({"method": "fill", "inputs": ONES}, "the setup of forward names fill; use one of its methods: forward"),
        ({"method": "forward"}, FORM),
        (["forward"], FORM),
        ({"method": "forward", "inputs": (), "more": 1}, FORM),
    ],
)
@pytest.mark.parametrize("is_listed", [False, True])
def test_a_setup_that_is_not_a_method_with_inputs_is_refused(setup: object, sentence: str, is_listed: bool) -> None:
    content = {"module": torch.nn.Linear(4, 4), "inputs": ONES, "setup": setup}
    with pytest.raises(FarmError, match=f"^decoder: {sentence}"):
        build_methods({"methods": {"forward": content}} if is_listed else content, "decoder")


def test_layers_of_a_method_that_another_one_executes_have_their_values_in_fp32() -> None:
    linear, inputs = torch.nn.Linear(2, 2), (torch.ones(1, 2),)
    methods = build_methods(
        {"methods": {name: {"module": linear, "inputs": inputs} for name in ("first", "second")}}, "linear"
    )
    second = replace(methods[1], executes="first", inputs=(torch.zeros(1, 2),))
    cases = list_cases([methods[0], second])
    values = compute_fp32_layers(methods[:1], cases)
    assert [[value.tolist() for value in values[name].values()] for name in ("first", "second")] == [
        [linear(inputs[0]).tolist()],
        [[linear.bias.tolist()]],
    ]


@pytest.mark.parametrize("recipe", ["int4_dynamic", pytest.param("int8_static", marks=pytest.mark.thorough)])
def test_layers_that_become_linear_have_their_values_in_fp32_in_mode_numerics(tmp_path: Path, recipe: str) -> None:
    utilities = pytest.importorskip("transformers.pytorch_utils", reason="transformers is not installed")
    layers = torch.nn.Sequential(utilities.Conv1D(32, 32), torch.nn.Softmax(-1), torch.nn.Linear(32, 32)).eval()
    built = build_here(layers, (torch.randn(2, 32),), recipe, tmp_path, taps=True)
    found = {(tap["module"], "fp32" in tap) for tap in built["cases"][0]["taps"]}
    assert found - {("1", True)} == {("0", True), ("2", True)}


class Mixed(torch.nn.Module):  # type: ignore[misc]
    """Convolutions, a linear layer, attention of eight heads and a recurrent layer, over images (1, 3, 8, 8)."""

    def __init__(self) -> None:
        super().__init__()
        nn = torch.nn
        same = nn.Conv2d(32, 32, 3, groups=8, padding="same")
        self.convolutions = nn.Sequential(nn.Conv2d(3, 32, 3), same, nn.ConvTranspose2d(32, 16, 2, stride=2))
        self.linear = nn.Linear(16, 64)
        self.recurrent = nn.LSTM(64, 8, num_layers=2)

    def forward(self, images: Any) -> Any:
        rows = self.linear(self.convolutions(images).flatten(2).transpose(1, 2))
        heads = rows.unflatten(-1, (8, 8)).transpose(1, 2)
        attended = torch.nn.functional.scaled_dot_product_attention(heads, heads, heads) @ torch.ones(8, 8)
        return self.recurrent(attended.transpose(1, 2).flatten(2)[:, :5])[0]


class Looking(torch.nn.Module):  # type: ignore[misc]
    """Looks up rows of a table of 100 x 6, and adds them to a state of 6."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(100, 6)
        self.register_buffer("state", torch.zeros(6))

    def forward(self, words: Any) -> Any:
        self.state.add_(self.table(words).sum(0))
        return self.state + self.state


def test_macs_are_half_of_the_operations_that_pytorch_counts() -> None:
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    module, images = Mixed(), torch.rand(1, 3, 8, 8)
    # Whatever is one operator, such as a recurrent layer of mkldnn, PyTorch would not count.
    apart = torch.backends.mkldnn.flags(enabled=False), sdpa_kernel(SDPBackend.MATH)
    with FlopCounterMode(display=False) as counter, apart[0], apart[1]:
        module(images)
    program = torch.export.export(module, (images,)).run_decompositions()
    assert count_macs(program) == {None: counter.get_total_flops() / 2}


def test_a_dynamic_size_has_no_number_of_macs() -> None:
    rows = torch.rand(4, 2)
    program = torch.export.export(torch.nn.Linear(2, 3), (rows,), dynamic_shapes=({0: torch.export.Dim.AUTO},))
    assert count_macs(program.run_decompositions()) is None


@pytest.mark.thorough  # it imports the exporter
def test_of_an_embedding_only_the_rows_that_are_looked_up_are_read_and_state_is_read_once() -> None:
    from executorch.exir import to_edge

    with torch.no_grad():
        edge = to_edge(torch.export.export(Looking(), (torch.tensor([3, 5, 7]),)))
    assert count_read_bytes(edge.exported_program()) == 4 * (3 * 6 + 6)


@pytest.mark.thorough  # all recipes
def test_what_an_export_reads_are_its_weights_as_the_recipe_stores_them(toys: dict[str, Export]) -> None:
    assert len({export.macs for export in toys.values()}) == 1
    read = {precision: export.read_bytes or 0 for precision, export in toys.items()}
    assert read["int4_dynamic"] < read["int8_dynamic"] < read["fp32"]
    assert read["int8_static"] < read["fp16"] < 0.6 * read["fp32"]
    for precision, export in toys.items():
        assert 0.5 * export.pte_bytes < read[precision] < export.pte_bytes


class Scales(torch.nn.Module):  # type: ignore[misc]
    """Doubles its weight and its buffer in each execution, and returns their sum."""

    def __init__(self, weight: Any) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(weight)
        self.register_buffer("total", torch.ones(3))

    def forward(self, values: Any) -> Any:
        with torch.inference_mode() if self.weight.is_inference() else torch.no_grad():
            return values + self.weight.mul_(2) + self.total.mul_(2)


def in_inference_mode() -> Any:
    with torch.inference_mode():
        return Scales(torch.ones(3))


MEMORY = {
    "of PyTorch": lambda: Scales(torch.ones(3)),
    "of NumPy, as of a file": lambda: Scales(torch.from_numpy(np.ones(3, np.float32))),
    "shared": lambda: Scales(torch.ones(3).share_memory_()),
    "made in inference mode": in_inference_mode,
}


@pytest.mark.parametrize("make", MEMORY.values(), ids=MEMORY)
def test_weights_and_buffers_of_any_memory_are_after_an_execution_as_before(make: Any) -> None:
    module = make()
    cases = list_cases(build_methods((module, (torch.zeros(3),)), "scales"))
    with torch.no_grad():
        [[output]] = compute_references({"forward": module}, cases, "float32").values()
    assert output.tolist() == [4, 4, 4]
    assert module.weight.tolist() == module.total.tolist() == [1, 1, 1]
