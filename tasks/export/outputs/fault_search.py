"""Find the operator that ExecuTorch computes wrong, by halving the graph.

A part of a program, lowered without the farm's passes, returns its last value and those that the rest reads. The part
is executed on this machine and in eager PyTorch. Layer probes are no help here: a tap at every layer keeps operators
from being fused, and a fault of the fused ones disappears.
"""

import logging
import math
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.export.accuracy_limits import max_margin, recipe_limits
from tasks.export.exported import first_line
from tasks.export.factory import Inputs, Method
from tasks.export.lowering.passes import largest_distance, output_tolerance
from tasks.export.lowering.trial import execute_on_host
from tasks.export.outputs.difference import compare_values, first_difference
from tasks.export.process.sandbox import is_failed_allocation
from tasks.export.program import read_program
from tasks.export.references import CaseInputs, Outputs, restored_state
from tasks.export.user_code import locations_in, user_line

logger = logging.getLogger(__name__)
RUNTIME_TOLERANCE = 10.0
"""Distance from eager PyTorch on this machine, in tolerances of the passes, beyond which a program is wrong. XNNPACK
computes in another order than eager PyTorch."""
_MAX_SEARCH_S = 120.0
_ORIGIN = ("nn_module_stack", "source_fn_stack", "torch_fn", "stack_trace")
"""Metadata of a node that state from which layer it comes."""


@dataclass(frozen=True)
class _WrongValue:
    """A value of a part that ExecuTorch computes wrong, with the first element that differs."""

    node: Any
    element: list[int] | None
    """None if shapes or types differ."""
    actual: str
    expected: str
    kernel: str


@dataclass(frozen=True, order=True)
class OutputError:
    """How far the outputs of a program on this machine are from those of eager PyTorch."""

    is_far: bool = False
    """Whether it is wrong, or a floating-point output is beyond the recipe's limit against eager PyTorch."""
    tolerances: float = 0.0
    """In tolerances of the passes; infinite for other shapes and for a wrong token."""
    sentence: str = "outputs are not compared with eager PyTorch's"

    @property
    def is_wrong(self) -> bool:
        return self.tolerances > RUNTIME_TOLERANCE


def output_error(
    case: str, host: Outputs, eager: Outputs, program: Any, recipe: str, list_choices: Callable[[], Sequence[Any]]
) -> OutputError:
    """Return the error of a case's outputs on this machine against those of eager PyTorch.

    Of nearly equal values, as those that argmax or topk compares, either may be chosen: tokens of a text are wrong
    beyond the margin that a session allows in fp32, and other integers only if the program computes nothing else.
    `list_choices` returns the `likeliest_tokens` of eager's text by `eager`, nothing for other outputs.
    """
    import torch

    of_case, (tolerance, with_integers) = f" of {case}" if case else "", output_tolerance(program)
    distance = largest_distance(host, eager, with_integers=False) / tolerance
    of_all = largest_distance(host, eager, with_integers=with_integers) / tolerance
    if of_all > max(distance, RUNTIME_TOLERANCE):
        if choices := list_choices():
            got, want, *arrays = (each.numpy() for each in (host[0], eager[0], *choices))
            position, margin = first_difference(got, want, arrays)
            limit = max_margin(recipe_limits("fp32", None).eager_db)
            if margin is None or margin > limit:
                by = "an unknown margin" if margin is None else f"a margin of {margin:.3g}, limit {limit:.3g}"
                return OutputError(
                    True, float("inf"), f"token {position}{of_case} differs from eager PyTorch's by {by}"
                )
        else:
            values = [node.meta.get("val") for node in program.graph.nodes]
            has_floats = any(isinstance(each, torch.Tensor) and each.is_floating_point() for each in values)
            distance = distance if has_floats else of_all
    pairs = [
        pair
        for pair in zip(host, eager, strict=False)
        if pair[0].is_floating_point() and pair[0].shape == pair[1].shape
    ]
    levels_db = [compare_values(*(each.detach().double().numpy() for each in pair)).snr_db for pair in pairs]
    snr_db = min((each for each in levels_db if each is not None), default=math.inf)
    far = f"outputs{of_case} differ from eager PyTorch's by {distance:.2g} times the tolerance"
    if math.isinf(distance):
        far = f"outputs{of_case} differ from eager PyTorch's in their shapes, or in which values are finite"
    far += f", SNR {snr_db:.1f} dB" if math.isfinite(snr_db) else ""
    return OutputError(distance > RUNTIME_TOLERANCE or snr_db < recipe_limits(recipe, None).eager_db, distance, far)


