"""The cases of an export: their inputs, and what eager PyTorch returns for them."""

import hashlib
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from devices.errors import FarmError
from tasks.export.language.choices import choices_of
from tasks.export.made import Inputs, Method

logger = logging.getLogger(__name__)
Outputs = list[Any]
"""The tensors that a method returns, in the order of the exported program."""


@dataclass(frozen=True, eq=False)
class CaseInputs:
    """What is executed in a case."""

    name: str
    """Empty for the only case."""
    method: Method
    inputs: Inputs

    def written(
        self,
        folder: Path,
        outputs: Outputs,
        exact: Outputs | None,
        host: Outputs | None,
        choices: Mapping[str, Outputs],
        layers: list[dict[str, Any]],
        layers_in_fp32: Outputs,
    ) -> dict[str, Any]:
        """Write the tensors to `folder`; return the case of export.json.

        `exact`: the outputs of the fp32 model; `host`: those of the program on this machine; `choices`: what almost was
        written instead of either text. The values of the tapped `layers` are the last of the outputs; `layers_in_fp32`
        are those of the fp32 model, None for one without.
        """
        outputs, values = outputs[: len(outputs) - len(layers)], outputs[len(outputs) - len(layers) :]
        method, prefix = self.method, f"{self.name}-" if self.name else ""
        setup = method.setup
        return {
            "name": self.name,
            "method": method.program_method,
            "inputs": write_tensors(folder, f"{prefix}input", self.inputs),
            "outputs": write_tensors(folder, f"{prefix}output", outputs),
            "outputs_fp32": write_tensors(folder, f"{prefix}fp32", exact or []),
            "outputs_host": write_tensors(folder, f"{prefix}host", host or []),
            "choices": {name: write_tensors(folder, f"{prefix}choices-{name}", each) for name, each in choices.items()},
            "setup": (
                {"method": setup[0], "inputs": write_tensors(folder, f"{prefix}setup", chain(*setup[1]))}
                if setup
                else None
            ),
            "tokens": method.tokens,
            "kv_depth": method.kv_depth,
            "prompt_tokens": method.prompt_tokens,
            "steps": method.steps,
            "taps": [
                layer | value | ({"fp32": exactly[0]} if exactly else {})
                for layer, value, exactly in zip(
                    layers,
                    write_tensors(folder, f"{prefix}tap", values),
                    [
                        [] if each is None else write_tensors(folder, f"{prefix}tap-fp32-{number}", [each])
                        for number, each in enumerate(layers_in_fp32)
                    ],
                    strict=True,
                )
            ],
            "is_dynamic": method.dynamic_shapes is not None,
        }


def as_stored(methods: list[Method], float_type: str) -> list[Method]:
    """Return the methods for evaluation, with all inputs as the runner reads them: contiguous, of the recipe's type."""
    import torch

    dtype = getattr(torch, float_type)

    def stored(inputs: Inputs) -> Inputs:
        return tuple((each.to(dtype) if each.is_floating_point() else each).detach().contiguous() for each in inputs)

    return [
        replace(
            method,
            module=method.module.eval(),
            inputs=stored(method.inputs),
            shapes={name: stored(inputs) for name, inputs in method.shapes.items()},
            calibration=[stored(inputs) for inputs in method.calibration],
            setup=(method.setup[0], [stored(inputs) for inputs in method.setup[1]]) if method.setup else None,
        )
        for method in methods
    ]


def with_cases(methods: list[Method]) -> list[CaseInputs]:
    """Return the cases of the methods: one for each shape to measure, otherwise one for each method."""
    cases = []
    for method in methods:
        for shape, inputs in (method.shapes or {"": method.inputs}).items():
            parts = [method.name] if len(methods) > 1 else []
            cases.append(CaseInputs("-".join([*parts, *([shape] if shape else [])]), method, inputs))
    return cases


def references(modules: Mapping[str, Any], cases: list[CaseInputs], float_type: str) -> dict[str, Outputs]:
    """Return the outputs of each case in eager PyTorch; `modules` has the module of each method, of this type.

    Each case starts with the state that the modules have now (their buffers) and executes its set-up first.
    """
    found = {}
    logger.info("computing the reference outputs in eager PyTorch")
    for case in cases:
        module = modules[case.method.program_method]
        with _state_restored(modules):
            _set_up(modules, case, float_type)
            for _ in range(case.method.steps or 1):
                outputs = _call(module, case.inputs, float_type)
            found[case.name] = [output.clone() for output in _tensors_of(outputs)]
    return found


def choices_in(
    texts: Mapping[str, Outputs | None], modules: Mapping[str, Any], case: CaseInputs, float_type: str
) -> dict[str, Outputs]:
    """Return for each text that was written in a case, by its name, what was almost written instead (`choices_of`).

    None are known of a program that does not write tokens, nor of a recipe that changes the program: its module in
    eager PyTorch has no scores.
    """
    import torch

    scores_of = getattr(modules[case.method.program_method], "scores_of_next", None)
    if not case.method.steps or scores_of is None:
        return {}
    found = {}
    for name, outputs in texts.items():
        if outputs:
            with torch.no_grad(), _state_restored(modules):
                _set_up(modules, case, float_type)
                found[name] = choices_of(scores_of, case.inputs, outputs[0])
    return found


def _set_up(modules: Mapping[str, Any], case: CaseInputs, float_type: str) -> None:
    """Execute what fills the state before a case."""
    if case.method.setup:
        name, each_inputs = case.method.setup
        for inputs in each_inputs:
            _call(modules[name], inputs, float_type)
        _copy_state(modules[name], modules[case.method.program_method])


def _call(module: Any, inputs: Inputs, float_type: str) -> Any:
    """Call the module with copies of the inputs: a module may write to them."""
    import torch

    dtype = getattr(torch, float_type)
    return module(*[each.to(dtype, copy=True) if each.is_floating_point() else each.clone() for each in inputs])


@contextmanager
def _state_restored(modules: Mapping[str, Any]) -> Iterator[None]:
    before = [(buffer, buffer.clone()) for module in modules.values() for buffer in module.buffers()]
    try:
        yield
    finally:
        for buffer, value in before:
            buffer.copy_(value)


def _copy_state(source: Any, target: Any) -> None:
    """Give the buffers of `target` the values of those with the same name, as the methods of a program share them."""
    values = dict(source.named_buffers())
    for name, buffer in target.named_buffers():
        if name in values and values[name] is not buffer:
            buffer.copy_(values[name])


def _tensors_of(outputs: Any) -> Outputs:
    """Return the output tensors in the order in which the exported program returns them."""
    import torch
    from torch.utils import _pytree

    leaves: list[Any] = _pytree.tree_leaves(outputs)
    for leaf in leaves:
        if not isinstance(leaf, torch.Tensor):
            raise FarmError(f"its forward returns a {type(leaf).__name__}; it must return only tensors")
    return leaves


def write_tensors(folder: Path, kind: str, tensors: Any) -> list[dict[str, Any]]:
    """Write each tensor as raw bytes to KIND-N.bin; return {file, dtype, shape, sha256} of each."""
    import torch

    described = []
    for number, tensor in enumerate(tensors):
        data = tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        name = f"{kind}-{number}.bin"
        (folder / name).write_bytes(data)
        described.append(
            {
                "file": name,
                "dtype": str(tensor.dtype).removeprefix("torch."),
                "shape": list(tensor.shape),
                "sha256": hashlib.sha256(data).hexdigest(),
            }
        )
    return described
