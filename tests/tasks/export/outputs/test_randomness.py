"""A model that is random in evaluation mode is named with the operator, the module and the line."""

import random
from typing import Any

import pytest

from tasks.export.conversion import random_sentence
from tasks.export.factory import Method
from tasks.export.outputs import randomness
from tasks.export.outputs.randomness import draws_in, find_random
from tasks.export.references import CaseInputs
from tests.fixtures.exports import as_module

pytestmark = pytest.mark.torch
torch: Any = pytest.importorskip("torch", reason="torch is not installed (export extra)")


class Noise(torch.nn.Module):  # type: ignore[misc]
    def forward(self, values: Any) -> Any:
        return values + torch.randn_like(values)


def draws_of(module: Any) -> list[dict[str, Any]]:
    inputs = (torch.ones(20),)
    case = CaseInputs("", Method("forward", module.eval(), inputs), inputs)
    return find_random({"forward": module}, [case], "float32")


def test_each_line_that_draws_is_named_once_with_its_module() -> None:
    noise = Noise()
    [draw] = draws_of(torch.nn.Sequential(torch.nn.Dropout(0.5), noise, noise))
    assert (draw["method"], draw["module"], draw["operator"]) == ("forward", "1", "aten.randn_like.default")
    assert "test_randomness.py, line 21: `return values + torch.randn_like(values)`" in draw["line"]
    assert random_sentence(draw).startswith("random in evaluation mode: aten.randn_like.default in 1 (")


def test_numbers_that_pytorch_does_not_draw_are_random_without_an_operator() -> None:
    [draw] = draws_of(as_module(lambda values: values + random.random()))
    assert (draw["module"], draw["operator"], draw["line"]) == (None, None, None)
    assert "no operator of PyTorch draws random numbers" in random_sentence(draw)


@pytest.mark.parametrize("module", [torch.nn.Dropout(0.5), as_module(lambda values: values + 0 * torch.rand(1))])
def test_a_model_with_equal_outputs_is_not_random(module: Any) -> None:
    assert draws_of(module) == []


def test_the_search_leaves_the_random_numbers_of_the_export_and_buffers_as_they_were() -> None:
    module = torch.nn.Sequential(Noise(), torch.nn.BatchNorm1d(20))
    module[1].running_mean.fill_(3.0)
    torch.manual_seed(7)
    before = torch.get_rng_state()
    inputs = (torch.ones(2, 20),)
    find_random({"forward": module}, [CaseInputs("", Method("forward", module, inputs), inputs)], "float32")
    assert torch.equal(torch.get_rng_state(), before)
    assert module[1].running_mean.eq(3.0).all()


def test_a_draw_behind_an_empty_module_is_found() -> None:
    """`bool` of an empty Sequential, as in the shortcut of a block, is False."""
    [draw] = draws_of(torch.nn.Sequential(torch.nn.Sequential(), Noise()))
    assert (draw["module"], draw["operator"]) == ("1", "aten.randn_like.default")


class Stored(torch.nn.Module):  # type: ignore[misc]
    """Reads a row of its table that only exists after `row` was written."""

    def __init__(self) -> None:
        super().__init__()
        self.row: torch.Tensor
        self.register_buffer("row", torch.tensor([-1]))
        self.table = torch.nn.Embedding(3, 4)

    def forward(self, _values: Any) -> Any:
        return self.table(self.row)


class Store(Stored):
    def forward(self, values: Any) -> Any:
        return self.row.copy_(values)


def test_a_method_that_needs_its_set_up_is_executed_after_it() -> None:
    read, write = Stored(), Store()
    method = Method("read", read, (torch.ones(1),), setup=("write", [(torch.tensor([2]),)]))
    assert find_random({"write": write, "read": read}, [CaseInputs("", method, method.inputs)], "float32") == []
    assert (read.row, write.row) == (-1, -1)


def test_a_search_that_fails_makes_only_its_method_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_outputs: Any, **_options: Any) -> float:
        raise ValueError("no distance")

    [noise] = draws_of(Noise())
    monkeypatch.setattr(randomness, "largest_distance", fails)
    [unknown] = draws_of(torch.nn.ReLU())
    assert unknown == dict.fromkeys(("module", "operator", "line")) | {
        "method": "forward",
        "cause": "ValueError: no distance",
    }
    draws = [unknown, noise | {"method": "noise"}]
    assert draws_in("forward", draws) is None
    assert draws_in("noise", draws) == [{key: noise[key] for key in ("module", "operator", "line")}]
    assert draws_in("other", draws) == []
