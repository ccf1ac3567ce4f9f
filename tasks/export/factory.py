"""What a factory returns: (module, inputs), or a mapping with shapes, calibration data or several methods."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from devices.errors import FarmError
from tasks.export.exported import FORWARD

Inputs = tuple[Any, ...]
"""Tensors."""


@dataclass(frozen=True, eq=False)
class Method:
    """One method of a program before its export, and the inputs with which it is measured.

    Its fields but the name are the keys of a factory's mapping.
    """

    name: str
    module: Any
    inputs: Inputs
    """Examples: the program is traced with them."""
    dynamic_shapes: Any = None
    """As torch.export takes it; None: all shapes are fixed."""
    shapes: dict[str, Inputs] = field(default_factory=dict)
    """The inputs to measure by the name of the case; empty: the example inputs."""
    calibration: list[Inputs] = field(default_factory=list)
    """For static quantization; empty: seeded permutations of the example inputs."""
    setup: tuple[str, list[Inputs]] | None = None
    """(method, inputs): executed before the measurement, once with each, to fill a state that the methods share."""
    tokens: int | None = None
    kv_depth: int | None = None
    prompt_tokens: int | None = None
    """Of a prompt that is read in chunks, of which this method reads the last one; None for all others."""
    steps: int | None = None
    """Executions of a session, each one step further: the last one returns all tokens; None: each does the same."""
    executes: str | None = None
    """Another method with the same module, which is executed instead of a copy of it."""
    perplexity: Callable[[], float] | None = None
    """Computes the perplexity of the module, as a recipe has changed it, on a text."""

    @property
    def program_method(self) -> str:
        return self.executes or self.name


_KEYS = {each.name for each in fields(Method)} - {"name"}


def build_methods(content: Any, factory: str) -> list[Method]:
    """Return the methods in what the function `factory` returned; raises FarmError if it has another form."""
    match content:
        case (module, inputs):
            described: Mapping[Any, Any] = {FORWARD: {"module": module, "inputs": inputs}}
        case {"methods": Mapping() as methods} if methods and set(content) == {"methods"}:
            described = methods
        case Mapping():
            described = {FORWARD: content}
        case _:
            raise FarmError(
                f"{factory} must return (torch.nn.Module, tuple of tensors) or a dict, not {_type_name(content)}"
            )
    built = [_build_method(name, each, factory) for name, each in described.items()]
    names = [method.name for method in built]
    for method in built:
        if method.setup and method.setup[0] not in names:
            remedy = f"use one of its methods: {', '.join(names)}"
            raise FarmError(f"{factory}: the setup of {method.name} names {method.setup[0]}; {remedy}")
    return built


def _build_method(name: Any, content: Any, factory: str) -> Method:
    import torch

    if not isinstance(name, str) or not name.isidentifier():
        raise FarmError(f"{factory}: the method {name!r} must be named by an identifier")
    unknown = set(content) - _KEYS if isinstance(content, Mapping) else {type(content).__name__}
    if unknown or not {"module", "inputs"} <= set(content):
        problem = f"unknown keys: {', '.join(sorted(map(str, unknown)))}" if unknown else "missing module or inputs"
        raise FarmError(f"{factory}: {name}: {problem}; the keys are {', '.join(sorted(_KEYS))}")
    module, inputs = content["module"], content["inputs"]
    if not isinstance(module, torch.nn.Module) or not _are_tensors(inputs):
        problem = f"must return (torch.nn.Module, tuple of tensors), not {_type_name((module, inputs))}"
        raise FarmError(f"{factory} {problem}")
    shapes, calibration = dict(content.get("shapes") or {}), list(content.get("calibration") or ())
    setup = None
    if state := content.get("setup"):  # a list states the inputs of several executions
        setup = state["method"], state["inputs"] if isinstance(state["inputs"], list) else [state["inputs"]]
    for each in (*shapes.values(), *calibration, *(setup[1] if setup else ())):
        if not _are_tensors(each):
            raise FarmError(f"{factory}: {name}: inputs must be a tuple of tensors, not {_type_name(each)}")
    if shapes and not content.get("dynamic_shapes"):
        raise FarmError(f"{factory}: {name}: `shapes` needs `dynamic_shapes`, as torch.export takes it")
    return Method(name, **{**content, "shapes": shapes, "calibration": calibration, "setup": setup})


def _are_tensors(inputs: Any) -> bool:
    import torch

    return isinstance(inputs, tuple) and all(isinstance(each, torch.Tensor) for each in inputs)


def _type_name(content: Any) -> str:
    if isinstance(content, tuple):
        return f"({', '.join(_type_name(each) for each in content)})"
    return type(content).__name__
