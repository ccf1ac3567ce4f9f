"""Lower the converted methods of a model to one .pte, with the farm's passes or, if these fail, without."""

import logging
import shutil
import traceback
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from tasks.export.convert import Converted, convert, make_linear
from tasks.export.exported import Case, NotApplicableError, Tensors, first_line
from tasks.export.factory import Method
from tasks.export.lowering.buffers import give_values_the_rank_of_caches, keep_initial_values, write_in_place
from tasks.export.lowering.delegates import FOR_XNNPACK, Lowering, xnnpack_rules
from tasks.export.lowering.delegation import (
    Operators,
    count_called,
    count_operators,
    list_operators,
    partitioner_reasons,
)
from tasks.export.lowering.layer_probes import LayerKey, add_taps, compute_fp32_layers, layer_keys
from tasks.export.lowering.layers import check_converted, list_layers, list_type_changes
from tasks.export.lowering.needed_memory import live_bytes
from tasks.export.lowering.passes import LeftOut, Passes
from tasks.export.lowering.rewrites import attention_as_products, parts_as_slices
from tasks.export.lowering.shares import list_shares
from tasks.export.lowering.trial import Trial, execute_on_host
from tasks.export.lowering.work import count_macs, count_read_bytes
from tasks.export.lowering.write import write_program
from tasks.export.outputs.fault_search import OutputError, find_fault, output_error
from tasks.export.outputs.randomness import SEARCH, draws_in, find_random
from tasks.export.process.refusals import note_operator_source
from tasks.export.process.sandbox import is_failed_allocation
from tasks.export.recipes import Recipe
from tasks.export.references import (
    CaseInputs,
    Outputs,
    compute_references,
    inputs_by_shape,
    list_cases,
    list_choices,
    to_stored_types,
    write_tensors,
)
from tasks.export.tracing.sizes import check_still_dynamic, list_sizes
from tasks.store.files import hash_file

logger = logging.getLogger(__name__)
_PASSES = (give_values_the_rank_of_caches,)
# For operators without a rule of XNNPACK.
_XNNPACK_PASSES = (attention_as_products,)
_XNNPACK_EDGE_PASSES = (parts_as_slices,)


def build(
    methods: list[Method],
    recipe: Recipe,
    folder: Path,
    lowering: Lowering = FOR_XNNPACK,
    *,
    taps: bool = False,
    log: Path | None = None,
) -> dict[str, Any]:
    """Write the program, its ETRecord, sources and cases' tensors to `folder`; return their part of export.json.

    `lowering` states the delegates and your own functions. With `taps`, the program also returns the values of its
    layers, and has neither ETRecord nor sources. `log` is the file that this process prints to.
    Raises NotApplicableError if the recipe has no meaning for the model, and FarmError if the program fails here.
    """
    import torch

    lowering.check_shapes(is_dynamic=any(each.dynamic_shapes for each in methods))
    type_changes = {each.name: list_type_changes(each.module, each.inputs, recipe.float_type) for each in methods}
    with torch.no_grad():  # with gradients, writing a buffer in place cannot be exported
        model = _convert_methods(methods, recipe, lowering, taps=taps)
    program = _choose_program(model, folder, log)
    layers = [operators["layers"] for operators in program.operators.values()]
    check_converted(recipe, layers, for_xnnpack=lowering.is_for_xnnpack)
    hosts = {} if taps else program.trial.outputs
    cases = [_write_case(model, case, hosts.get(case.name, []), folder) for case in model.cases]
    for name, operators in program.operators.items():
        operators |= {"type_changes": type_changes[name], "layers": operators["layers"] or []}
        operators["random"] = draws_in(name, model.random)
        of_method = [] if taps else [case for case in model.cases if case.method.program_method == name]
        wrong = next((case for case in of_method if program.errors[case.name].is_wrong), None)
        operators["fault"] = wrong and find_fault(wrong, model.converted[name].program, log)
    trial, samples = program.trial.outcome, methods[0].samples
    return {
        "pte_sha256": hash_file(folder / "model.pte"),
        "pte_bytes": (folder / "model.pte").stat().st_size,
        "methods": program.operators,
        "trial": trial,
        "left_out": [asdict(step) for step in (*model.left_out, *program.left_out)],
        "perplexity": model.perplexity,
        "samples": samples and samples.judge(model.modules, program.operators, trial, folder, log),
        "cases": [asdict(case) for case in cases],
    }


