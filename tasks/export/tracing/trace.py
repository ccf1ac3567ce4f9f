"""Trace a module: torch.export, with outputs as a runner passes them, and state that ExecuTorch can change."""

import inspect
import logging
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import compress
from typing import Any

from devices.errors import FarmError
from tasks.export.factory import Inputs
from tasks.export.tracing.sizes import check_example, find_dim


def trace(module: Any, inputs: Inputs, dynamic_shapes: Any) -> tuple[Any, dict[str, str]]:
    """Return the ExportedProgram of a module, and what it does without: {what: why}.

    It returns a flat tuple of tensors: ExecuTorch cannot write the types of others, such as those of `topk`. It leaves
    its inputs as they are: ExecuTorch would return each changed input before the outputs, and copy it into the input's
    memory. Parameters that it changes are buffers: ExecuTorch changes only these.
    """
    import torch
    from torch.export.graph_signature import InputKind, OutputKind

    if dynamic_shapes:
        check_example(inspect.signature(module.forward).parameters, inputs, dynamic_shapes)
    with noted_guards(module, dynamic_shapes) if dynamic_shapes else nullcontext():
        program, left_out = torch.export.export(module, inputs, dynamic_shapes=dynamic_shapes), {}
    if _flatten_outputs(program):
        left_out["outputs that are numbers or text"] = "only tensors are compared"
    written = _written_inputs(program)
    specs = {spec.arg.name: spec for spec in program.graph_signature.input_specs if spec.arg.name in written}
    for spec in specs.values():
        if spec.kind is InputKind.PARAMETER:
            spec.kind, spec.persistent = InputKind.BUFFER, True
            program.state_dict[spec.target] = program.state_dict[spec.target].detach()
    if any(spec.kind is InputKind.USER_INPUT for spec in specs.values()):
        program = program.run_decompositions({})  # until then, changed inputs are not outputs
        outputs = program.graph_signature.output_specs
        is_kept = [each.kind is not OutputKind.USER_INPUT_MUTATION for each in outputs]
        _keep_outputs(program, is_kept)
        if not all(is_kept):
            left_out["writes to its inputs"] = "executorch would return each changed input before the outputs"
    return program, left_out


def flatten_outputs(returned: Any) -> list[Any]:
    """Return the tensors in what a module returned, in the order of the traced program; raises FarmError for none."""
    import torch
    from torch.utils import _pytree

    leaves = _pytree.tree_leaves(returned)
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    if not tensors:
        kinds = ", ".join(sorted({type(leaf).__name__ for leaf in leaves})) or "nothing"
        raise FarmError(f"its forward returns no tensor ({kinds}); return a tensor or a tuple of tensors")
    return tensors


def _flatten_outputs(program: Any) -> bool:
    """Make a traced program return a flat tuple of its tensors; return whether it had other outputs, except None."""
    import torch
    from torch.utils import _pytree

    returned = program.graph.output_node().args[0]
    is_tensor = [isinstance(getattr(each, "meta", {}).get("val"), torch.Tensor) for each in returned]
    signature = program.module_call_graph[0].signature
    _keep_outputs(program, is_tensor)
    if sum(is_tensor) != 1 or not signature.out_spec.is_leaf():
        signature.out_spec = _pytree.tree_structure(tuple(range(sum(is_tensor))))
    return any(each is not None and not is_one for each, is_one in zip(returned, is_tensor, strict=True))


def _keep_outputs(program: Any, is_kept: list[bool]) -> None:
    node, signature = program.graph.output_node(), program.graph_signature
    if not all(is_kept):
        node.args = (tuple(compress(node.args[0], is_kept)),)
        signature.output_specs = list(compress(signature.output_specs, is_kept))
        program.graph.eliminate_dead_code()
        program.graph_module.recompile()


def _written_inputs(program: Any) -> set[str]:
    """Return the names of the inputs, parameters and buffers that a traced program writes to, also through views."""
    import operator

    import torch

    def is_view(node: Any) -> bool:
        """Return whether the result of a node may share memory with its first argument."""
        if not isinstance(node.target, torch._ops.OpOverload):
            return node.target is operator.getitem  # of the views that an operator such as `chunk` returns
        returns = node.target._schema.returns
        return bool(returns and returns[0].alias_info)

    written = set()
    for node in program.graph.nodes:
        if isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable:
            while node.args and is_view(node):
                node = node.args[0]
            written.add(node.name)
    return written


_LOGGER = "torch.fx.experimental.symbolic_shapes"
_SIZE = r"L\['(\w+)'\]\.size\(\)\[(\d+)\]"
_RESTRICTED = re.compile(rf"You marked (\S+) as dynamic|values of (?:\S+ = )?({_SIZE})")


@contextmanager
def noted_guards(module: Any, dynamic_shapes: Any) -> Iterator[None]:
    """Add to an error of torch.export, as notes, which dimension of an input it is about, and the stack.

    refusals.csv and `explain_error` read these notes.
    """
    logger, guards = logging.getLogger(_LOGGER), _Guards()
    before = logger.level, logger.handlers
    logger.setLevel(logging.INFO)
    logger.handlers = [guards]
    try:
        yield
    except Exception as error:
        if match := _RESTRICTED.search(str(error)):
            for note in guards.describe(match[1] or match[2], module, dynamic_shapes):
                error.add_note(note)
        raise
    finally:
        logger.setLevel(before[0])
        logger.handlers = before[1]


class _Guards(logging.Handler):
    """Collects the dynamic sizes by their symbols, and the stack where torch restricts each."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: dict[str, str] = {}
        self.stacks: dict[str, str] = {}

    def emit(self, record: logging.LogRecord) -> None:
        text, values = str(record.msg), [str(each) for each in record.args or ()]
        if text.startswith("create_symbol"):  # of values[0] for the size values[2]
            self.sizes[values[0]] = values[2]
        elif "[guard added]" in text:  # the condition values[1]
            for symbol in re.findall(r"\bs\d+\b", values[1]):
                self.stacks.setdefault(symbol, "".join(traceback.format_stack()))
        elif text.startswith("set_replacement") and values[1].isdigit():  # values[0] can be only this number
            self.stacks[values[0]] = "".join(traceback.format_stack())

    def describe(self, name: str, module: Any, dynamic_shapes: Any) -> Iterator[str]:
        """Yield the place of the size with this name, that of a `Dim` or torch's, and the stack where it is needed."""
        inputs = list(inspect.signature(module.forward).parameters)
        for symbol, size in self.sizes.items():
            if (match := re.fullmatch(_SIZE, size)) and match[1] in inputs:
                dimension = int(match[2])
                dim = find_dim(dynamic_shapes, inputs.index(match[1]), match[1], dimension)
                if name in (size, getattr(dim, "__name__", None)):
                    yield f"dimension {dimension} of the input `{match[1]}`"
                    yield self.stacks.get(symbol, "")
                    return
