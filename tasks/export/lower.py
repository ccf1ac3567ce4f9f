"""Lower one seeded model to a .pte with XNNPACK, and list the delegated and the portable operators.

Everything here runs in the export subprocess: torch and executorch are imported inside the functions that need them.
The text of this file is part of every export's key, so a change here exports every model again.
"""

import hashlib
import logging
import operator
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from devices.errors import FarmError
from tasks.export.precision import RECIPES, Precision
from tasks.files import sha256_of

logger = logging.getLogger(__name__)

_CALIBRATION_BATCHES = 8
_PARTITIONER_LOGGER = "executorch.backends.xnnpack.partition"
_NO_RULE = "XNNPACK's partitioner has no rule for this operator"


def build(model: Any, inputs: tuple[Any, ...], precision: Precision, folder: Path) -> dict[str, Any]:
    """Write model.pte, model.etrecord, input-N.bin and output-N.bin to `folder`; return their entries of export.json.

    The reference outputs are those of the eager module in the same precision, of the fp32 module for int8.
    """
    import torch

    recipe = RECIPES[precision]
    dtype = getattr(torch, recipe.float_type)
    model = model.eval().to(dtype)
    inputs = tuple(_contiguous(tensor, dtype) for tensor in inputs)
    with torch.no_grad():
        outputs = model(*[tensor.clone() for tensor in inputs])
    described_inputs = _write_tensors(folder, "input", inputs)
    described_outputs = _write_tensors(folder, "output", _tensors_of(outputs))
    logger.info("tracing")
    program = torch.export.export(model, inputs)
    if recipe.quantization:
        program = _quantize(program, inputs, dynamic=recipe.quantization == "dynamic")
    logger.info("lowering")
    lowered, delegated, portable = _lower(program)
    logger.info("writing")
    with (folder / "model.pte").open("wb") as stream:
        lowered.write_to_file(stream)
    lowered.get_etrecord().save(folder / "model.etrecord")
    return {
        "pte_sha256": sha256_of(folder / "model.pte"),
        "pte_bytes": (folder / "model.pte").stat().st_size,
        "inputs": described_inputs,
        "outputs": described_outputs,
        "delegated": delegated,
        "portable": portable,
    }


def _contiguous(tensor: Any, dtype: Any) -> Any:
    """Return the tensor as the runner reads it from a file; only floating-point tensors get the type `dtype`."""
    return (tensor.to(dtype) if tensor.is_floating_point() else tensor).detach().contiguous()


def _tensors_of(outputs: Any) -> list[Any]:
    """Return the output tensors in the order in which the exported program returns them."""
    import torch
    from torch.utils import _pytree

    leaves: list[Any] = _pytree.tree_leaves(outputs)
    for leaf in leaves:
        if not isinstance(leaf, torch.Tensor):
            raise FarmError(f"its forward returns a {type(leaf).__name__}; it must return only tensors")
    return leaves


def _write_tensors(folder: Path, kind: str, tensors: Any) -> list[dict[str, Any]]:
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


def _quantize(program: Any, inputs: tuple[Any, ...], *, dynamic: bool) -> Any:
    """Return the program with int8 weights per channel: activations calibrated on seeded data, or dynamic (linears)."""
    import torch
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    quantizer = XNNPACKQuantizer()
    config = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=dynamic)
    if dynamic:
        quantizer.set_operator_type(torch.ops.aten.linear.default, config)
    else:
        quantizer.set_global(config)
    prepared = prepare_pt2e(program.module(), quantizer)
    logger.info("calibrating")
    with torch.no_grad():
        prepared(*inputs)
        for _ in range(_CALIBRATION_BATCHES - 1):
            prepared(*[_shuffled(tensor) for tensor in inputs])
    converted = convert_pt2e(prepared)
    if not any("quantize" in str(node.target) for node in converted.graph.nodes):
        kind = "a linear layer" if dynamic else "an operator that XNNPACK's quantizer supports"
        raise FarmError(f"the model does not contain {kind}, so nothing can be quantized; use fp32 or fp16")
    return torch.export.export(converted, inputs)