@dataclass(frozen=True)
class _Model:
    """The methods of a model, converted by a recipe, and the outputs of its cases in eager PyTorch."""

    cases: list[CaseInputs]
    converted: dict[str, Converted]
    eager: dict[str, Outputs]
    """Outputs of the converted modules, by case."""
    fp32: dict[str, Outputs]
    """Outputs of the modules before the conversion, in fp32, by case; empty for the recipe fp32."""
    layers_fp32: dict[str, dict[LayerKey, Any]]
    """Values of the layers in fp32, by case; empty without taps and for the recipe fp32."""
    random: list[dict[str, Any]]
    """What draws random numbers in evaluation mode, or may; see `find_random`."""
    perplexity: float | None
    is_tapped: bool
    recipe: Recipe
    lowering: Lowering

    @property
    def left_out(self) -> list[LeftOut]:
        """What the methods' programs, and what is known of them, do without."""
        steps = [(name, *each) for name, one in self.converted.items() for each in one.left_out.items()]
        steps += [(draw["method"], SEARCH, draw["cause"]) for draw in self.random if draw["cause"]]
        return [LeftOut(step, name, why) for name, step, why in steps]

    @property
    def modules(self) -> dict[str, Any]:
        return {name: each.reference for name, each in self.converted.items()}


def _convert_methods(methods: list[Method], recipe: Recipe, lowering: Lowering, *, taps: bool) -> _Model:
    """Return the converted methods with their references; conversion changes modules, so fp32 outputs come first."""
    import torch

    methods = to_stored_types(methods, recipe.float_type)
    cases = list_cases(methods)
    methods = [method for method in methods if not method.executes]
    modules = {each.name: each.module.to(torch.float32) for each in methods}  # its weights may be of any type
    random = find_random(modules, cases, "float32")
    fp32 = compute_references(modules, cases, "float32") if recipe.name != "fp32" else {}
    if recipe.quantization:  # here, so that the layers in fp32 are the same
        for module in modules.values():
            make_linear(module)
    layers_fp32 = compute_fp32_layers(methods, cases) if taps and fp32 else {}
    for module in modules.values():
        module.to(getattr(torch, recipe.float_type))
    converted = {
        method.name: convert(
            method, recipe, lowering.user_recipe, lowering.after_quantizing, folds_weights=lowering.folds_weights
        )
        for method in methods
    }
    perplexity = next((method.perplexity() for method in methods if method.perplexity and recipe.is_in_place), None)
    if taps:
        converted = {name: add_taps(each) for name, each in converted.items()}
    eager = compute_references({name: each.reference for name, each in converted.items()}, cases, recipe.float_type)
    return _Model(cases, converted, eager, fp32, layers_fp32, random, perplexity, taps, recipe, lowering)


