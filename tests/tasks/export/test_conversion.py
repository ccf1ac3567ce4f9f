"""What an export states about the layers that its recipe converted; the counts are read from the lowered program."""

from typing import Any

import pytest

from tasks.export.conversion import describe_conversion
from tasks.export.exported import Layers, NotApplicableError
from tasks.export.factory import build_methods
from tasks.export.lowering.lower import build
from tasks.export.recipes import parse_recipe

torch: Any = pytest.importorskip("torch", reason="torch is not installed (export extra)")


class Branch(torch.nn.Module):  # type: ignore[misc]
    """A product in each of two branches, and a linear layer after them."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = torch.nn.Parameter(torch.ones(32, 16)), torch.nn.Parameter(torch.ones(32, 16))
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
    transformers = pytest.importorskip("transformers")
    sizes = {"n_embd": 64, "n_layer": 1, "n_head": 2, "vocab_size": 100, "n_positions": 32}
    return transformers.GPT2Model(transformers.GPT2Config(**sizes, use_cache=False, bos_token_id=0, eos_token_id=0))


def widths() -> Any:
    return torch.nn.Sequential(
        torch.nn.Linear(576, 576), torch.nn.ReLU(), torch.nn.Linear(576, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)
    )


def layers_of(module: Any, inputs: tuple[Any, ...], recipe: str, folder: Any) -> Layers:
    built = build(build_methods((module, inputs), "m"), parse_recipe(recipe), folder)
    layers: Layers = built["methods"]["forward"]["layers"]
    return layers


CASES = [
    (
        widths, (1, 576), "int4_dynamic g128",
        "1 of 3 linear layers converted (0.5 % of the weights); 576 is not divisible by 128",
    ),
    (OneTwice, (1, 32), "int8_static", "1 of 1 linear layer converted (100 % of the weights)"),
    (Branch, (1, 32), "fp16", "3 of 3 linear layers converted (100 % of the weights)"),
    (
        conv1d_layers, None, "int4_dynamic",
        "0 of 2 embeddings, 4 of 4 linear layers converted (85.3 % of the weights); "
        "int4_dynamic converts linear layers",
    ),
]  # fmt: skip


@pytest.mark.torch
@pytest.mark.parametrize(("make", "shape", "recipe", "stated"), CASES, ids=[f"{c[0].__name__}-{c[2]}" for c in CASES])
def test_the_layers_of_a_program_are_counted_and_the_weights_of_all_are_those_of_the_model(
    make: Any, shape: tuple[int, ...] | None, recipe: str, stated: str | None, tmp_path: Any
) -> None:
    module = make().eval()
    weights = sum(each.numel() for each in module.parameters() if each.dim() > 1)
    layers = layers_of(module, (torch.arange(8)[None] if shape is None else torch.ones(shape),), recipe, tmp_path)
    assert describe_conversion(layers) == stated
    assert sum(layer["weights"] for layer in layers) == weights


@pytest.mark.torch
@pytest.mark.parametrize(("last", "is_result"), [(128, True), (1, False)])
def test_a_recipe_that_converts_nearly_nothing_is_skipped_with_its_counts(
    last: int, is_result: bool, tmp_path: Any
) -> None:
    # given a model of which int4 converts 0.9 % or 0.009 % of the weights
    model = torch.nn.Sequential(
        torch.nn.Linear(1351, 1351), torch.nn.Linear(1351, 32), torch.nn.Linear(32, last, bias=False)
    )
    inputs = (torch.ones(1, 1351),)
    if is_result:
        assert len(layers_of(model, inputs, "int4_dynamic", tmp_path)) == 3
        return
    with pytest.raises(NotApplicableError, match=r"^nothing to convert: 1 of 3 linear layers .*0.002 % of the weights"):
        layers_of(model, inputs, "int4_dynamic", tmp_path)


def test_reasons_are_stated_by_their_weights_and_more_than_three_are_counted() -> None:
    def layer(weights: int, reason: str | None) -> dict[str, Any]:
        type_name = "fp32" if reason else "int4"
        return {"module": "m", "kind": "linear layer", "type": type_name, "weights": weights, "reason": reason}

    layers = [layer(9, None), *(layer(weights, f"reason {weights}") for weights in (1, 4, 2, 3, 5))]
    share = "1 of 6 linear layers converted (37.5 % of the weights)"
    assert describe_conversion(layers) == f"{share}; reason 5; reason 4; reason 3; 2 other reasons"
    # and a recipe that converts no weights states nothing
    assert describe_conversion([layer(9, None) | {"type": "fp32"}]) is None
