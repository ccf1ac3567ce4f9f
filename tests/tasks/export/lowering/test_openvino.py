"""Programs for OpenVINO: what it takes of models, in which type it computes, and an int8 model."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tasks.export.accuracy_limits import recipe_limits
from tasks.export.entry import parse_entry
from tasks.export.exported import Export
from tasks.export.lowering.delegates import Lowering
from tasks.export.outputs.difference import compare_values
from tasks.export.recipes import parse_recipe
from tests.fixtures.exports import as_module, export_model, read_tensors
from tests.fixtures.paths import KEPT

pytestmark = [pytest.mark.torch, pytest.mark.thorough]
torch: Any = pytest.importorskip("torch", reason="torch is not installed (export extra)")
if find_spec("openvino") is None:  # importing it here would load its libraries
    pytest.skip("openvino is not installed (openvino extra)", allow_module_level=True)


def for_openvino(model: str, precision: str, word: str = "openvino") -> Export:
    entry = parse_entry(model)
    return export_model(entry.model_copy(update={"name": f"{entry.name}@delegate={word}"}), precision, KEPT / "exports")


def snr_db(export: Export, reference: list[dict[str, Any]]) -> float:
    """SNR of the outputs on this machine."""
    pairs = zip(
        read_tensors(export.folder, export.case.outputs_host), read_tensors(export.folder, reference), strict=True
    )
    return min(float(compare_values(*pair).snr_db or 999) for pair in pairs)


@pytest.mark.parametrize("model", ["toy_cnn", "bert_tiny"])
def test_openvino_takes_all_operators_and_computes_fp32_as_such_also_where_it_could_in_bf16(model: str) -> None:
    export = for_openvino(model, "fp32")
    assert (export.trial, export.portable_operators, export.portable_macs) == ("succeeded", 0, 0)
    assert export.delegates == [
        {
            "backend": "OpenvinoBackend",
            "operators": sum(each["count"] for each in export.delegated),
            "macs": export.macs,
        }
    ]
    # then the outputs are far closer to eager PyTorch's than bf16 allows, 50 dB
    assert snr_db(export, export.outputs) > recipe_limits("fp32", None).host_db
    assert export.versions["openvino"]


def test_an_int8_model_is_stored_as_such_and_is_as_accurate_as_the_recipe_demands() -> None:
    export, limits = for_openvino("toy_cnn", "int8_static"), recipe_limits("int8_static", None)
    assert {layer["type"] for layer in export.layers} == {"int8"}
    assert export.pte_bytes < for_openvino("toy_cnn", "fp32").pte_bytes
    assert snr_db(export, export.outputs) > limits.eager_db
    assert snr_db(export, export.case.outputs_fp32) > limits.fp32_db


def test_what_openvino_does_not_take_is_portable_with_its_reason_and_the_next_delegates(tmp_path: Path) -> None:
    from tasks.export.factory import build_methods
    from tasks.export.lowering import lower

    module = as_module(lambda x: torch.atan(torch.relu(x @ x)))
    methods = build_methods({"module": module, "inputs": (torch.rand(4, 4),)}, "make")
    built = lower.build(methods, parse_recipe("fp32"), tmp_path, Lowering("openvino+xnnpack"))
    method = built["methods"]["forward"]
    assert [(each["backend"], each["operators"]) for each in method["delegates"]] == [
        ("OpenvinoBackend", 2),
        ("XnnpackBackend", 0),
    ]
    (arc_tangent,) = method["portable"]
    assert arc_tangent["reason"] == (
        "OpenVINO's partitioner does not support this operator; XNNPACK's partitioner has no rule for this operator"
    )


def test_operators_that_openvino_asks_to_keep_whole_and_does_not_take_are_decomposed(tmp_path: Path) -> None:
    from tasks.export.factory import build_methods
    from tasks.export.lowering import lower

    functional = torch.nn.functional
    module = as_module(
        lambda x: functional.interpolate(functional.pixel_shuffle(x * 2, 2), scale_factor=2.0, mode="bilinear")
    )
    methods = build_methods({"module": module, "inputs": (torch.rand(1, 4, 3, 3),)}, "make")
    built = lower.build(methods, parse_recipe("fp32"), tmp_path, Lowering("openvino"))
    assert built["trial"] == "succeeded"
    assert built["methods"]["forward"]["delegates"][0]["operators"] > 1
