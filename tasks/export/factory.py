"""Parse the result of a factory: (module, inputs), or a mapping with shapes, calibration data or several methods."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from devices.errors import FarmError
from tasks.export.exported import FORWARD
from tasks.export.tracing.inputs import Structure

Inputs = tuple[Any, ...]
"""The tensors of one call, in order; nested inputs of a user are flat from `build_methods` on."""


@dataclass(frozen=True, eq=False)
class Method:
    """A method of a program before its export, and its inputs.

    All fields except `name` and `samples` are the keys of a factory's mapping.
    """

    name: str
    module: Any
    inputs: Inputs
    """Example inputs, with which the method is traced."""
    dynamic_shapes: Any = None
    """In the form of torch.export; None: all shapes are fixed."""
    shapes: dict[str, Inputs] = field(default_factory=dict)
    """Inputs to measure, by the name of the case; empty: the example inputs."""
    calibration: list[Inputs] = field(default_factory=list)
    """For int8 quantization; empty: the example inputs and seeded permutations of them."""
    read_sample: Callable[[Path], Inputs] | None = None
    """Reads the inputs from the file of a sample, such as an image; None: the farm reads it, see outputs/samples.py."""
    score: Callable[[Inputs, Path], float] | None = None
    """Scores the outputs for a sample by the path of its file; only the mean over the samples is used."""
    setup: tuple[str, list[Inputs]] | None = None
    """(method, inputs): executed once with each of the inputs before the measurement, to fill state that methods
    share."""
    tokens: int | None = None
    kv_depth: int | None = None
    prompt_tokens: int | None = None
    """Length of the complete prompt if it is read in chunks and this method reads the last one; otherwise None."""
    steps: int | None = None
    """Executions of a session, each one token further; the last returns all tokens. None: all executions are equal."""
    executes: str | None = None
    """Name of the method that the program has instead of this one, because both have the same module."""
    perplexity: Callable[[], float] | None = None
    """Computes the perplexity on a text; called after a recipe has changed the module."""

    samples: Any = None
    """The entry's samples, which judge the program; see outputs/samples.py."""

    @property
    def program_method(self) -> str:
        return self.executes or self.name


_KEYS = {each.name for each in fields(Method)} - {"name", "samples"}


def build_methods(content: Any, factory: str) -> list[Method]:
    """Return the methods in a factory's result, `forward` unless it names them; FarmError with `factory` for others."""
    match content:
        case (module, inputs):
            content_by_name: Mapping[Any, Any] = {FORWARD: {"module": module, "inputs": inputs}}
        case {"methods": Mapping() as methods} if methods and set(content) == {"methods"}:
            content_by_name = methods
        case Mapping():
            content_by_name = {FORWARD: content}
        case _:
            raise FarmError(
                f"{factory} must return (torch.nn.Module, tuple of tensors) or a dict, not {_type_name(content)}"
            )
    built = [_build_method(name, each, factory) for name, each in content_by_name.items()]
    names = [method.name for method in built]
    for method in built:
        if method.setup and method.setup[0] not in names:
            remedy = f"use one of its methods: {', '.join(names)}"
            raise FarmError(f"{factory}: the setup of {method.name} names {method.setup[0]}; {remedy}")
    return _flatten_inputs(built, factory)


def _build_method(name: Any, content: Any, factory: str) -> Method:
    """Return the method of a mapping with the keys of Method; raises FarmError for other keys or types."""
    import torch

    if not isinstance(name, str) or not name.isidentifier():
        raise FarmError(f"{factory}: the method {name!r} must be named by an identifier")
    unknown = set(content) - _KEYS if isinstance(content, Mapping) else {type(content).__name__}
    if unknown or not {"module", "inputs"} <= set(content):
        problem = f"unknown keys: {', '.join(sorted(map(str, unknown)))}" if unknown else "missing module or inputs"
        raise FarmError(f"{factory}: {name}: {problem}; the keys are {', '.join(sorted(_KEYS))}")
    module, inputs = content["module"], content["inputs"]
    if not isinstance(module, torch.nn.Module) or not isinstance(inputs, tuple):
        problem = f"must return (torch.nn.Module, tuple of tensors), not {_type_name((module, inputs))}"
        raise FarmError(f"{factory} {problem}")
    shapes, calibration = {} if content.get("shapes") is None else content["shapes"], content.get("calibration", ())
    for key, value, kind in (("shapes", shapes, dict), ("calibration", calibration, list | tuple)):
        if not isinstance(value, kind):
            raise FarmError(f"{factory}: {name}: `{key}` must be a {'dict' if kind is dict else 'list'} of inputs")
    setup = None
    if state := content.get("setup"):  # a list has the inputs of several executions
        if not isinstance(state, Mapping) or set(state) != {"method", "inputs"}:
            raise FarmError(f"{factory}: {name}: `setup` must be a dict of `method` and `inputs`")
        setup = state["method"], state["inputs"] if isinstance(state["inputs"], list) else [state["inputs"]]
    for key in ("read_sample", "score"):
        if content.get(key) is not None and not callable(content[key]):
            raise FarmError(f"{factory}: {name}: `{key}` must be a function, not {_type_name(content[key])}")
    if shapes and not content.get("dynamic_shapes"):
        raise FarmError(f"{factory}: {name}: `shapes` needs `dynamic_shapes`, as torch.export takes it")
    return Method(name, **{**content, "shapes": dict(shapes), "calibration": list(calibration), "setup": setup})


def _flatten_inputs(methods: list[Method], factory: str) -> list[Method]:
    """Return the methods with flat tuples of tensors as inputs; FarmError for other structures or types."""
    try:
        structures = {method.name: Structure(method.module, method.inputs) for method in methods}
        flattened = [_flatten_method(method, structures) for method in methods]
    except FarmError as error:
        raise FarmError(f"{factory}: {error}") from None
    for module, structure in {id(each.module): (each.module, structures[each.name]) for each in methods}.values():
        if not structure.is_flat:
            structure.let_take_tensors(module)
    return flattened


def _flatten_method(method: Method, structures: dict[str, Structure]) -> Method:
    structure, setup = structures[method.name], method.setup
    return replace(
        method,
        inputs=structure.tensors,
        dynamic_shapes=structure.flatten_shapes(method.dynamic_shapes),
        shapes={name: structure.flatten(inputs) for name, inputs in method.shapes.items()},
        calibration=list(map(structure.flatten, method.calibration)),
        setup=(setup[0], list(map(structures[setup[0]].flatten, setup[1]))) if setup else None,
    )


def _type_name(content: Any) -> str:
    if isinstance(content, tuple):
        return f"({', '.join(_type_name(each) for each in content)})"
    return type(content).__name__
