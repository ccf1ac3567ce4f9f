"""Apply the farm's passes to a program; leave out a pass that fails or after which the program computes other values.

A pass takes an ExportedProgram, a copy that it may change, and returns the changed one, or None if it changes nothing.
Before and after it, the program is executed in eager PyTorch: with the inputs of its cases, and with seeded random
numbers in place of these. Integers are permuted instead, so that indices remain valid; booleans stay.
"""

import copy
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.export.exported import first_line
from tasks.export.factory import Inputs
from tasks.export.process.sandbox import is_failed_allocation

logger = logging.getLogger(__name__)
Pass = Callable[[Any], Any]
_TOLERANCE = 1e-4
"""Largest allowed difference of fp32 outputs, relative to the largest value; sums in another order differ by 1e-6."""
_ROUNDED_TOLERANCE = 5e-2
"""The same where values are rounded to fp16 or quantized. A choice (argmax) may then differ: integers do not count."""
_MIN_SCALE = 1e-3  # for outputs whose values are all near 0


@dataclass(frozen=True)
class LeftOut:
    """A step that an export does without."""

    step: str
    """The name of a pass, of several that were left out together, or `ETRecord`."""
    method: str | None
    """Of the program; None: all methods."""
    reason: str


class Passes:
    """Applies passes to the methods of one program and records what was applied and what was left out."""

    def __init__(self, samples: Mapping[str, Sequence[Inputs]]) -> None:
        self._samples = samples
        self.applied: set[str] = set()
        self.left_out: list[LeftOut] = []

    def apply(self, method: str, program: Any, passes: Sequence[Pass]) -> Any:
        """Return a copy after the passes that keep its outputs, tried together, else one by one; else `program`."""
        changed, names, problem = self._try(method, program, passes)
        if problem is None:
            self.applied |= names
            return changed
        if len(passes) == 1:
            self.leave_out(LeftOut(passes[0].__name__, method, problem))
            return program
        for each in passes:
            program = self.apply(method, program, [each])
        return program

    def on_edge(self, method: str, passes: Sequence[Pass]) -> list[Any]:
        """Return the pass that executorch applies to the edge program of a method; none if its version has no such."""
        try:
            from executorch.exir.pass_base import ExportedProgramPassBase, ExportedProgramPassResult
        except ImportError:  # before 1.4
            names = ", ".join(each.__name__ for each in passes)
            self.leave_out(LeftOut(names, method, "this version of ExecuTorch applies no pass to an edge program"))
            return []

        class Checked(ExportedProgramPassBase):  # type: ignore[misc]
            def call(inner, exported_program: Any) -> Any:
                changed = self.apply(method, exported_program, passes)
                logger.info("delegating %d operators", len(changed.graph.nodes))  # takes most of the time
                return ExportedProgramPassResult(changed, changed is not exported_program)

        return [Checked()]

    def leave_out(self, step: LeftOut) -> None:
        logger.warning("%s left out: %s", step.step, step.reason)
        self.left_out.append(step)

    def _try(self, method: str, program: Any, passes: Sequence[Pass]) -> tuple[Any, set[str], str | None]:
        """Return (program after the passes, names of those that changed it, why it cannot be used or None)."""
        changed, names = copy.copy(program), set()  # tensors are shared; a pass changes only what is copied here
        changed._graph_module = copy.deepcopy(program.graph_module)
        changed._graph_signature = copy.deepcopy(program.graph_signature)
        changed._constants = dict(program.constants)
        try:
            for each in passes:
                if (after := each(changed)) is not None:
                    changed = after
                    names.add(each.__name__)
        except Exception as error:
            if is_failed_allocation(error):
                raise
            logger.info("a pass failed", exc_info=True)
            return program, names, f"it failed ({first_line(error)})"
        return (changed, names, self._difference(method, program, changed)) if names else (program, names, None)

    def _difference(self, method: str, before: Any, after: Any) -> str | None:
        """Return how outputs differ, or why they cannot be compared; None if they are equal within the tolerance."""
        tolerance, with_integers = output_tolerance(before)
        for label, inputs in _labelled_samples(self._samples[method]):
            try:
                expected = _execute(before, inputs)
            except Exception as error:
                if is_failed_allocation(error):
                    raise
                if label == _EXAMPLE:
                    return f"the program before it cannot be executed in eager PyTorch ({first_line(error)})"
                continue  # the model does not accept these values
            try:
                distance = largest_distance(_execute(after, inputs), expected, with_integers=with_integers)
            except Exception as error:
                if is_failed_allocation(error):
                    raise
                return f"the program after it failed with {label} ({first_line(error)})"
            if distance > tolerance:
                how = f"by up to {100 * distance:.2g} % of their largest value"
                if math.isinf(distance):
                    how = "in their shapes, or in which values are finite"
                return f"with {label}, outputs after it differ from those before it {how}"
        return None


