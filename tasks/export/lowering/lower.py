"""Lower the converted methods of a model to one .pte, with the farm's passes or, where these fail, without.

Everything here runs in the export process: torch and executorch are imported inside the functions that need them.
The text of this file is part of every export's key, so a change here exports every model again.
"""

import logging
import shutil
import traceback
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from devices.errors import FarmError
from tasks.export.convert import Converted, convert
from tasks.export.exported import first_line
from tasks.export.lowering.attention import attention_as_products
from tasks.export.lowering.buffers import give_values_the_rank_of_caches, keep_initial_values, write_in_place
from tasks.export.lowering.delegation import Operators, listed_operators, partitioner_reasons, sort_operators
from tasks.export.lowering.passes import (
    LeftOut,
    Passes,
    described,
    largest_distance,
    pass_on_graph,
    tolerance_of,
)
from tasks.export.lowering.slices import parts_as_slices
from tasks.export.lowering.trial import Trial, trial_of
from tasks.export.lowering.work import macs_of, read_bytes_of
from tasks.export.made import Inputs, Method
from tasks.export.process.memory import is_failed_allocation
from tasks.export.recipes import Recipe
from tasks.export.references import CaseInputs, Outputs, as_stored, choices_in, references, with_cases
from tasks.export.sources import write_sources
from tasks.export.taps import Key, keys_of, tapped, values_in_fp32
from tasks.store.files import sha256_of

