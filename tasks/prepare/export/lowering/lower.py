"""Lower the converted methods of a model to one .pte, and list the delegated and the portable operators.

Everything here runs in the export process: torch and executorch are imported inside the functions that need them.
The text of this file is part of every export's key, so a change here exports every model again.
"""

import logging
import operator
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.prepare.export.convert import Converted, convert
from tasks.prepare.export.lowering.attention import attention_as_products
from tasks.prepare.export.lowering.buffers import give_values_the_rank_of_caches, keep_initial_values, write_in_place
from tasks.prepare.export.lowering.slices import parts_as_slices
from tasks.prepare.export.lowering.trial import trial_of
from tasks.prepare.export.lowering.work import macs_of, read_bytes_of
from tasks.prepare.export.made import Method
from tasks.prepare.export.recipes import Recipe
from tasks.prepare.export.references import CaseInputs, Outputs, as_stored, choices_in, references, with_cases
from tasks.prepare.export.sources import write_sources
from tasks.prepare.export.taps import Key, keys_of, tapped, values_in_fp32
from tasks.store.files import sha256_of

logger = logging.getLogger(__name__)

_PARTITIONER_LOGGER = "executorch.backends.xnnpack.partition"
_NO_RULE = "XNNPACK's partitioner has no rule for this operator"
Operators = dict[str, Any]


def build(
    methods: list[Method],
    recipe: Recipe,
    folder: Path,
    own: Any = None,
    *,
    taps: bool = False,
    log: Path | None = None,
) -> dict[str, Any]:
    """Write model.pte, model.etrecord and the tensors of all cases to `folder`; return their part of export.json.

    `own` is the function of your own recipe. With `taps`, the program returns the values of its layers as well.
    `log` is the file that this process prints to.
    Raises NotApplicable if the recipe has no meaning for the model, and FarmError if the program fails here.
    """
    import torch

    with torch.no_grad():  # with gradients, writing a buffer in place cannot be exported
        ready = _converted(methods, recipe, own, taps=taps)
        logger.info("lowering")
        lowered, operators = _lower(ready.converted, has_record=not taps)
    logger.info("writing")
    _write(lowered, folder, has_record=not taps)
    trial = trial_of(folder / "model.pte", ready.cases, log)
    return {
        "pte_sha256": sha256_of(folder / "model.pte"),
        "pte_bytes": (folder / "model.pte").stat().st_size,
        "methods": operators,
        "trial": trial.outcome,
        "perplexity": ready.perplexity,
        "cases": [
            _written(ready, case, recipe, folder, None if taps else trial.outputs.get(case.name))
            for case in ready.cases
        ],
    }


@dataclass(frozen=True)
class _Ready:
    """The methods of a model, converted by a recipe, and what their cases return in eager PyTorch."""

    cases: list[CaseInputs]
    converted: dict[str, Converted]
    modules: dict[str, Any]
    """Of each method, the converted module as it runs in eager PyTorch."""
    eager: dict[str, Outputs]
    """What the converted modules return in each case."""
    exact: dict[str, Outputs]
    """What the modules returned before, in fp32; empty if that is the recipe."""
    layers_in_fp32: dict[str, list[tuple[Key, Any]]]
    perplexity: float | None


def _converted(methods: list[Method], recipe: Recipe, own: Any, *, taps: bool) -> _Ready:
    """Convert the methods, which changes their modules: what they return before is computed first."""
    import torch

    methods = as_stored(methods, recipe.float_type)
    cases = with_cases(methods)
    methods = [method for method in methods if not method.executes]
    is_changed = recipe.name != "fp32"
    originals = {each.name: each.module for each in methods}
    exact = references(originals, cases, "float32") if is_changed else {}
    layers_in_fp32 = values_in_fp32(methods, cases) if taps and is_changed else {}
    for method in methods:
        method.module.to(getattr(torch, recipe.float_type))
    converted = {method.name: convert(method, recipe, own) for method in methods}
    perplexity = next((method.perplexity() for method in methods if method.perplexity and recipe.is_in_place), None)
    if taps:
        converted = {name: tapped(each) for name, each in converted.items()}
    modules = {name: each.reference for name, each in converted.items()}
    eager = references(modules, cases, recipe.float_type)
    return _Ready(cases, converted, modules, eager, exact, layers_in_fp32, perplexity)