def _write_case(model: _Model, case: CaseInputs, host: Outputs, folder: Path) -> Case:
    method, setup = case.method, case.method.setup

    def write(kind: str, tensors: Iterable[Any]) -> Tensors:
        return write_tensors(folder, f"{case.name}-{kind}" if case.name else kind, tensors)

    layers, layers_fp32 = model.converted[method.program_method].layers, model.layers_fp32.get(case.name, {})
    count = len(model.eager[case.name]) - len(layers)
    outputs, values = model.eager[case.name][:count], write("tap", model.eager[case.name][count:])
    taps = []
    for number, (layer, value, key) in enumerate(zip(layers, values, layer_keys(layers), strict=True)):
        exact = {"fp32": write(f"tap-fp32-{number}", [layers_fp32[key]])[0]} if key in layers_fp32 else {}
        taps.append(layer | value | exact)
    choices = list_choices({"eager": outputs, "host": host}, model.modules, case, model.recipe.float_type)
    return Case(
        name=case.name,
        method=method.program_method,
        inputs=write("input", case.inputs),
        outputs=write("output", outputs),
        outputs_fp32=write("fp32", model.fp32.get(case.name, [])),
        outputs_host=write("host", host),
        choices={name: write(f"choices-{name}", each) for name, each in choices.items()},
        setup={"method": setup[0], "inputs": write("setup", chain(*setup[1]))} if setup else None,
        **{key: getattr(method, key) for key in ("tokens", "kv_depth", "prompt_tokens", "steps")},
        is_dynamic=method.dynamic_shapes is not None,
        taps=taps,
    )


@dataclass(frozen=True)
class _Program:
    """A program in a folder, with its trial on this machine."""

    folder: Path
    operators: dict[str, Operators]
    trial: Trial
    errors: dict[str, OutputError]
    """By case."""
    left_out: list[LeftOut]

    @property
    def worst(self) -> OutputError:
        return max(self.errors.values())


def _choose_program(model: _Model, folder: Path, log: Path | None) -> _Program:
    """Write the program to `folder`, with the passes, or without them if those fail or make it wrong.

    The one without must be less than half as far from eager PyTorch. Raises the error of the last one if none works.
    """
    passes = Passes(inputs_by_shape(model.cases))
    chosen = _try_program(model, passes, folder / "with-passes", log)
    if passes.applied and (isinstance(chosen, Exception) or chosen.worst.is_far):
        logger.info("lowering without the farm's passes")
        plain = _try_program(model, None, folder / "plain", log)
        if isinstance(plain, Exception):
            chosen = plain if isinstance(chosen, Exception) else chosen
        elif isinstance(chosen, Exception) or plain.worst.tolerances < chosen.worst.tolerances / 2:
            problem = first_line(chosen) if isinstance(chosen, Exception) else chosen.worst.sentence
            why = f"{problem}; without it, {plain.worst.sentence}"
            passes.leave_out(LeftOut(", ".join(sorted(passes.applied)), None, why))
            chosen = replace(plain, left_out=[*passes.left_out, *plain.left_out])
    if isinstance(chosen, Exception):
        note_operator_source(chosen, [each.program.graph for each in model.converted.values()])
        raise chosen
    for path in chosen.folder.iterdir():
        path.rename(folder / path.name)
    for name in ("with-passes", "plain"):
        shutil.rmtree(folder / name, ignore_errors=True)
    return chosen


def _try_program(model: _Model, passes: Passes | None, folder: Path, log: Path | None) -> _Program | Exception:
    """Write a program to `folder` and execute it here; return it, or its error.

    Raised are only a failed allocation and NotApplicableError.
    """
    import torch

    folder.mkdir()
    try:
        with torch.no_grad():
            nodes = sum(len(each.program.graph.nodes) for each in model.converted.values())
            logger.info("lowering %d operators", nodes)
            lowered, operators = _lower(model, passes)
        logger.info("writing")
        unwritten = write_program(lowered, folder, with_sources=not model.is_tapped)
        trial = execute_on_host(folder / "model.pte", model.cases, log)
    except Exception as error:
        if is_failed_allocation(error) or isinstance(error, NotApplicableError):
            raise
        logger.info("this program cannot be used", exc_info=True)
        traceback.clear_frames(error.__traceback__)  # they keep the program in memory, and another one may follow
        return error
    errors = {each.name: _output_error(model, each, trial.outputs.get(each.name, [])) for each in model.cases}
    return _Program(folder, operators, trial, errors, [*(passes.left_out if passes else ()), *unwritten])