logger = logging.getLogger(__name__)
_PASSES = (attention_as_products, give_values_the_rank_of_caches)
_EDGE_PASSES = (pass_on_graph(parts_as_slices),)
_RUNTIME_TOLERANCE = 10.0
"""Times the tolerance of passes: so far outputs on this machine may be from eager PyTorch's before a pass is suspected.
XNNPACK computes in another order than eager PyTorch."""


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
    program = _program(ready, folder, has_record=not taps, log=log)
    trial = program.trial
    return {
        "pte_sha256": sha256_of(folder / "model.pte"),
        "pte_bytes": (folder / "model.pte").stat().st_size,
        "methods": program.operators,
        "trial": trial.outcome,
        "left_out": described(program.left_out),
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


@dataclass(frozen=True)
class _Program:
    """A program in a folder, executed on this machine."""

    folder: Path
    operators: dict[str, Operators]
    trial: Trial
    distance: float
    """The largest of an output on this machine from eager PyTorch's, in tolerances of the passes."""
    left_out: list[LeftOut]


def _program(ready: _Ready, folder: Path, *, has_record: bool, log: Path | None) -> _Program:
    """Write the program to `folder`: with the farm's passes, or without them if only that one is right."""
    passes = Passes(_samples(ready.cases))
    chosen = _tried(ready, passes, folder / "with-passes", has_record=has_record, log=log)
    if passes.applied and _distance(chosen) > _RUNTIME_TOLERANCE:
        logger.info("lowering without the farm's passes")
        plain = _tried(ready, None, folder / "plain", has_record=has_record, log=log)
        if isinstance(plain, Exception) or _distance(plain) < _distance(chosen) / 2:
            chosen = _without(passes, plain, chosen)
    if isinstance(chosen, Exception):
        raise chosen
    for path in chosen.folder.iterdir():
        path.rename(folder / path.name)
    for name in ("with-passes", "plain"):
        shutil.rmtree(folder / name, ignore_errors=True)
    return chosen


def _without(passes: Passes, plain: "_Program | Exception", rejected: "_Program | Exception") -> "_Program | Exception":
    """Return the program without passes, which states why they are left out; an error stays one."""
    if isinstance(plain, Exception):
        return plain if isinstance(rejected, Exception) else rejected
    if isinstance(rejected, Exception):
        problem = str(rejected) if isinstance(rejected, FarmError) else first_line(rejected)
    else:
        times = f"{rejected.distance:.2g} times the allowed difference from eager PyTorch's"
        problem = f"outputs on this machine have {times}, without it {plain.distance:.2g} times"
    passes.leave_out(LeftOut(", ".join(sorted(passes.applied)), None, problem))
    return replace(plain, left_out=[*passes.left_out, *plain.left_out])


def _distance(tried: "_Program | Exception") -> float:
    return tried.distance if isinstance(tried, _Program) else float("inf")


def _tried(
    ready: _Ready, passes: Passes | None, folder: Path, *, has_record: bool, log: Path | None
) -> "_Program | Exception":
    """Return the program in its folder, or why it cannot be lowered, written or executed here."""
    import torch

    folder.mkdir()
    try:
        with torch.no_grad():
            logger.info("lowering")
            lowered, operators = _lower(ready.converted, passes, has_record=has_record)
        logger.info("writing")
        left_out = _write(lowered, folder, has_record=has_record)
        trial = trial_of(folder / "model.pte", ready.cases, log)
    except Exception as error:
        if is_failed_allocation(error):
            raise
        logger.info("this program cannot be used", exc_info=True)
        traceback.clear_frames(error.__traceback__)  # they hold the program: another one may follow
        return error
    return _Program(
        folder, operators, trial, _from_eager(ready, trial), [*(passes.left_out if passes else ()), *left_out]
    )


def _from_eager(ready: _Ready, trial: Trial) -> float:
    """Return how far the outputs on this machine are from eager PyTorch's, in tolerances of the passes."""
    largest = 0.0
    for case in ready.cases:
        tolerance, with_integers = tolerance_of(ready.converted[case.method.program_method].program)
        if outputs := trial.outputs.get(case.name):
            found = largest_distance(outputs, ready.eager[case.name], with_integers=with_integers)
            largest = max(largest, found / tolerance)
    return largest


def _samples(cases: list[CaseInputs]) -> dict[str, list[Inputs]]:
    """Return the inputs of each method, one for each shape that is measured."""
    found: dict[str, dict[Any, Inputs]] = {}
    for case in cases:
        shapes = tuple(tuple(each.shape) for each in case.inputs)
        found.setdefault(case.method.program_method, {}).setdefault(shapes, case.inputs)
    return {method: list(by_shape.values()) for method, by_shape in found.items()}


def _write(lowered: Any, folder: Path, *, has_record: bool) -> list[LeftOut]:
    """Write the program and, unless it has taps, which an ETRecord cannot contain, its record and its sources.

    Return why the record is left out, if executorch cannot write it.
    """
    with (folder / "model.pte").open("wb") as stream:
        lowered.write_to_file(stream)
    if not has_record:
        return []
    write_sources(lowered, folder)
    try:
        lowered.get_etrecord().save(folder / "model.etrecord")
    except Exception as error:
        if isinstance(error, OSError) or is_failed_allocation(error):
            raise
        logger.warning("the ETRecord cannot be written", exc_info=True)
        (folder / "model.etrecord").unlink(missing_ok=True)
        cause = f"executorch cannot write it ({type(error).__name__}); the log has the cause"
        return [LeftOut("ETRecord", None, cause)]
    return []


def _of_layers(layers: list[dict[str, Any]], in_fp32: list[tuple[Key, Any]]) -> Outputs:
    """Return the value in the fp32 model of each layer, None for one that it does not have."""
    values = dict(in_fp32)
    return [values.get(key) for key in keys_of(layers)]


def _lower(
    converted: Mapping[str, Converted], passes: Passes | None, *, has_record: bool
) -> tuple[Any, dict[str, Operators]]:
    """Return the program of all methods, and the operators of each."""
    import executorch.kernels.quantized  # noqa: F401 - registers the operators of quantized values
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.devtools.intermediate_output_tap import strip_taps_
    from executorch.exir import ExecutorchBackendConfig, memory, to_edge_transform_and_lower
    from executorch.exir.passes import MemoryPlanningPass

    xnnpack = XnnpackPartitioner()
    programs, on_edge = {name: each.program for name, each in converted.items()}, None
    if passes:
        programs = {name: passes.apply(name, program, _PASSES) for name, program in programs.items()}
        on_edge = {name: [passes.on_edge(name, _EDGE_PASSES)] for name in programs}
    with partitioner_reasons() as reasons:
        edge = to_edge_transform_and_lower(
            programs, transform_passes=on_edge, partitioner=[xnnpack], generate_etrecord=has_record
        )
    strip_taps_(edge)
    kept: dict[str, list[tuple[str, str]]] = {name: [] for name in programs}
    delegated: dict[str, Counter[str]] = {name: Counter() for name in programs}
    for name in programs:
        if passes and write_in_place(edge.exported_program(name)):  # took decoder_tiny from 84 to 65 us an execution
            passes.applied.add(write_in_place.__name__)
        sort_operators(edge.exported_program(name).graph_module, delegated[name], kept[name])
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
        listed = listed_operators(delegated[name], portable, kept[name], reasons, ruled)
        changes_state = bool(edge.exported_program(name).graph_signature.buffers_to_mutate)
        operators[name] = {**listed, "is_stateful": changes_state, **work[name]}
    return lowered, operators