def _written(ready: _Ready, case: CaseInputs, recipe: Recipe, folder: Path, host: Outputs | None) -> dict[str, Any]:
    """Write the tensors of a case, with what the program returned on this machine; return its part of export.json."""
    eager, layers = ready.eager[case.name], ready.converted[case.method.program_method].layers
    return case.written(
        folder,
        eager,
        ready.exact.get(case.name),
        host,
        choices_in({"eager": eager, "host": host}, ready.modules, case, recipe.float_type),
        layers,
        _of_layers(layers, ready.layers_in_fp32.get(case.name, [])),
    )


def _write(lowered: Any, folder: Path, *, has_record: bool) -> None:
    """Write the program and, unless it has taps, which an ETRecord cannot contain, its record and its sources."""
    with (folder / "model.pte").open("wb") as stream:
        lowered.write_to_file(stream)
    if has_record:
        lowered.get_etrecord().save(folder / "model.etrecord")
        write_sources(lowered, folder)


def _of_layers(layers: list[dict[str, Any]], in_fp32: list[tuple[Key, Any]]) -> Outputs:
    """Return the value in the fp32 model of each layer, None for one that it does not have."""
    values = dict(in_fp32)
    return [values.get(key) for key in keys_of(layers)]


def _lower(converted: Mapping[str, Converted], *, has_record: bool) -> tuple[Any, dict[str, Operators]]:
    """Return the program of all methods, and the operators of each."""
    import executorch.kernels.quantized  # noqa: F401 - registers the operators of quantized values
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.devtools.intermediate_output_tap import strip_taps_
    from executorch.exir import ExecutorchBackendConfig, memory, to_edge_transform_and_lower
    from executorch.exir.passes import MemoryPlanningPass

    xnnpack = XnnpackPartitioner()
    programs = {name: each.program for name, each in converted.items()}
    for program in programs.values():
        attention_as_products(program)
        give_values_the_rank_of_caches(program)
    with _reasons() as reasons:
        edge = to_edge_transform_and_lower(
            programs, transform_passes=[parts_as_slices], partitioner=[xnnpack], generate_etrecord=has_record
        )
    strip_taps_(edge)
    kept: dict[str, list[tuple[str, str]]] = {name: [] for name in programs}
    delegated: dict[str, Counter[str]] = {name: Counter() for name in programs}
    for name in programs:
        write_in_place(edge.exported_program(name))  # took decoder_tiny from 84 to 65 us an execution
        _sort_operators(edge.exported_program(name).graph_module, delegated[name], kept[name])
    work = {
        name: {"macs": macs_of(edge.exported_program(name)), "read_bytes": read_bytes_of(edge.exported_program(name))}
        for name in programs
    }
    keep_initial_values(map(edge.exported_program, programs))
    shares_state = len(programs) > 1  # buffers with the same name are one
    planning = MemoryPlanningPass(share_mutable_buffers=shares_state)
    lowered = edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=planning))
    ruled = set(xnnpack.target_partitioner_configs)
    operators = {}
    for name in programs:
        # A view that shares its input's memory is not called at run time, so it is not a portable operator.
        views = sum(node.target is memory.view for node in lowered.exported_program(name).graph_module.graph.nodes)
        portable = Counter(each for _, each in kept[name]) - Counter({"aten.view_copy.default": views})
        listed = _listed(delegated[name], portable, kept[name], reasons, ruled)
        changes_state = bool(edge.exported_program(name).graph_signature.buffers_to_mutate)
        operators[name] = {**listed, "is_stateful": changes_state, **work[name]}
    return lowered, operators


def _listed(
    delegated: "Counter[str]",
    portable: "Counter[str]",
    kept: list[tuple[str, str]],
    reasons: dict[str, list[str]],
    ruled: set[str],
) -> Operators:
    return {
        "delegated": [{"operator": name, "count": count} for name, count in _by_weight(delegated)],
        "portable": [
            {"operator": name, "count": count, "reason": _reason(name, kept, reasons, ruled)}
            for name, count in _by_weight(portable)
        ],
    }


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