def find_fault(case: CaseInputs, program: Any, log: Path | None) -> dict[str, Any]:
    """Return {operator, module, line, kernel, element, actual, expected, cause} of the operator that is wrong first.

    `program` is the case's ExportedProgram, and wrong on this machine. `kernel` is what ExecuTorch executes, `cause` is
    None. If no operator is found, all but `cause` are None. `log` is the file that this process prints to.
    """
    try:
        wrong: _WrongValue | str = _search(case, program, log)
    except Exception as error:
        if is_failed_allocation(error):
            raise
        logger.info("the search for the operator failed", exc_info=True)
        wrong = f"a part of the program cannot be executed ({first_line(error)})"
    if isinstance(wrong, str):
        return dict.fromkeys(("operator", "module", "line", "kernel", "element", "actual", "expected")) | {
            "cause": wrong
        }
    node = wrong.node
    modules = [str(path) for path, _ in (node.meta.get("nn_module_stack") or {}).values()]
    return {
        "operator": str(node.target),
        "module": (modules or [""])[-1] or None,
        "line": user_line(locations_in(node.meta.get("stack_trace") or "")),
        "kernel": wrong.kernel,
        "element": wrong.element,
        "actual": wrong.actual,
        "expected": wrong.expected,
        "cause": None,
    }


def _search(case: CaseInputs, program: Any, log: Path | None) -> _WrongValue | str:
    """Return the wrong value of the shortest part that has one, or why none was found."""
    import torch

    if case.method.setup or case.method.steps:
        return "it has a set-up or several steps"
    module = program.module(check_guards=False)
    ends = [node for node in module.graph.nodes if node.op == "call_function" and _is_tensor(node)]
    started, inputs = time.monotonic(), tuple(torch.utils._pytree.tree_leaves(case.inputs))

    def wrong_value(position: int) -> _WrongValue | None:
        return _compare_part(*_cut(module, ends[position]), inputs, program, log)

    low, high = -1, len(ends) - 1
    wrong = wrong_value(high) if ends else None
    if wrong is None:
        return "each operator alone is right"
    while high - low > 1:
        if time.monotonic() - started > _MAX_SEARCH_S:
            return f"it is one of the {high - low} operators from {ends[low + 1].name} to {ends[high].name}"
        middle = (low + high) // 2
        logger.info("searching the operator that is wrong: %d are left", high - low)
        if earlier := wrong_value(middle):
            wrong, high = earlier, middle
        else:
            low = middle
    return wrong


def _is_tensor(node: Any) -> bool:
    import torch

    return isinstance(node.meta.get("val"), torch.Tensor)


def _cut(module: Any, end: Any) -> tuple[Any, list[Any]]:
    """Return the part of a graph up to `end`, and the nodes that it returns: `end` first, then what the rest reads."""
    import torch

    graph, copied = torch.fx.Graph(), dict[Any, Any]()
    for node in module.graph.nodes:
        copied[node] = graph.node_copy(node, copied.__getitem__)
        # The partitioner reads from which layer an operator comes. Sizes belong to the program that was traced.
        copied[node].meta = {key: node.meta[key] for key in _ORIGIN if key in node.meta}
        if node is end:
            break
    read = [
        node
        for node in copied
        if node is not end
        and node.op == "call_function"
        and _is_tensor(node)
        and any(user not in copied for user in node.users)
    ]
    nodes = [end, *read]
    graph.output(tuple(copied[node] for node in nodes))
    return torch.fx.GraphModule(module, graph), nodes


def _compare_part(part: Any, nodes: Sequence[Any], inputs: Inputs, whole: Any, log: Path | None) -> _WrongValue | None:
    """Return the first value of a part of the program `whole` that is wrong on this machine; None if all are right."""
    import torch
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower

    with torch.no_grad():
        with restored_state({"": part}):
            expected = [each.clone() for each in part(*[each.clone() for each in inputs])]
        program = torch.export.export(part, inputs)
        lowered = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()]).to_executorch()
    with tempfile.TemporaryDirectory() as folder:
        pte = Path(folder, "part.pte")
        pte.write_bytes(lowered.buffer)
        case = CaseInputs("", Method("forward", part, inputs), inputs)
        actual = execute_on_host(pte, [case], log).outputs[""]
        called = {call.operator for method in read_program(pte) for call in method.calls if call.operator}
    tolerance, with_integers = output_tolerance(whole)
    for node, one, other in zip(nodes, actual, expected, strict=True):
        if largest_distance([one], [other], with_integers=with_integers) > RUNTIME_TOLERANCE * tolerance:
            name = str(node.target).replace(".", "::", 1).split(".")[0]
            kernel = next((each for each in called if each.split(".")[0] == name), "XNNPACK")
            return _describe_difference(node, kernel, one, other)
    return None


def _describe_difference(node: Any, kernel: str, actual: Any, expected: Any) -> _WrongValue:
    import torch

    if (actual.shape, actual.dtype) != (expected.shape, expected.dtype):
        types = [f"{each.dtype} {list(each.shape)}".removeprefix("torch.") for each in (actual, expected)]
        return _WrongValue(node, None, types[0], types[1], kernel)
    one, other = (each.reshape(-1).to(torch.float64) for each in (actual, expected))
    error = torch.where((one == other) | (one.isnan() & other.isnan()), 0.0, (one - other).abs())
    position = int(error.nan_to_num(nan=torch.inf).argmax())  # the largest difference: others may be of rounding
    element = [int(each) for each in torch.unravel_index(torch.tensor(position), actual.shape)]
    return _WrongValue(node, element, f"{one[position].item():.6g}", f"{other[position].item():.6g}", kernel)
