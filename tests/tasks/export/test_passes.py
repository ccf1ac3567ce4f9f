"""The farm's passes: one that fails or changes what a program computes is left out, with a sentence."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks.export.lowering import lower
from tasks.export.lowering.passes import LeftOut, Passes, largest_distance
from tasks.export.lowering.rewrites import attention_as_products
from tests.fixtures.exports import build_here, max_error

pytestmark = pytest.mark.torch
torch: Any = pytest.importorskip("torch", reason="torch is not installed (export extra)")


class Summed(torch.nn.Module):  # type: ignore[misc]
    """A cumulative sum, which XNNPACK does not execute, and a state."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, values: Any) -> Any:
        self.count.add_(1)
        return values.cumsum(0) + self.count


def exported(*inputs: Any, **named: Any) -> Any:
    return torch.export.export(Summed(), inputs, **named)


def replaced(condition: Callable[[Any], bool], other: Any) -> Callable[[Any], Any]:
    """A pass that replaces the operators of some nodes."""

    def a_pass(program: Any) -> Any:
        nodes = [node for node in program.graph.nodes if condition(node)]
        for node in nodes:
            node.target = other
        program.graph_module.recompile()
        return program if nodes else None

    return a_pass


def failing(program: Any) -> Any:
    raise LookupError("no such node")


def harmless(program: Any) -> Any:
    program.graph.eliminate_dead_code()
    return program


def idle(program: Any) -> None:
    """Changes nothing."""


def test_a_pass_that_fails_or_changes_values_or_state_is_left_out_and_the_others_stay() -> None:
    # given a program, and passes of which some are wrong
    inputs = (torch.rand(3, 4),)
    program = exported(*inputs)
    before = str(program.graph)
    wrong_value = replaced(lambda node: "cumsum" in str(node.target), torch.ops.aten.cumprod.default)
    wrong_state = replaced(lambda node: "add_" in str(node.target), torch.ops.aten.add.Tensor)
    passes = Passes({"forward": [inputs]})
    # when they are applied
    changed = passes.apply("forward", program, [harmless, failing, wrong_value, wrong_state, idle])
    # then the wrong ones are left out, each with its cause
    assert [each.step for each in passes.left_out] == ["failing", "a_pass", "a_pass"]
    assert passes.left_out[0] == LeftOut("failing", "forward", "it failed (LookupError: no such node)")
    assert all("outputs after it differ" in each.reason for each in passes.left_out[1:])
    # the others are applied to a copy
    assert passes.applied == {"harmless"}
    assert changed is not program
    assert str(program.graph) == before


@pytest.mark.parametrize(
    ("lengths", "limits", "label"),
    [((3, 9), (None, 3.0), "the inputs of a case"), ((3,), (0.0, None), "random inputs")],
)
def test_a_pass_is_compared_at_every_measured_shape_and_with_values_that_no_example_has(
    lengths: tuple[int, ...], limits: tuple[float | None, float | None], label: str
) -> None:
    def limiting(program: Any) -> Any:
        cumsum = next(node for node in program.graph.nodes if "cumsum" in str(node.target))
        with program.graph.inserting_after(cumsum):
            cut = program.graph.call_function(torch.ops.aten.clamp.default, (cumsum, *limits))
        cumsum.replace_all_uses_with(cut, delete_user_cb=lambda user: user is not cut)
        program.graph_module.recompile()
        return program

    # given a pass that is right for the sums of the first example
    samples = [(torch.full((length, 1), 0.5),) for length in lengths]
    program = exported(*samples[0], dynamic_shapes=({0: torch.export.Dim.AUTO},))
    passes = Passes({"forward": samples})
    # when another shape or another value gives another sum, then it is left out
    assert passes.apply("forward", program, [limiting]) is program
    [left_out] = passes.left_out
    assert left_out.reason.startswith(f"with {label}, outputs after it differ")


@pytest.mark.parametrize(
    ("actual", "distance"),
    [
        ([1.0, float("nan"), float("inf")], 0.0),
        ([1.0, 2.0, float("inf")], float("inf")),
        ([1.5, float("nan"), float("inf")], 0.5),
        ([1.0, float("nan"), -float("inf")], float("inf")),
    ],
)
def test_not_a_number_and_infinity_equal_themselves(actual: list[float], distance: float) -> None:
    expected = [torch.tensor([1.0, float("nan"), float("inf")])]
    assert largest_distance([torch.tensor(actual)], expected, with_integers=True) == distance


