"""What an export states about the layers that its recipe converted; the counts are read from the lowered program."""

import contextlib
from typing import Any

import pytest

from tasks.export.contents.program_types import stored_bytes
from tasks.export.conversion import describe_conversion, describe_size, describe_type_changes, describe_weights
from tasks.export.entry import ModelEntry
from tasks.export.exported import Layers, NotApplicableError
from tasks.export.lowering import layers as layer_list
from tasks.export.lowering.layers import MIN_CONVERTED_SHARE, check_converted, list_layers, list_type_changes
from tasks.export.prebuilt import import_prebuilt
from tasks.export.program import read_program
from tasks.export.recipes import parse_recipe
from tests.fixtures.exports import build_here

pytestmark = pytest.mark.torch
torch: Any = pytest.importorskip("torch", reason="torch is not installed (export extra)")


class Branch(torch.nn.Module):  # type: ignore[misc]
    """A product in each of two branches, and a linear layer after them."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = torch.nn.Parameter(torch.ones(32, 16)), torch.nn.Parameter(torch.zeros(32, 16) + 2)
        self.after = torch.nn.Linear(16, 64)

    def forward(self, x: Any) -> Any:
        return self.after(torch.cond(x.sum() > 0, lambda y: y @ self.one, lambda y: y @ self.other, (x,)))


class OneTwice(torch.nn.Module):  # type: ignore[misc]
    """A linear layer that runs twice, with an operator between that is not delegated."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(32, 32)

    def forward(self, x: Any) -> Any:
        return self.layer(torch.cumsum(self.layer(x), -1))


