"""What ExecuTorch computes wrong is found by halving the graph, with its module and line."""

from pathlib import Path
from typing import Any

import pytest

from tasks.export.accuracy_limits import max_margin, recipe_limits
from tasks.export.conversion import fault_sentence
from tasks.export.factory import Method
from tasks.export.lowering import lower
from tasks.export.outputs import fault_search
from tasks.export.outputs.fault_search import RUNTIME_TOLERANCE, find_fault, output_error
from tasks.export.references import CaseInputs
from tests.fixtures.exports import as_module, build_here

pytestmark = pytest.mark.torch
torch: Any = pytest.importorskip("torch", reason="torch is not installed (export extra)")


class Exponential(torch.nn.Module):  # type: ignore[misc]
    """XNNPACK's exp of NaN is 0 (ExecuTorch 1.5.1)."""

    def forward(self, values: Any) -> Any:
        return torch.exp(values)


class Wrong(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.first, self.exp, self.last = torch.nn.ReLU(), Exponential(), torch.nn.Sigmoid()

    def forward(self, values: Any) -> Any:
        return self.last(self.exp(self.first(values)))


VALUES = (torch.tensor([[1.0, float("nan"), 2.0]]),)


def fault_of(module: Any, inputs: tuple[Any, ...], **method: Any) -> dict[str, Any]:
    case = CaseInputs("", Method("forward", module, inputs, **method), inputs)
    return find_fault(case, torch.export.export(module, inputs), None)


@pytest.mark.thorough
def test_the_operator_is_found_between_others_with_its_module_line_and_element() -> None:
    fault = fault_of(Wrong(), VALUES)
    assert (fault["operator"], fault["module"], fault["kernel"]) == ("aten.exp.default", "exp", "XNNPACK")
    assert (fault["element"], fault["actual"], fault["expected"]) == ([0, 1], "0", "nan")
    assert "test_fault_search.py, line 25: `return torch.exp(values)`" in fault["line"]
    sentence = fault_sentence(fault, "1.5.1")
    assert sentence.startswith("ExecuTorch 1.5.1 computes aten.exp.default in exp (")
    assert "element [0, 1] is 0, in eager PyTorch nan" in sentence


def test_a_portable_kernel_whose_result_has_a_size_that_depends_on_data_is_found() -> None:
    torch.manual_seed(0)
    fault = fault_of(as_module(lambda values: torch.nonzero(values > 0)), (torch.randn(4, 4),))
    assert (fault["operator"], fault["kernel"]) == ("aten.nonzero.default", "aten::nonzero.out")


def test_a_fault_of_operators_that_the_partitioner_takes_as_one_layer_is_found() -> None:
    # given weights that torchao quantized, whose products XNNPACK computes wrong in the layer that they come from
    from torchao.quantization import Int8WeightOnlyConfig, quantize_

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 4))
    quantize_(model, Int8WeightOnlyConfig())
    fault = fault_of(model.eval(), (torch.randn(2, 8),))
    assert (fault["module"], fault["kernel"], fault["cause"]) == ("0", "XNNPACK", None)


@pytest.mark.parametrize(
    ("module", "method", "cause"),
    [
        (Wrong(), {"steps": 2}, "it has a set-up or several steps"),
        (torch.nn.ReLU(), {}, "each operator alone is right"),
    ],
)
def test_a_fault_that_is_not_found_has_a_cause(module: Any, method: dict[str, Any], cause: str) -> None:
    fault = fault_of(module, VALUES, **method)
    assert (fault["operator"], fault["cause"]) == (None, cause)
    assert fault_sentence(fault, None).endswith(f"which operator it is was not found: {cause}")


def test_a_search_that_takes_too_long_names_the_operators_that_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fault_search, "_MAX_SEARCH_S", 0.0)
    assert fault_of(Wrong(), VALUES)["cause"] == "it is one of the 3 operators from relu to sigmoid"


def test_an_export_records_what_is_wrong_and_what_is_random(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lower, "find_fault", lambda case, *_: {"operator": case.method.name})

    def drop(values: Any) -> Any:
        return torch.nn.functional.dropout(values, 0.5, training=True)

    for module, inputs, key in ((Wrong(), VALUES, "fault"), (as_module(drop), (torch.randn(50),), "random")):
        built = build_here(module, inputs, "fp32", tmp_path / key)["methods"]["forward"]
        fault = {"operator": "forward"} if key == "fault" else None
        assert (built["fault"], bool(built["random"])) == (fault, key == "random")


LARGEST = as_module(lambda values: values.max(-1))
FLOATS, INTEGERS = torch.tensor([[1.0, 2.0]]), torch.tensor([[1, 2]])


@pytest.mark.parametrize(
    ("inputs", "other_value", "other_index", "is_wrong"),
    [
        pytest.param(FLOATS, 2.0, 0, False, id="a choice between nearly equal values"),
        pytest.param(FLOATS, 2 * (1 + 0.9e-4 * RUNTIME_TOLERANCE), 0, False, id="values within the tolerance"),
        pytest.param(FLOATS, 2 * (1 + 1.1e-4 * RUNTIME_TOLERANCE), 1, True, id="values beyond it"),
        pytest.param(INTEGERS, 2, 0, True, id="a program of integers alone"),
        pytest.param(INTEGERS, 2, 1, False, id="equal integers"),
    ],
)
def test_integers_may_follow_floats(inputs: Any, other_value: float, other_index: int, is_wrong: bool) -> None:
    program = torch.export.export(LARGEST, (inputs,))
    value, index = LARGEST(inputs)
    host = [torch.full_like(value, other_value), torch.full_like(index, other_index)]
    assert output_error("", host, [value, index], program, "fp32", list).is_wrong == is_wrong
    # and one of another shape is wrong
    other_shape = output_error("", [value, index[None]], [value, index], program, "fp32", list)
    assert other_shape.is_wrong
    assert "differ from eager PyTorch's in their shapes" in other_shape.sentence


@pytest.mark.parametrize(
    ("times", "sentence"),
    [
        (0.99, "outputs of tg4 differ from eager PyTorch's by 0 times the tolerance"),
        (1.01, "token 1 of tg4 differs from eager PyTorch's by a margin of 0.00202, limit 0.002"),
    ],
)
def test_a_token_is_wrong_beyond_the_margin_of_a_session(times: float, sentence: str) -> None:
    # given a text whose second token is the second likeliest, and a program that computes floating-point values
    eager, host = torch.tensor([5, 6, 7]), torch.tensor([5, 8, 9])
    margin = times * max_margin(recipe_limits("fp32", None).eager_db)
    choices = [torch.tensor([[5, 0], [6, 8], [7, 0]]), torch.tensor([[0.0, 1.0], [0.0, margin], [0.0, 1.0]])]
    error = output_error("tg4", [host], [eager], torch.export.export(LARGEST, (FLOATS,)), "fp32", lambda: choices)
    assert error.is_wrong == (times > 1)
    assert error.sentence.startswith(sentence)
