"""Exports for Core ML, which need no Mac, and for MLX, which need one. None was ever executed on a Mac."""

import json
import sys
from importlib.metadata import PackageNotFoundError
from typing import Any

import pytest

from devices.errors import FarmError
from tasks.bundle.delegates import DELEGATES
from tasks.export.conversion import describe_conversion
from tasks.export.entry import ModelEntry
from tasks.export.exported import NotApplicableError, NotHereError
from tasks.export.lowering.delegates import EXPORT_DELEGATES, Lowering
from tasks.export.lowering.layers import list_layers
from tasks.export.program import read_program
from tasks.export.recipes import parse_recipe
from tests.fixtures.exports import export_model
from tests.fixtures.paths import KEPT

pytestmark = pytest.mark.torch


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("precision", "type_of_weights"), [("fp32", "fp32"), ("fp16", "fp16"), ("int8_static", "int8")]
)
@pytest.mark.parametrize("model", ["toy_cnn", "linear"])
def test_core_ml_takes_a_model_in_the_type_that_the_recipe_states(
    model: str, precision: str, type_of_weights: str
) -> None:
    entry = ModelEntry.model_validate(model).lowered("coreml", None)
    folder = export_model(entry, precision, KEPT / "exports").folder
    about = json.loads((folder / "export.json").read_text())
    [method] = read_program(folder / "model.pte")
    assert [call.delegate for call in method.calls] == ["CoreMLBackend"]
    operators = about["methods"]["forward"]
    [taken] = operators["delegates"]
    assert (taken["backend"], operators["portable_operators"], operators["portable_macs"]) == ("CoreMLBackend", 0, 0)
    assert taken["macs"] == operators["macs"] > 0
    assert {layer["type"] for layer in operators["layers"]} == {type_of_weights}
    assert about["trial"] == "not tried here: this machine does not have the backend CoreMLBackend"


@pytest.mark.thorough
def test_writes_of_a_cache_stay_portable_beside_core_ml() -> None:
    entry = ModelEntry.model_validate("decoder_tiny").lowered("coreml", None)
    export = export_model(entry, "fp32", KEPT / "exports")
    assert export.delegates is not None
    assert [each["backend"] for each in export.delegates] == ["CoreMLBackend"]
    [left] = export.portable
    assert left["operator"] == "aten.index_put_.default"
    assert left["reason"].startswith("left out of Core ML: coremltools 9.0 cannot convert a write")


def test_what_another_delegate_takes_after_one_that_converts_stays_in_fp32() -> None:
    # given two products, of which the first delegate takes one and XNNPACK the other
    import torch
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower
    from executorch.exir.backend.test.op_partitioner_demo import AddMulPartitionerDemo

    class Products(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.weights = torch.nn.Parameter(torch.ones(4, 2))
            self.last = torch.nn.Linear(2, 3)

        def forward(self, x: torch.Tensor) -> Any:
            return self.last(torch.mm(x, self.weights))

    program = torch.export.export(Products(), (torch.ones(2, 4),))
    edge = to_edge_transform_and_lower(program, partitioner=[AddMulPartitionerDemo(), XnnpackPartitioner()])
    recipe = Lowering("coreml+xnnpack").traced_recipe(parse_recipe("fp16"))
    layers = list_layers(edge.exported_program(), recipe, {"BackendWithCompilerDemo"})
    # then each layer has the type that its delegate computes in
    assert layers is not None
    assert {each["module"]: each["type"] for each in layers} == {"": "fp16", "last": "fp32"}
    assert describe_conversion(layers) == (
        "1 of 2 linear layers converted (57.1 % of the weights); only BackendWithCompilerDemo converts to fp16"
    )


@pytest.mark.parametrize("precision", ["bf16", "int8_dynamic", "int4_dynamic g128"])
def test_a_recipe_that_core_ml_cannot_state_is_skipped_with_the_reason(precision: str) -> None:
    with pytest.raises(NotApplicableError, match=f"^Core ML does not support {precision}: "):
        Lowering("coreml").check_recipe(parse_recipe(precision))


def test_recipes_are_checked_for_every_delegate_of_a_list() -> None:
    for precision, sentence in (
        ("bf16", "Core ML does not support bf16: it has no such type"),
        ("fp16", "Core ML does not support fp16 after another delegate: .*; state `coreml` first"),
    ):
        with pytest.raises(NotApplicableError, match=f"^{sentence}"):
            Lowering("xnnpack+coreml").check_recipe(parse_recipe(precision))
    # and what the first one leaves of a quantized model is in fp32
    Lowering("xnnpack+coreml").check_recipe(parse_recipe("int8_dynamic"))


def test_a_missing_package_without_an_extra_is_installed_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("tasks.export.lowering.delegates.importlib.metadata.version", version)
    with pytest.raises(FarmError) as refused:
        Lowering("coreml").check_recipe(parse_recipe("fp32"))
    assert str(refused.value) == (
        "coremltools is not installed, which Core ML needs to export; install it: pip install coremltools"
    )


def test_every_delegate_that_a_sweep_may_state_can_be_exported() -> None:
    assert EXPORT_DELEGATES.keys() == DELEGATES.keys()


@pytest.mark.skipif(sys.platform == "darwin", reason="a Mac exports for MLX")
def test_mlx_is_one_sentence_on_another_machine_than_a_mac() -> None:
    with pytest.raises(NotHereError, match=r"^MLX exports only on a Mac with Apple silicon, .*; export there, "):
        Lowering("mlx").check_recipe(parse_recipe("fp32"))
