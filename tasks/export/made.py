"""What a factory returns: (module, inputs), or a mapping with shapes, calibration data or several methods."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from devices.errors import FarmError
from tasks.export.exported import FORWARD

Inputs = tuple[Any, ...]
"""Tensors."""
_METHOD_KEYS = {
    "module",
    "inputs",
    "dynamic_shapes",
    "shapes",
    "calibration",
    "setup",
    "tokens",
    "kv_depth",
    "prompt_tokens",
    "steps",
    "executes",
    "perplexity",
}


@dataclass(frozen=True, eq=False)
class Method:
    """One method of a program before its export, and the inputs with which it is measured."""

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
        """The name of the method in the program."""
        return self.executes or self.name


def methods_of(made: Any, factory: str) -> list[Method]:
    """Return the methods in what the function `factory` returned; raises FarmError if it has another form."""
    match made:
        case (module, inputs):
            described: Mapping[Any, Any] = {FORWARD: {"module": module, "inputs": inputs}}
        case {"methods": Mapping() as methods} if methods and set(made) == {"methods"}:
            described = methods
        case Mapping():
            described = {FORWARD: made}
        case _:
            raise FarmError(
                f"{factory} must return (torch.nn.Module, tuple of tensors) or a dict, not {_types_of(made)}"
            )
    found = [_method(name, each, factory) for name, each in described.items()]
    names = [method.name for method in found]
    for method in found:
        if method.setup and method.setup[0] not in names:
            known = f"use one of its methods: {', '.join(names)}"
            raise FarmError(f"{factory}: the setup of {method.name} names {method.setup[0]}; {known}")
    return found


def _method(name: Any, made: Any, factory: str) -> Method:
    import torch

    if not isinstance(name, str) or not name.isidentifier():
        raise FarmError(f"{factory}: the method {name!r} must be named by an identifier")
    unknown = set(made) - _METHOD_KEYS if isinstance(made, Mapping) else {type(made).__name__}
    if unknown or not {"module", "inputs"} <= set(made):
        problem = f"unknown keys: {', '.join(sorted(map(str, unknown)))}" if unknown else "missing module or inputs"
        raise FarmError(f"{factory}: {name}: {problem}; the keys are {', '.join(sorted(_METHOD_KEYS))}")
    module, inputs = made["module"], made["inputs"]
    if not isinstance(module, torch.nn.Module) or not _are_tensors(inputs):
        problem = f"must return (torch.nn.Module, tuple of tensors), not {_types_of((module, inputs))}"
        raise FarmError(f"{factory} {problem}")
    shapes, calibration, setup = made.get("shapes") or {}, list(made.get("calibration") or ()), made.get("setup")
    filled = _each_of(setup["inputs"]) if setup else []
    for each in (*shapes.values(), *calibration, *filled):
        if not _are_tensors(each):
            raise FarmError(f"{factory}: {name}: inputs must be a tuple of tensors, not {_types_of(each)}")
    if shapes and not made.get("dynamic_shapes"):
        raise FarmError(f"{factory}: {name}: `shapes` needs `dynamic_shapes`, as torch.export takes it")
    numbers = {key: made.get(key) for key in ("tokens", "kv_depth", "prompt_tokens", "steps", "executes", "perplexity")}
    state = (setup["method"], filled) if setup else None
    dynamic = made.get("dynamic_shapes")
    return Method(name, module, inputs, dynamic, dict(shapes), calibration, state, **numbers)


def _each_of(inputs: Any) -> list[Inputs]:
    """Return the inputs of each execution of a set-up: a list states several."""
    return inputs if isinstance(inputs, list) else [inputs]


def _are_tensors(inputs: Any) -> bool:
    import torch

    return isinstance(inputs, tuple) and all(isinstance(entry, torch.Tensor) for entry in inputs)


def _types_of(made: Any) -> str:
    if isinstance(made, tuple):
        return f"({', '.join(_types_of(entry) for entry in made)})"
    return type(made).__name__
