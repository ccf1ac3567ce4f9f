"""The cases of an export: their inputs, what eager PyTorch returns for them, and their files."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tasks.export.exported import Tensors, describe_tensor
from tasks.export.factory import Inputs, Method
from tasks.export.language_methods import likeliest_tokens
from tasks.export.process.refusals import FAILS_IN_EAGER
from tasks.export.tracing.trace import flatten_outputs

logger = logging.getLogger(__name__)
Outputs = list[Any]
"""The tensors that a method returns, in the order of the exported program."""


@dataclass(frozen=True, eq=False)
class CaseInputs:
    """A case before its export: a method and its inputs."""

    name: str
    """Empty for the only case."""
    method: Method
    inputs: Inputs


def to_stored_types(methods: list[Method], float_type: str) -> list[Method]:
    """Return the methods in evaluation mode, with inputs as the runner reads them: contiguous, of the recipe's type."""
    import torch

    dtype = getattr(torch, float_type)

    def convert(inputs: Inputs) -> Inputs:
        return tuple((each.to(dtype) if each.is_floating_point() else each).detach().contiguous() for each in inputs)

    return [
        replace(
            method,
            module=method.module.eval(),
            inputs=convert(method.inputs),
            shapes={name: convert(inputs) for name, inputs in method.shapes.items()},
            calibration=[convert(inputs) for inputs in method.calibration],
            setup=(method.setup[0], [convert(inputs) for inputs in method.setup[1]]) if method.setup else None,
        )
        for method in methods
    ]


def list_cases(methods: list[Method]) -> list[CaseInputs]:
    """Return a case for each shape to measure, or one with the examples, named by method (of several) and shape."""
    cases = []
    for method in methods:
        for shape, inputs in (method.shapes or {"": method.inputs}).items():
            parts = [method.name] if len(methods) > 1 else []
            cases.append(CaseInputs("-".join([*parts, *([shape] if shape else [])]), method, inputs))
    return cases


def inputs_by_shape(cases: list[CaseInputs]) -> dict[str, list[Inputs]]:
    """Return, for each method of the program, the inputs of the first case with each shape."""
    inputs: dict[str, dict[Any, Inputs]] = {}
    for case in cases:
        shapes = tuple(tuple(each.shape) for each in case.inputs)
        inputs.setdefault(case.method.program_method, {}).setdefault(shapes, case.inputs)
    return {method: list(by_shape.values()) for method, by_shape in inputs.items()}


def compute_references(modules: Mapping[str, Any], cases: list[CaseInputs], float_type: str) -> dict[str, Outputs]:
    """Return the outputs of each case in eager PyTorch; `modules` has the module of each method of the program.

    Each case executes its set-up first, from the buffers that the modules have now; these are restored after it.
    """
    logger.info("computing the reference outputs in eager PyTorch")
    outputs = {}
    for case in cases:
        module = modules[case.method.program_method]
        with restored_state(modules):
            _set_up(modules, case, float_type)
            for _ in range(case.method.steps or 1):
                returned = _call(module, case.inputs, float_type)
            outputs[case.name] = [each.clone() for each in flatten_outputs(returned)]
    return outputs


def call_once(modules: Mapping[str, Any], case: CaseInputs, float_type: str) -> Outputs:
    """Return the tensors that one execution of a case returns after its set-up; what they write is restored."""
    with restored_state(modules):
        _set_up(modules, case, float_type)
        returned = flatten_outputs(_call(modules[case.method.program_method], case.inputs, float_type))
        return [each.clone() for each in returned]


def list_choices(
    texts: Mapping[str, Outputs], modules: Mapping[str, Any], case: CaseInputs, float_type: str
) -> dict[str, Outputs]:
    """Return the `likeliest_tokens` of each text that was written in a case, by its name.

    Empty for a program that does not write tokens, and for a recipe that changes the program: its module in eager
    PyTorch has no scores.
    """
    import torch

    module = modules[case.method.program_method]
    choices = {}
    for name, outputs in texts.items():
        if outputs and case.method.steps and hasattr(module, "scores_of_next"):
            with torch.no_grad(), restored_state(modules):
                _set_up(modules, case, float_type)
                choices[name] = likeliest_tokens(module, case.inputs, outputs[0])
    return choices


def _set_up(modules: Mapping[str, Any], case: CaseInputs, float_type: str) -> None:
    """Execute a case's set-up, then copy its buffers to the case's module: a program has one buffer of each name."""
    if case.method.setup:
        name, each_inputs = case.method.setup
        for inputs in each_inputs:
            _call(modules[name], inputs, float_type)
        values = dict(modules[name].named_buffers())
        for key, buffer in modules[case.method.program_method].named_buffers():
            if key in values and values[key] is not buffer:
                buffer.copy_(values[key])


def _call(module: Any, inputs: Inputs, float_type: str) -> Any:
    """Call the module with copies of the inputs: a module may write to them."""
    import torch

    dtype = getattr(torch, float_type)
    copies = [each.to(dtype, copy=True) if each.is_floating_point() else each.clone() for each in inputs]
    try:
        return module(*copies)
    except Exception as error:
        error.add_note(FAILS_IN_EAGER)
        raise


@contextmanager
def restored_state(modules: Mapping[str, Any]) -> Iterator[None]:
    """Restore buffers and parameters after the block.

    Parameters are copied only when they are written to, as far as PyTorch can: not those whose memory it did not
    allocate itself (a mapped file, NumPy's), nor those made in inference mode, which count no writes.
    """
    import torch

    before = [(buffer, buffer.clone()) for module in modules.values() for buffer in module.buffers()]
    parameters = {
        id(each): each for module in modules.values() for each in module.parameters() if type(each.data) is torch.Tensor
    }
    copies = [(each, _count_writes(each), _copy_lazily(each.detach())) for each in parameters.values()]
    try:
        yield
    finally:
        with torch.inference_mode():  # only here may tensors be written that were made in it
            for buffer, value in before:
                buffer.copy_(value)
            for parameter, writes, value in copies:
                if writes is None or _count_writes(parameter) != writes:
                    parameter.copy_(value)


def _count_writes(tensor: Any) -> int | None:
    """Return a number that changes when a tensor is written to; None for one made in inference mode."""
    return None if tensor.is_inference() else int(tensor._version)


def _copy_lazily(tensor: Any) -> Any:
    """Return a copy that takes memory only when one of both is written to, or at once where PyTorch cannot do that."""
    try:
        return tensor._lazy_clone()
    except RuntimeError:
        return tensor.clone()


def write_tensors(folder: Path, kind: str, tensors: Iterable[Any]) -> Tensors:
    """Write each tensor as raw bytes to KIND-N.bin; return {file, dtype, shape, sha256} of each."""
    import torch

    described = []
    for number, tensor in enumerate(tensors):
        data = tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        name = f"{kind}-{number}.bin"
        (folder / name).write_bytes(data)
        described.append(describe_tensor(name, data, str(tensor.dtype).removeprefix("torch."), tensor.shape))
    return described