def _output_error(model: _Model, case: CaseInputs, outputs: Outputs) -> OutputError:
    """Return the error of a case's outputs on this machine; 0 if it was not tried or the model is random."""
    if not outputs or model.random:
        return OutputError()
    program, eager = model.converted[case.method.program_method].program, model.eager[case.name]
    choices = partial(list_choices, {"eager": eager}, model.modules, case, model.recipe.float_type)
    return output_error(case.name, outputs, eager, program, model.recipe.name, lambda: choices().get("eager", []))


def _lower(model: _Model, passes: Passes | None) -> tuple[Any, dict[str, Operators]]:
    """Return the program of all methods, an ExecutorchProgramManager, and the part of export.json about each."""
    import executorch.kernels.quantized  # noqa: F401 - registers the operators of quantized values
    from executorch.devtools.intermediate_output_tap import strip_taps_
    from executorch.exir import ExecutorchBackendConfig, to_edge_transform_and_lower
    from executorch.exir.passes import MemoryPlanningPass

    partitioners = model.lowering.partitioners(model.recipe)
    programs, on_edge = {name: each.program for name, each in model.converted.items()}, None
    if passes:
        for_xnnpack = model.lowering.is_for_xnnpack
        steps = (*(_XNNPACK_PASSES if for_xnnpack else ()), *_PASSES)
        programs = {name: passes.apply(name, program, steps) for name, program in programs.items()}
        if for_xnnpack:
            on_edge = {name: passes.on_edge(name, _XNNPACK_EDGE_PASSES) for name in programs}
    sizes = {name: list_sizes(program) for name, program in programs.items()}
    with partitioner_reasons() as reasons:
        edge = to_edge_transform_and_lower(
            programs,
            transform_passes=on_edge,
            partitioner=[each.partitioner for each in partitioners],
            generate_etrecord=not model.is_tapped,
        )
    strip_taps_(edge)
    portable_nodes: dict[str, list[tuple[str, str]]] = {name: [] for name in programs}
    delegated: dict[str, dict[str, Counter[str]]] = {name: {} for name in programs}
    macs: dict[str, dict[str | None, int] | None] = {}
    operators: dict[str, Operators] = {}
    for name in programs:
        program = edge.exported_program(name)
        check_still_dynamic(sizes[name], program)
        if passes and write_in_place(program):  # reduced decoder_tiny from 84 to 65 us per execution
            passes.applied.add(write_in_place.__name__)
        count_operators(program.graph_module, delegated[name], portable_nodes[name])
        macs[name] = by_backend = count_macs(program)
        operators[name] = {
            "is_stateful": bool(program.graph_signature.buffers_to_mutate),
            "macs": None if by_backend is None else sum(by_backend.values()),
            "read_bytes": count_read_bytes(program),
            "layers": list_layers(program, model.recipe, model.lowering.converting),
        }
    for operator, why in model.lowering.left.items():
        reasons.setdefault(operator, []).append(why)
    model.lowering.check_taken(partitioners, delegated, portable_nodes)
    keep_initial_values([edge.exported_program(name) for name in programs])
    planning = MemoryPlanningPass(share_mutable_buffers=len(programs) > 1)  # buffers with the same name are one
    lowered = edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=planning))
    with_rule, stated_backends = xnnpack_rules(partitioners), model.lowering.backends
    for name in programs:
        planned = lowered.exported_program(name)
        called = count_called(portable_nodes[name], planned)
        cases = [case for case in model.cases if case.method.program_method == name]
        operators[name]["live_bytes"] = {case.name: live_bytes(planned, case.inputs) for case in cases}
        inside = sum(delegated[name].values(), Counter[str]())
        operators[name] |= list_operators(inside, called, portable_nodes[name], reasons, with_rule)
        operators[name] |= list_shares(delegated[name], called, macs[name], stated_backends)
    return lowered, operators