def test_a_model_with_a_branch_is_exported_without_an_etrecord_and_a_number_of_macs(tmp_path: Path) -> None:
    class Branching(torch.nn.Module):  # type: ignore[misc]
        def forward(self, values: Any, number: Any) -> Any:
            return torch.cond(number > 2, lambda values: values * 2, lambda values: values + 1, (values,))

    built = build_here(Branching(), (torch.randn(4), torch.tensor(3)), "fp32", tmp_path)
    assert (built["trial"], built["methods"]["forward"]["macs"]) == ("succeeded", None)
    assert max_error(tmp_path, built["cases"][0]) < 1e-5
    assert [each["step"] for each in built["left_out"]] == ["ETRecord"]
    assert not (tmp_path / "model.etrecord").exists()
    assert all(path.is_file() for path in tmp_path.iterdir())


@pytest.mark.thorough  # it lowers twice
def test_attention_with_a_row_without_a_key_is_left_as_it_is() -> None:
    class Attention(torch.nn.Module):  # type: ignore[misc]
        def forward(self, query: Any, mask: Any) -> Any:
            return torch.nn.functional.scaled_dot_product_attention(query, query, query, attn_mask=mask)

    # given a mask whose last rows allow no key, for which the pass computes other values
    is_kept = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    inputs = torch.randn(2, 2, 5, 8), is_kept[:, None, :, None] & is_kept[:, None, None, :]
    program, passes = torch.export.export(Attention(), inputs), Passes({"forward": [inputs]})
    assert passes.apply("forward", program, [attention_as_products]) is program
    assert [each.step for each in passes.left_out] == ["attention_as_products"]


def test_a_program_that_lowers_only_without_passes_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # given a pass to an operator that eager PyTorch has and ExecuTorch does not
    library = torch.library.Library("test_passes", "DEF")
    library.define("cumsum(Tensor values, int dim) -> Tensor")
    library.impl("cumsum", lambda values, dim: values.cumsum(dim), "CompositeExplicitAutograd")
    unknown = replaced(lambda node: "cumsum" in str(node.target), torch.ops.test_passes.cumsum.default)
    monkeypatch.setattr(lower, "_PASSES", (unknown,))
    # then the plain program is exported, with the cause
    built = build_here(Summed(), (torch.rand(3, 4),), "fp32", tmp_path)
    assert max_error(tmp_path, built["cases"][0]) < 1e-5
    [left_out] = built["left_out"]
    assert (left_out["step"], left_out["method"]) == ("a_pass", None)
    assert "test_passes::cumsum" in left_out["reason"]


def test_a_pass_that_is_wrong_only_when_executed_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # given a last pass, which eager PyTorch cannot check, that sums along another dimension
    def write_in_place(program: Any) -> bool:
        for node in program.graph.nodes:
            if "cumsum" in str(node.target):
                node.args = (node.args[0], 1)
        program.graph_module.recompile()
        return True

    monkeypatch.setattr(lower, "write_in_place", write_in_place)
    built = build_here(Summed(), (torch.rand(3, 4),), "fp32", tmp_path)
    # then the plain program is exported
    assert max_error(tmp_path, built["cases"][0]) < 1e-5
    [left_out] = built["left_out"]
    assert left_out["step"] == "write_in_place"
    assert re.fullmatch(r"outputs differ .* by (\S+) times .*; without it, outputs .* \S+ times .*", left_out["reason"])


def test_a_pass_that_changes_a_shape_is_left_out_for_that_and_not_for_an_infinite_share() -> None:
    values, argmax = torch.rand(3, 4), torch.ops.aten.argmax.default
    passes = Passes({"forward": [(values,)]})
    passes.apply("forward", exported(values), [replaced(lambda node: "cumsum" in str(node.target), argmax)])
    [left_out] = passes.left_out
    assert left_out.reason.endswith("differ from those before it in their shapes, or in which values are finite")


@pytest.mark.parametrize(
    ("factor", "left_out"),
    [pytest.param(1.030, [], id="30.5 dB"), pytest.param(1.034, ["a_pass"], id="29.4 dB, below the limit of 30")],
)
def test_a_pass_after_which_an_fp16_program_is_inaccurate_is_left_out(
    factor: float, left_out: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a pass that keeps the outputs within what its check allows for rounded programs, 5 %
    class Half(torch.nn.Module):  # type: ignore[misc]
        def forward(self, values: Any) -> Any:
            return values * 0.5

    def a_pass(program: Any) -> Any:
        [product] = [node for node in program.graph.nodes if "mul" in str(node.target)]
        product.args = (product.args[0], 0.5 * factor)
        program.graph_module.recompile()
        return program

    monkeypatch.setattr(lower, "_PASSES", (a_pass,))
    built = build_here(Half(), (torch.rand(30, 40),), "fp16", tmp_path)
    assert [each["step"] for each in built["left_out"]] == left_out
    assert all(re.search(r", SNR 29\.\d dB; without it, outputs", each["reason"]) for each in built["left_out"])
