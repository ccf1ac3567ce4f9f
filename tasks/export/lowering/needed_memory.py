"""The largest live set of a method with dynamic shapes at the shapes of a case.

Memory is planned for the largest shapes, and only the exported program knows how sizes depend on those of the inputs.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from tasks.export.contents.program_memory import Lifetime, largest_live_set


def live_bytes(program: Any, inputs: Sequence[Any]) -> int | None:
    """Return the bytes of the largest live set of a planned ExportedProgram for these inputs.

    None if its shapes are static, or if a size is not determined by the shapes of the inputs, such as the number of
    elements that are not zero.
    """
    sizes = _sizes_of_symbols(program, inputs)
    if not sizes:
        return None
    lives = []
    for specs, value in _planned_values(program):
        size_bytes = _size_bytes(value, sizes)
        if size_bytes is None:
            return None
        lives.append(Lifetime((specs.mem_id, specs.mem_offset or 0), size_bytes, *specs.lifetime))
    return largest_live_set(lives)[0]


def _sizes_of_symbols(program: Any, inputs: Sequence[Any]) -> dict[Any, int]:
    """Return the size of each symbol that is a dimension of an input."""
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    values = [nodes[name].meta.get("val") for name in program.graph_signature.user_inputs if name in nodes]
    tensors = [value for value in values if hasattr(value, "shape")]
    sizes = {}
    for value, tensor in zip(tensors, inputs, strict=False):
        for dimension, size in zip(value.shape, tensor.shape, strict=True):
            expression = _expression(dimension)
            if expression is not None and expression.is_symbol:
                sizes[expression] = int(size)
    return sizes


def _planned_values(program: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the specification and the symbolic value of each tensor that has planned memory, once."""
    seen = set()
    for node in program.graph.nodes:
        specs, values = node.meta.get("spec"), node.meta.get("val")
        several = isinstance(specs, tuple | list)
        pairs = zip(specs, values, strict=True) if several and isinstance(values, tuple | list) else [(specs, values)]
        for spec, value in pairs:
            is_planned = hasattr(spec, "mem_id") and spec.mem_id is not None and None not in spec.lifetime
            if is_planned and not spec.const and id(spec) not in seen:
                seen.add(id(spec))
                yield spec, value


def _size_bytes(value: Any, sizes: dict[Any, int]) -> int | None:
    """Return the size of a tensor with these sizes of symbols; None if one of its dimensions has another symbol."""
    elements = 1
    for dimension in value.shape:
        expression = _expression(dimension)
        size = dimension if expression is None else expression.subs(sizes)
        if not isinstance(size, int) and not size.is_number:
            return None
        elements *= int(size)
    return int(elements * value.dtype.itemsize)


def _expression(dimension: Any) -> Any:
    """Return the expression of a symbolic dimension; None for a number."""
    return dimension.node.expr if hasattr(dimension, "node") else None
