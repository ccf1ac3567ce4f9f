"""Exports for stated delegates: your own partitioner, what a backend took, what takes nothing, and their keys."""

from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from devices.errors import FarmError
from tasks.export import key
from tasks.export.conversion import describe_shares
from tasks.export.convert import convert
from tasks.export.entry import ExportRequest, ModelEntry, parse_entry
from tasks.export.export import export_cases
from tasks.export.exported import Export, ExportError, NotApplicableError, NotHereError
from tasks.export.factory import build_methods
from tasks.export.key import export_key
from tasks.export.lowering.delegates import Lowering
from tasks.export.process.child import ExportOutcome
from tasks.export.recipes import parse_recipe
from tests.fixtures.exports import as_module, export_model

OWN = """
import torch

class Sums(torch.nn.Module):
    def forward(self, x):
        return torch.sin(x @ x) + x @ x

def make():
    return Sums().eval(), (torch.rand(4, 4),)

def waves():
    return torch.nn.Tanh().eval(), (torch.rand(4, 4),)

def sums_first():
    from executorch.exir.backend.test.op_partitioner_demo import AddMulPartitionerDemo
    return [AddMulPartitionerDemo()]

def text():
    return "sums"

def with_options(device):
    return None
"""


@pytest.fixture
def exports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The exports folder of a working directory with models and partitioners of our own."""
    monkeypatch.chdir(tmp_path)
    Path("ours.py").write_text(OWN, encoding="utf-8")
    return tmp_path / "exports"


def with_delegate(model: str, word: str) -> ModelEntry:
    entry = parse_entry(model)
    return entry.model_copy(update={"name": f"{entry.name}@delegate={word}"})


@pytest.mark.thorough
@pytest.mark.torch
def test_your_own_partitioner_takes_its_operators_and_the_farm_tries_only_what_it_can_execute(exports: Path) -> None:
    export = export_model(with_delegate("ours:make", "ours:sums_first"), "fp32", exports)
    # then two products and a sum are taken, and the sine is portable without an invented reason
    assert export.delegates == [{"backend": "BackendWithCompilerDemo", "operators": 3, "macs": 128}]
    assert (export.portable, export.portable_operators) == (
        [{"operator": "aten.sin.default", "count": 1, "reason": None}],
        1,
    )
    assert export.trial == "not tried here: this machine does not have the backend BackendWithCompilerDemo"
    # and the function's file is part of the key
    request = ExportRequest(with_delegate("ours:make", "ours:sums_first"), "fp32", exports)
    before = export_key(request)
    assert export.export_key == before
    Path("ours.py").write_text(OWN + "# edited\n", encoding="utf-8")
    assert export_key(request) != before


@pytest.mark.torch
def test_a_delegate_that_takes_nothing_is_skipped_with_what_the_rest_would_be(exports: Path) -> None:
    with pytest.raises(NotApplicableError) as skipped:
        export_model(with_delegate("ours:waves", "ours:sums_first+xnnpack"), "fp32", exports)
    assert str(skipped.value) == (
        "no part of the graph: ours:sums_first takes none of the 1 operators; the program would be that of `xnnpack`"
    )


@pytest.mark.torch
@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        ("text", "ours:text must return a partitioner of executorch, or a list of them, not str"),
        ("with_options", "`def with_options(device):`: a function that etfarm calls takes no arguments"),
        ("sums", "ours.py: no function named sums; it has make, waves, sums_first, text, with_options"),
    ],
)
def test_a_mistake_in_your_own_partitioner_is_one_sentence(exports: Path, function: str, sentence: str) -> None:
    with pytest.raises(ExportError) as refused:
        export_model(with_delegate("ours:make", f"ours:{function}"), "fp32", exports)
    assert sentence in str(refused.value)


@pytest.mark.parametrize("word", ["openvino", "openvino+xnnpack"])
def test_the_version_of_openvino_is_part_of_the_keys_that_state_it_and_of_no_other(
    word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = (parse_entry("toy_cnn"), with_delegate("toy_cnn", "portable"), with_delegate("toy_cnn", word))
    requests = [ExportRequest(each, "fp32", tmp_path) for each in models]
    before, version = [export_key(each) for each in requests], key._version
    monkeypatch.setattr(
        key, "_version", lambda name, *others: "2025.9" if name == "openvino" else version(name, *others)
    )
    assert [export_key(each) == old for each, old in zip(requests, before, strict=True)] == [True, True, False]


@pytest.mark.parametrize(
    ("word", "precision", "is_installed", "error", "sentence"),
    [
        ("openvino", "bf16", True, NotApplicableError, "OpenVINO does not support bf16: its programs have no inputs"),
        ("openvino", "fp32", False, FarmError, "openvino is not installed, which OpenVINO needs to export; install"),
    ],
)
def test_what_a_delegate_cannot_lower_is_stated_before_the_model_is_loaded(
    word: str,
    precision: str,
    is_installed: bool,
    error: type[FarmError],
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def version(name: str) -> str:
        if not is_installed:
            raise PackageNotFoundError(name)
        return "2025.4.1"

    monkeypatch.setattr("tasks.export.lowering.delegates.importlib.metadata.version", version)
    monkeypatch.setattr("tasks.export.lowering.openvino.sys.platform", "linux")
    with pytest.raises(error, match=sentence) as refused:
        Lowering(word).check_recipe(parse_recipe(precision))
    assert type(refused.value) is error
    Lowering("portable").check_recipe(parse_recipe(precision))


def test_dynamic_shapes_are_skipped_for_a_delegate_that_computes_them_wrong() -> None:
    with pytest.raises(NotApplicableError, match="OpenVINO does not support dynamic shapes"):
        Lowering("openvino+xnnpack").check_shapes(is_dynamic=True)
    Lowering("openvino").check_shapes(is_dynamic=False)
    Lowering().check_shapes(is_dynamic=True)


def test_what_another_machine_can_export_is_skipped_here_and_not_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = ExportOutcome(skipped="MLX exports only on a Mac", is_of_machine=True)
    asked = list[object]()

    def run_export(request: ExportRequest, *_: object) -> ExportOutcome:
        asked.append(request)
        return answer

    monkeypatch.setattr("tasks.export.process.run.run_export", run_export)
    with pytest.raises(NotHereError, match=r"^MLX exports only on a Mac$"):
        export_cases(ExportRequest(with_delegate("toy_cnn", "portable"), "fp32", tmp_path))
    assert asked
    # and no process is started to find out what needs no torch
    monkeypatch.setattr("tasks.export.lowering.apple.sys.platform", "linux")
    with pytest.raises(NotHereError, match=r"^MLX exports only on a Mac with"):
        export_cases(ExportRequest(with_delegate("toy_cnn", "mlx"), "fp32", tmp_path))
    assert len(asked) == 1
    assert not (tmp_path / "skipped").exists()


def shares(*delegates: tuple[str, int, int], portable: tuple[int, int]) -> Any:
    listed = [dict(zip(("backend", "operators", "macs"), each, strict=True)) for each in delegates]
    macs = sum(macs for _, _, macs in delegates) + portable[1]
    rest = [{"operator": "aten.atan.default", "count": portable[0]}, {"operator": "aten.sym_size.int", "count": 3}]
    return SimpleNamespace(
        delegates=listed, portable=rest, portable_operators=portable[0], portable_macs=portable[1], macs=macs
    )


def test_what_each_backend_took_is_stated_by_operators_and_multiply_accumulates() -> None:
    both = shares(("OpenvinoBackend", 97, 998), ("XnnpackBackend", 2, 2), portable=(1, 0))
    assert describe_shares(both) == (
        "OpenVINO took 97 of 100 operators and 99.8 % of the multiply-accumulates; "
        "XNNPACK took 2 of 100 operators and 0.2 % of the multiply-accumulates; "
        "portable: 1 of 100 operators and 0 % of the multiply-accumulates (aten.atan.default x 1)"
    )
    # and a part that there is not is not stated
    assert describe_shares(shares(("OpenvinoBackend", 9, 9), ("XnnpackBackend", 0, 0), portable=(0, 0))) == (
        "OpenVINO took 9 of 9 operators and 100 % of the multiply-accumulates; XNNPACK took none"
    )
    assert describe_shares(shares(("XnnpackBackend", 9, 9), portable=(1, 0))) is None


def parts(export: Export) -> tuple[int, int | None]:
    """The sums of what the backends took and of the rest, by operators and by multiply-accumulates."""
    assert export.delegates is not None
    assert export.portable_operators is not None
    operators = export.portable_operators + sum(each["operators"] for each in export.delegates)
    if export.portable_macs is None:
        return operators, None
    return operators, export.portable_macs + sum(each["macs"] for each in export.delegates)


@pytest.mark.thorough
@pytest.mark.torch
def test_the_parts_add_up_to_the_operators_and_the_work_of_the_method(toys: dict[str, Export]) -> None:
    for export in toys.values():
        assert parts(export) == (sum(each["count"] for each in (*export.delegated, *export.portable)), export.macs)


@pytest.mark.thorough
@pytest.mark.torch
def test_openvino_gets_no_quantization_before_a_function_that_limits_values_and_is_quantized_itself() -> None:
    # given a convolution, relu6 and an addition, each quantized by XNNPACK's quantizer
    torch: Any = pytest.importorskip("torch")
    convolution = torch.nn.Conv2d(3, 4, 3)
    module = as_module(lambda x: torch.nn.functional.relu6(convolution(x)) + 1.0)
    [method] = build_methods({"module": module, "inputs": (torch.rand(1, 3, 8, 8),)}, "make")

    def between(lowering: Lowering) -> list[str]:
        recipe = parse_recipe("int8_static")
        graph = convert(method, recipe, None, lowering.after_quantizing, folds_weights=False).program.graph
        (limit,) = (each for each in graph.nodes if "hardtanh" in str(each.target) or "relu6" in str(each.target))
        return [str(limit.args[0].target), *(str(user.target) for user in limit.users)]

    quantize = "quantized_decomposed.quantize_per_tensor.default"
    assert between(Lowering()) == ["quantized_decomposed.dequantize_per_tensor.default", quantize]
    assert between(Lowering("openvino")) == ["aten.conv2d.default", quantize]


@pytest.mark.thorough
@pytest.mark.torch
def test_weights_for_openvino_leave_room_for_the_sum_of_two_products_in_16_bits() -> None:
    torch: Any = pytest.importorskip("torch")
    [method] = build_methods({"module": torch.nn.Linear(16, 4), "inputs": (torch.rand(1, 16),)}, "make")

    def largest(lowering: Lowering) -> int:
        recipe = parse_recipe("int8_static")
        module = convert(method, recipe, None, lowering.after_quantizing, folds_weights=False).reference
        (quantize,) = (each for each in module.graph.nodes if ".quantize_per_channel" in str(each.target))
        weight, scale = (module.state_dict()[each.target] for each in quantize.args[:2])
        return int(torch.round(weight / scale[:, None]).abs().max())

    # then an unsigned activation times a weight, twice, fits
    assert (largest(Lowering()), largest(Lowering("openvino"))) == (127, 64)
    assert 2 * 255 * 64 <= 2**15 - 1 < 2 * 255 * 127
