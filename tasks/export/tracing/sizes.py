"""Check that a program's memory fits the sizes at which it is measured."""

from collections.abc import Iterable, Mapping
from typing import Any

from devices.errors import FarmError
from tasks.export.factory import Inputs

_SMALLEST_EXAMPLE = 2  # torch.export fixes the sizes 0 and 1


def check_sizes(program: Any, dynamic_shapes: Any, shapes: Mapping[str, Inputs]) -> None:
    """Raise FarmError for inputs larger than the program's memory; `shapes` has the inputs by the name of the case.

    ExecuTorch reserves memory for the maximum of a dynamic dimension or, without one, for the size of the example.
    """
    nodes = {node.name: node for node in program.graph.find_nodes(op="placeholder")}
    for number, name in enumerate(program.graph_signature.user_inputs):
        for dimension, size in enumerate(nodes[name].meta["val"].shape):
            if isinstance(size, int):
                continue
            limits = program.range_constraints.get(size.node.expr)
            maximum = None if limits is None or "oo" in str(limits.upper) else int(limits.upper)  # int_oo: no limit
            reserved = size.node.hint if maximum is None else maximum
            for case, inputs in shapes.items():
                actual = inputs[number].shape[dimension]
                if reserved is not None and actual > reserved:
                    dim = find_dim(dynamic_shapes, number, name, dimension)
                    what = f"input `{name}` has the size {actual} in dimension {dimension} in the shape `{case}`"
                    cause = f"its maximum is {maximum}"
                    if maximum is None:
                        cause = (
                            f"without a maximum, ExecuTorch reserves memory for the {reserved} of the example inputs"
                        )
                    raise FarmError(f"{what}; {cause}: {_write_dim(dim, f'max={actual}')}")


def check_example(names: Iterable[str], inputs: Inputs, dynamic_shapes: Any) -> None:
    """Raise FarmError if the `Dim` of a dimension does not allow the size of the example inputs."""
    for number, (name, each) in enumerate(zip(names, inputs, strict=False)):
        for dimension, size in enumerate(each.shape):
            dim = find_dim(dynamic_shapes, number, name, dimension)
            for key, words, sign in (("max", "maximum", 1), ("min", "minimum", -1)):
                limit = getattr(dim, key, None)
                if isinstance(limit, int) and sign * size > sign * limit:
                    what = f"input `{name}` has the size {size} in dimension {dimension} in the example inputs"
                    remedy = _write_dim(dim, f"{key}={size}")
                    if size < _SMALLEST_EXAMPLE:
                        remedy = f"use an example with the size {max(limit, _SMALLEST_EXAMPLE)} or more"
                    raise FarmError(f"{what}; its {words} is {limit}: {remedy}")


def _write_dim(dim: Any, limit: str) -> str:
    """Return how a dimension is allowed another size; that of a multiple of a Dim follows the Dim."""
    if root := getattr(dim, "root", None):
        return f"change the range of `{root.__name__}`"
    return f'write Dim("{getattr(dim, "__name__", "size")}", {limit})'


def list_sizes(program: Any) -> dict[tuple[str, int], int | None]:
    """Return the size of each (input, dimension) of a program; None for a dynamic one."""
    nodes = {node.name: node for node in program.graph.find_nodes(op="placeholder")}
    return {
        (name, dimension): size if isinstance(size, int) else size.node.maybe_as_int()
        for name in program.graph_signature.user_inputs
        for dimension, size in enumerate(nodes[name].meta["val"].shape)
    }


def check_still_dynamic(before: dict[tuple[str, int], int | None], program: Any) -> None:
    """Raise FarmError if executorch has fixed a dynamic size while it lowered a program with the sizes `before`."""
    for (name, dimension), size in list_sizes(program).items():
        if size is not None and before.get((name, dimension), size) is None:
            cause = f"executorch fixes the dynamic dimension {dimension} of the input `{name}` to {size} when it lowers"
            remedy = "export each size as a model without `dynamic_shapes`, or pad the input to the largest"
            raise FarmError(f"{cause} the model; {remedy}")


def find_dim(dynamic_shapes: Any, number: int, name: str, dimension: int) -> Any:
    """Return what `dynamic_shapes` states for a dimension of an input, such as a Dim; None if it states nothing."""
    try:
        of_input: Any = dynamic_shapes.get(name) if isinstance(dynamic_shapes, Mapping) else dynamic_shapes[number]
        return of_input.get(dimension) if isinstance(of_input, Mapping) else of_input[dimension]
    except (LookupError, TypeError):  # it states nothing, or has another structure
        return None