def conv1d_layers() -> Any:
    """As in GPT-2: two tables whose rows are added, and layers whose weights lie the other way."""
    linear = pytest.importorskip("transformers.pytorch_utils", reason="transformers is not installed").Conv1D

    class Embedded(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = torch.nn.Embedding(100, 64), torch.nn.Embedding(32, 64)
            self.layers = torch.nn.Sequential(linear(192, 64), torch.nn.ReLU(), linear(64, 192))

        def forward(self, words: Any) -> Any:
            return self.layers(self.words(words) + self.places(torch.arange(8)))

    return Embedded()


class Attention(torch.nn.Module):  # type: ignore[misc]
    """Has a layer whose weights are read without calling it."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(32, 4, batch_first=True)
        self.last = torch.nn.Linear(32, 32)

    def forward(self, x: Any) -> Any:
        return self.last(self.attention(x, x, x)[0])


def widths() -> Any:
    return torch.nn.Sequential(
        torch.nn.Linear(576, 576), torch.nn.ReLU(), torch.nn.Linear(576, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)
    )


def layers_of(module: Any, inputs: tuple[Any, ...], recipe: str, folder: Any) -> Layers:
    layers: Layers = build_here(module, inputs, recipe, folder)["methods"]["forward"]["layers"]
    return layers


CASES = [
    (
        widths, (1, 576), "int4_dynamic g128",
        "1 of 3 linear layers converted (0.5 % of the weights); 576 is not divisible by 128",
    ),
    (Branch, (1, 32), "fp16", "3 of 3 linear layers converted (100 % of the weights); not delegated: 2 linear layers"),
    (
        Attention, (1, 6, 32), "int4_dynamic",
        "1 of 3 linear layers converted (20 % of the weights); the recipe has no rule for linear",
    ),
    (OneTwice, (1, 32), "int8_static", "1 of 1 linear layer converted (100 % of the weights)"),
    (
        conv1d_layers, None, "int4_dynamic",
        "0 of 2 embeddings, 2 of 2 linear layers converted (74.4 % of the weights); "
        "int4_dynamic converts linear layers",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("make", "shape", "recipe", "stated"),
    [*CASES[:2], *(pytest.param(*case, marks=pytest.mark.thorough) for case in CASES[2:])],
    ids=[f"{make.__name__}-{recipe}" for make, _, recipe, _ in CASES],
)
def test_the_layers_of_a_program_are_counted_and_the_weights_of_all_are_those_of_the_model(
    make: Any, shape: tuple[int, ...] | None, recipe: str, stated: str | None, tmp_path: Any
) -> None:
    module = make().eval()
    weights = sum(each.numel() for each in module.parameters() if each.dim() > 1)
    layers = layers_of(module, (torch.arange(8)[None] if shape is None else torch.ones(shape),), recipe, tmp_path)
    assert describe_conversion(layers) == stated
    assert sum(layer["weights"] for layer in layers) == weights
    # and the file stores as many bytes of each type as the layers have, and biases and scales beside them
    stored, pte_bytes = stored_bytes(tmp_path / "model.pte"), (tmp_path / "model.pte").stat().st_size
    for name, bits in (("fp32", 32), ("fp16", 16), ("int8", 8), ("int4", 4)):
        of_layers = sum(layer["weights"] for layer in layers if layer["type"] == name) * bits // 8
        assert of_layers <= stored.get(name, 0) < of_layers + 10_000
    assert 0 < pte_bytes - sum(stored.values()) < 40_000


def layer(weights: int, reason: str | None) -> dict[str, Any]:
    type_name = "fp32" if reason else "int4"
    return {"module": "m", "kind": "linear layer", "type": type_name, "weights": weights, "reason": reason}


@pytest.mark.parametrize(("times", "is_result"), [(1.01, True), (0.99, False)])
def test_a_recipe_that_converts_nearly_nothing_is_skipped_with_its_counts(times: float, is_result: bool) -> None:
    weights = round(times * MIN_CONVERTED_SHARE * 10**8)
    layers = [layer(weights, None), layer(10**8 - weights, "why")]
    outcome = (
        contextlib.nullcontext()
        if is_result
        else pytest.raises(
            NotApplicableError, match=r"^nothing to convert: 1 of 2 linear layers converted \(0.1 % of the weights\)"
        )
    )
    with outcome:
        check_converted(parse_recipe("int4_dynamic"), [layers])


def test_reasons_are_stated_by_their_weights_and_more_than_three_are_counted() -> None:
    layers = [layer(9, None), *(layer(weights, f"reason {weights}") for weights in (1, 4, 2, 3, 5))]
    share = "1 of 6 linear layers converted (37.5 % of the weights)"
    assert describe_conversion(layers) == f"{share}; reason 5; reason 4; reason 3; 2 other reasons"
    # and layers that run portably are counted
    portable = {"is_delegated": False}
    layers = [layer(9, None) | portable, layer(9, None) | portable | {"kind": "embedding"}]
    assert str(describe_conversion(layers)).endswith("; not delegated: 1 linear layer")
    # and a recipe that converts no weights states nothing
    assert describe_conversion([layer(9, None) | {"type": "fp32"}]) is None


def test_a_program_that_lost_its_delegates_is_refused_and_one_from_elsewhere_is_named(tmp_path: Any) -> None:
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower

    # given a model in bf16 that plain ExecuTorch lowers without a delegate, and no word of it
    bf16 = torch.bfloat16
    model, inputs = torch.nn.Linear(8, 4).to(bf16), (torch.ones(1, 8, dtype=bf16),)
    plain = to_edge_transform_and_lower(torch.export.export(model, inputs), partitioner=[XnnpackPartitioner()])
    (tmp_path / "plain.pte").write_bytes(plain.to_executorch().buffer)
    (export,) = import_prebuilt(
        ModelEntry.model_validate({"name": "plain", "pte": tmp_path / "plain.pte"}), tmp_path / "exports", 0
    )
    # then its inputs are of bf16, and it is named
    assert [(each["dtype"], each["shape"]) for each in export.inputs] == [("bfloat16", [1, 8])]
    assert export.notes == ["nothing is delegated: 2 calls of portable operators"]
    assert export.stored_bytes["bf16"] == 2 * (8 * 4 + 4)
    assert export.data_types == frozenset({"bf16"})
    # and the recipe delegates the layer, but refuses a model of which nothing would be
    layers = layers_of(model, inputs, "bf16", tmp_path)
    assert [(layer["type"], layer["is_delegated"]) for layer in layers] == [("bf16", True)]
    assert read_program(tmp_path / "model.pte")[0].delegate_calls
    with pytest.raises(NotApplicableError, match=r"^nothing is delegated: in bf16, XNNPACK computes linear layers"):
        layers_of(torch.nn.Conv2d(3, 4, 3), (torch.ones(1, 3, 8, 8),), "bf16", tmp_path / "conv")


@torch.library.custom_op("tests::dequantize_codes", mutates_args=())  # type: ignore[untyped-decorator]
def dequantize_codes(codes: torch.Tensor, scale: float) -> torch.Tensor:
    return codes.to(torch.float32) * scale


dequantize_codes.register_fake(lambda codes, scale: codes.to(torch.float32))


class Codes(torch.nn.Module):  # type: ignore[misc]
    """A product with weights that the user's own operator, and then one of torchao without its limits, decodes."""

    def __init__(self) -> None:
        super().__init__()
        self.codes: torch.Tensor
        self.register_buffer("codes", torch.ones(16, 32, dtype=torch.int8))
        self.register_buffer("scales", torch.ones(16))

    def forward(self, x: Any) -> Any:
        ops = torch.ops.torchao
        affine = ops.dequantize_affine(self.codes, [1, 32], self.scales, None, torch.int8)
        return torch.nn.functional.linear(x, dequantize_codes(self.codes, 0.5)) + torch.nn.functional.linear(x, affine)


def test_operators_that_state_no_limits_leave_their_layers_the_stored_type() -> None:
    pytest.importorskip("torchao")
    program = torch.export.export(Codes(), (torch.ones(1, 32),))
    layers = list_layers(program, parse_recipe("fp32"))
    assert layers is not None
    assert [(layer["kind"], layer["type"], layer["weights"]) for layer in layers] == [("linear layer", "int8", 512)]


@pytest.mark.parametrize("recipe", ["int8_dynamic", "bf16"])
def test_layers_that_cannot_be_listed_are_none(recipe: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_program: Any) -> None:
        raise LookupError("no such argument")

    monkeypatch.setattr(layer_list, "_layer_nodes", fails)
    assert layers_of(torch.nn.Linear(32, 32), (torch.ones(1, 32),), recipe, tmp_path) == []


def test_types_that_become_others_are_listed_with_their_values() -> None:
    doubled = torch.nn.Sequential(torch.nn.Linear(2, 3).double(), torch.nn.Linear(3, 1))
    inputs = (torch.ones(1, 2, dtype=torch.float64), torch.ones(4, dtype=torch.int64))
    [change] = list_type_changes(doubled, inputs, "float32")
    assert change == {"before": "fp64", "after": "fp32", "weights": 9, "inputs": 2}
    assert describe_type_changes([change]) == ["fp64 becomes fp32: 9 values of the module, 2 of inputs"]
    # and neither what stays nor what the recipe converts from fp32 is
    for linear in (doubled[1].half(), doubled[1].float()):
        assert list_type_changes(linear, (), "float16") == []


@pytest.mark.parametrize(("weights", "is_stated"), [(1430, True), (1428, False)])
def test_the_size_of_a_complete_conversion_is_stated_from_a_twentieth_on(weights: int, is_stated: bool) -> None:
    left = layer(weights, "why")
    size = describe_size("int4_dynamic g128", [left], 100_000)
    assert (size == "100 kB; with all these layers converted, about 95 kB") == is_stated
    # and what the recipe does not convert anyway does not count
    assert describe_size("int4_dynamic g128", [left | {"kind": "convolution"}], 100_000) is None


def test_the_bytes_of_a_program_are_listed_by_type_and_add_up_to_the_file() -> None:
    stored = {"int4": 1_000_000, "fp32": 5_000_000}
    assert describe_weights(stored, 6_500_000) == "5 MB fp32, 1 MB int4, 500 kB other than weights"
    assert describe_weights({}, 6_500_000) is None