def output_tolerance(program: Any) -> tuple[float, bool]:
    """Return how far outputs of a program may differ, relative to the largest value, and whether integers count."""
    import torch

    for node in program.graph.nodes:
        value = node.meta.get("val")
        is_half = isinstance(value, torch.Tensor) and value.dtype in (torch.float16, torch.bfloat16)
        if is_half or "quantize" in str(node.target):
            return _ROUNDED_TOLERANCE, False
    return _TOLERANCE, True


def largest_distance(actual: Sequence[Any], expected: Sequence[Any], *, with_integers: bool) -> float:
    """Return the largest difference of two lists of tensors, relative to the largest finite value expected.

    NaN equals NaN, and infinity itself. The result is infinite if only one of two values is finite, or if shapes or
    types differ. Without `with_integers`, only floating-point tensors are compared.
    """
    import torch

    if [(each.shape, each.dtype) for each in actual] != [(each.shape, each.dtype) for each in expected]:
        return float("inf")
    largest = 0.0
    for one, other in zip(actual, expected, strict=True):
        if not one.is_floating_point() and not with_integers:
            continue
        a, b = one.detach().to(torch.float64), other.detach().to(torch.float64)
        is_equal = (a == b) | (a.isnan() & b.isnan())
        difference = torch.where(is_equal, 0.0, (a - b).abs()).nan_to_num(nan=torch.inf, posinf=torch.inf)
        if difference.any():
            scale = b[b.isfinite()].abs().max().item() if b.isfinite().any() else 0.0
            largest = max(largest, difference.max().item() / max(scale, _MIN_SCALE))
    return largest


_EXAMPLE, _RANDOM = "the inputs of a case", "random inputs"


def _labelled_samples(samples: Sequence[Inputs]) -> Iterator[tuple[str, Inputs]]:
    """Yield each sample and a random variation of it, with a label for messages."""
    import torch

    generator = torch.Generator().manual_seed(0)

    def varied(tensor: Any) -> Any:
        if tensor.is_floating_point():
            return torch.randn(tensor.shape, generator=generator).to(tensor.dtype)
        if tensor.dtype is torch.bool:
            return tensor
        return tensor.reshape(-1)[torch.randperm(tensor.numel(), generator=generator)].reshape(tensor.shape)

    for inputs in samples:
        yield _EXAMPLE, inputs
        yield _RANDOM, tuple(map(varied, inputs))


def _execute(program: Any, inputs: Inputs) -> list[Any]:
    """Return a program's outputs in eager PyTorch, then the inputs and buffers that it may have changed."""
    import torch
    from torch.export.graph_signature import InputKind

    values, remaining_inputs, arguments, changeable = {**program.state_dict, **program.constants}, iter(inputs), [], []
    for spec in program.graph_signature.input_specs:
        is_input = spec.kind is InputKind.USER_INPUT
        value = next(remaining_inputs) if is_input else values[spec.target]
        if is_input or spec.kind is InputKind.BUFFER:
            value = value.clone()
            changeable.append(value)
        arguments.append(value)
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        outputs = program.graph_module(*arguments)
    return [each for each in (*outputs, *changeable) if isinstance(each, torch.Tensor)]
