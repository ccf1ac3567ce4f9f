"""Nested inputs of a model, such as `(x, (i,), None)`, become a flat tuple of tensors, as a program takes them.

Parameters of `forward` that are passed only by keyword take the inputs after the positional ones.
"""

import inspect
import re
from collections import Counter
from typing import Any

from devices.errors import FarmError


class Structure:
    """The structure of a method's example inputs: tensors in tuples, lists and dicts, and constants between them."""

    def __init__(self, module: Any, inputs: tuple[Any, ...]) -> None:
        """Raises FarmError if an input is neither a tensor nor a number, a text or None."""
        import torch

        parameters = inspect.signature(module.forward).parameters.values()
        self._inputs = inputs
        self._positional = [each.name for each in parameters if each.kind < each.VAR_POSITIONAL]
        has_any_number = any(each.kind is each.VAR_POSITIONAL for each in parameters)
        keywords = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
        self._by_keyword = [] if has_any_number else keywords
        is_positional = not self._by_keyword or len(inputs) <= len(self._positional)
        self.is_flat = is_positional and all(isinstance(each, torch.Tensor) for each in inputs)
        self.tensors, self._constants, self._names, self._specs = self._split(inputs)
        for name, value in self._constants:
            if value is not None and not isinstance(value, int | float | str):
                remedy = "use tensors, numbers, None, and tuples, lists and dicts of these"
                raise FarmError(f"the input {name} is a {type(value).__name__}; {remedy}")

    def flatten(self, inputs: Any) -> tuple[Any, ...]:
        """Return the tensors of other inputs; raises FarmError if these differ in more than tensors."""
        tensors, constants, _, specs = self._split(inputs)
        if (constants, specs) != (self._constants, self._specs):
            what = f"({', '.join(self._names)})" + ("" if self.is_flat else ", and its numbers and None")
            raise FarmError(f"all inputs must have the structure of the example inputs: {what}")
        return tensors

    def flatten_shapes(self, shapes: Any) -> Any:
        """Return dynamic shapes of nested inputs, a tuple or a dict by parameter, for the flat inputs."""
        if self.is_flat or not shapes:
            return shapes
        if isinstance(shapes, dict):
            shapes = tuple(map(shapes.get, [*self._positional, *self._by_keyword][: len(self._inputs)]))
        return tuple(_flat_shapes(self._inputs, shapes))

    def let_take_tensors(self, module: Any) -> None:
        """Give a module a subclass of its class that takes the tensors, so that copies of it do so too."""
        import torch
        from torch.utils import _pytree

        original, leaves = type(module), _pytree.tree_leaves(self._inputs)
        spec, keywords = self._specs, self._by_keyword
        positional = len(self._positional) if keywords else len(self._inputs)

        def forward(self: Any, *tensors: Any) -> Any:
            remaining = iter(tensors)
            values = [next(remaining) if isinstance(each, torch.Tensor) else each for each in leaves]
            arguments = _pytree.tree_unflatten(values, spec)
            by_keyword = dict(zip(keywords, arguments[positional:], strict=False))
            return original.forward(self, *arguments[:positional], **by_keyword)

        parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in ("self", *self._names)]
        forward.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        content = {"forward": forward, "__module__": original.__module__}
        module.__class__ = type(original.__name__, (original,), content)

    def _split(self, inputs: Any) -> tuple[tuple[Any, ...], list[tuple[str, Any]], list[str], Any]:
        """Return the tensors, (name, value) of the constants, the names of the tensors, and torch's TreeSpec."""
        import torch
        from torch.utils import _pytree

        if not isinstance(inputs, tuple):
            raise FarmError(f"inputs must be a tuple of tensors, not {type(inputs).__name__}")
        by_path, spec = _pytree.tree_flatten_with_path(inputs)
        named, count = [], Counter[str]()
        for path, value in by_path:
            name = self._name(path)
            named.append((f"{name}_{count[name]}" if count[name] else name, value))
            count[name] += 1
        tensors = {name: value for name, value in named if isinstance(value, torch.Tensor)}
        return tuple(tensors.values()), [each for each in named if each[0] not in tensors], list(tensors), spec

    def _name(self, path: Any) -> str:
        """Return the parameter and the keys in it as an identifier: `pair_0` of (SequenceKey(1), SequenceKey(0))."""
        first, *rest = (str(getattr(key, "idx", getattr(key, "key", key))) for key in path)
        parameters = [*self._positional, *self._by_keyword]
        parameter = parameters[int(first)] if int(first) < len(parameters) else f"input_{first}"
        return re.sub(r"\W", "_", "_".join([parameter, *rest]))


def _flat_shapes(inputs: Any, shapes: Any) -> list[Any]:
    """Return the dynamic shape of each tensor in `inputs`; None for a whole part of it means that it is fixed."""
    import torch

    if isinstance(inputs, torch.Tensor):
        return [shapes]
    if isinstance(inputs, dict):
        pairs = [(inputs[key], shapes and shapes.get(key)) for key in inputs]
    elif isinstance(inputs, tuple | list):
        pairs = list(zip(inputs, shapes or [None] * len(inputs), strict=True))
    else:
        return []
    return [shape for each, of_each in pairs for shape in _flat_shapes(each, of_each)]