def _shuffled(tensor: Any) -> Any:
    """Return the tensor's values in another order, so all of them remain valid inputs."""
    import torch

    return tensor.reshape(-1)[torch.randperm(tensor.numel())].reshape(tensor.shape)


def _lower(program: Any) -> tuple[Any, list[dict[str, Any]], list[dict[str, Any]]]:
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import memory, to_edge_transform_and_lower

    partitioner = XnnpackPartitioner()
    with _reasons() as reasons:
        edge = to_edge_transform_and_lower(program, partitioner=[partitioner], generate_etrecord=True)
    delegated: Counter[str] = Counter()
    kept: list[tuple[str, str]] = []
    _sort_operators(edge.exported_program().graph_module, delegated, kept)
    lowered = edge.to_executorch()
    # A view that shares its input's memory is not called at run time, so it is not a portable operator.
    views = sum(node.target is memory.view for node in lowered.exported_program().graph_module.graph.nodes)
    portable = Counter(name for _, name in kept) - Counter({"aten.view_copy.default": views})
    ruled = set(partitioner.target_partitioner_configs)
    return (
        lowered,
        [{"operator": name, "count": count} for name, count in _by_weight(delegated)],
        [
            {"operator": name, "count": count, "reason": _reason(name, kept, reasons, ruled)}
            for name, count in _by_weight(portable)
        ],
    )


def _by_weight(counts: "Counter[str]") -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _sort_operators(graph_module: Any, delegated: "Counter[str]", kept: list[tuple[str, str]]) -> None:
    """Count the operators inside delegates and list (node, operator) of those outside, control flow included."""
    import torch
    from executorch.exir.lowered_backend_module import LoweredBackendModule

    for node in graph_module.graph.nodes:
        if node.op == "get_attr":
            part = getattr(graph_module, node.target)
            if isinstance(part, LoweredBackendModule):
                delegated.update(
                    _operator_name(inner.target)
                    for inner in part.original_module.graph.nodes
                    if inner.op == "call_function" and inner.target is not operator.getitem
                )
            elif isinstance(part, torch.fx.GraphModule):
                _sort_operators(part, delegated, kept)
        elif node.op == "call_function" and node.target is not operator.getitem:
            name = _operator_name(node.target)
            if name != "executorch_call_delegate":
                kept.append((node.name, name))


def _operator_name(target: Any) -> str:
    """Return `aten.add.Tensor` both for a torch operator and for its wrapper in the edge dialect."""
    from executorch.exir.dialects.edge._ops import EdgeOpOverload

    return str(target._op if isinstance(target, EdgeOpOverload) else target)


@contextmanager
def _reasons() -> Iterator[dict[str, list[str]]]:
    """Collect the partitioner's reasons for refusing nodes: {node or operator name: distinct reasons}."""
    reasons: dict[str, list[str]] = {}

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            node, reason = getattr(record.msg, "node", None), getattr(record.msg, "reason", None)
            if node is not None and reason:
                for name in (node.name, _operator_name(node.target)):
                    if reason not in reasons.setdefault(name, []):
                        reasons[name].append(reason)

    # The partitioner logs refusals at DEBUG, on one logger per file.
    partitioner, listener = logging.getLogger(_PARTITIONER_LOGGER), Listener()
    before = partitioner.level, partitioner.propagate
    partitioner.addHandler(listener)
    partitioner.setLevel(logging.DEBUG)
    partitioner.propagate = False
    try:
        yield reasons
    finally:
        partitioner.removeHandler(listener)
        partitioner.setLevel(before[0])
        partitioner.propagate = before[1]


def _reason(name: str, kept: list[tuple[str, str]], reasons: dict[str, list[str]], ruled: set[str]) -> str | None:
    """Return why operator `name` was not delegated: the reasons of its nodes, else of the operator, else `_NO_RULE`."""
    given = [reason for node, operator_name in kept if operator_name == name for reason in reasons.get(node, [])]
    given = given or reasons.get(name, [])
    if given:
        return "; ".join(dict.fromkeys(given))
    return None if name.split(".", 1)[-1] in ruled else _NO_RULE
