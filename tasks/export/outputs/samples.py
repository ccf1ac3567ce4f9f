"""A folder of samples: inputs from the user's data that calibrate int8_static, and by which each recipe is judged.

Each sample is a file. The program is executed for each on the machine that exports it, and compared with eager PyTorch
in the recipe's precision and in fp32. samples.json has the figures. Limits are applied later, when a session ends.
"""

import copy
import inspect
import json
import logging
import platform
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from devices.errors import FarmError
from tasks.export.entry import sample_files
from tasks.export.exported import SAMPLES, first_line
from tasks.export.factory import Inputs, Method
from tasks.export.lowering.trial import SUCCEEDED, execute_each
from tasks.export.outputs.difference import compare_values
from tasks.export.process.sandbox import is_failed_allocation
from tasks.export.recipes import Recipe
from tasks.export.references import CaseInputs, Outputs, call_once, to_stored_types
from tasks.export.user_code import display_path, explain_error
from tasks.store.files import hash_file, write_complete

logger = logging.getLogger(__name__)
_MAX_CALIBRATION = 100
"""Samples that calibrate, evenly spaced among all by name."""
_STEP = 50


@dataclass(frozen=True, eq=False)
class Samples:
    files: list[Path]
    method: Method
    """As the factory returns it."""
    exact: Any
    """The module before its conversion, in fp32; None for the recipe fp32, whose reference it is."""
    float_type: str
    calibrating: int
    """Number of samples that calibrate."""

    def judge(
        self, modules: Mapping[str, Any], operators: Mapping[str, Any], trial: str, folder: Path, log: Path | None
    ) -> dict[str, str]:
        """Execute model.pte in `folder` for each sample and write samples.json there; return its {file, sha256}.

        `modules` has the converted method for eager PyTorch, `operators` its part of export.json. Samples have no
        figures if this machine cannot run the program (`trial`). `log` is the file that this process prints to.
        Raises FarmError for a bad sample.
        """
        [(name, reference)] = modules.items()
        is_stateful = operators[name]["is_stateful"]
        [method] = to_stored_types([self.method], self.float_type)  # those of its set-up
        cases = (CaseInputs("", method, self.read(each)) for each in self.files)
        judged = []
        if trial == SUCCEEDED:
            for number, (case, outputs) in enumerate(execute_each(folder / "model.pte", cases, log, again=is_stateful)):
                if number % _STEP == 0:
                    logger.info("judging sample %d of %d", number + 1, len(self.files))
                judged.append(self._judge_one(self.files[number], case, outputs, reference))
        machine = f"{platform.node()} ({platform.system()} {platform.machine()})"
        content = {"machine": machine, "trial": trial, "calibrating": self.calibrating, "samples": judged}
        write_complete(folder / SAMPLES, json.dumps(content).encode())
        return {"file": SAMPLES, "sha256": hash_file(folder / SAMPLES)}

    def _judge_one(self, path: Path, case: CaseInputs, outputs: Outputs, reference: Any) -> dict[str, Any]:
        """Return the figures of a sample: for each reference those of each output, None if the shape differs."""
        import torch

        name = case.method.program_method
        with torch.no_grad():
            eager = call_once({name: reference}, case, self.float_type)
            exact = call_once({name: self.exact}, case, "float32") if self.exact is not None else None
        references = {"eager": eager} if exact is None else {"eager": eager, "fp32": exact}
        differences = {
            reference: [_compare(one, other) for one, other in zip(outputs, values, strict=True)]
            for reference, values in references.items()
        }
        scores = {"program": outputs, "reference": eager if exact is None else exact}
        return {
            "name": path.name,
            "sha256": hash_file(path),
            "differences": differences,
            "scores": {key: self._score(tuple(values), path) for key, values in scores.items()},
        }

    def _score(self, outputs: Inputs, path: Path) -> float | None:
        if self.method.score is None:
            return None
        return float(_call_user("score", self.method.score, path, (outputs, path)))

    def read(self, path: Path) -> Inputs:
        """Return the inputs in a file, as the program takes them; raises FarmError if they do not fit the method."""
        import torch

        dtype = getattr(torch, self.float_type)
        inputs = _check_inputs(path, _read_inputs(path, self.method), self.method)
        return tuple((each.to(dtype) if each.is_floating_point() else each).detach().contiguous() for each in inputs)


def add_samples(folder: Path, methods: list[Method], recipe: Recipe, *, needs_score: bool = False) -> list[Method]:
    """Return the methods with the samples in a folder, and with those that calibrate; a factory's calibration stays.

    Call it before a recipe changes the modules. Raises FarmError for a model with several methods or steps, for a bad
    sample, and with `needs_score` for a factory without `score`.
    """
    if len(methods) != 1:
        raise FarmError(
            f"`samples` needs a model with one method; this one has {', '.join(each.name for each in methods)}"
        )
    [method] = methods
    if method.steps:
        remedy = "a sample is one execution, so leave `steps` or `samples` out"
        raise FarmError(f"`samples` needs a method without `steps`, which {method.name} has; {remedy}")
    if needs_score and method.score is None:
        remedy = "return `score`, a function (outputs, path) -> number, or leave `score` of `accuracy` out"
        raise FarmError(f"`accuracy` requires a score, and the factory returns none; {remedy}")
    try:
        files = sample_files(folder)
    except ValueError as error:
        raise FarmError(str(error)) from None
    exact = None if recipe.name == "fp32" else copy.deepcopy(method.module).eval()
    uses = recipe.quantization == "int8_static" and not method.calibration
    count = min(len(files), _MAX_CALIBRATION) if uses else 0
    samples = Samples(files, method, exact, recipe.float_type, count)
    spaced = [files[number * len(files) // count] for number in range(count)]
    calibration = [samples.read(path) for path in spaced] if uses else method.calibration
    return [replace(method, samples=samples, calibration=calibration)]


def keep_files(files: list[Path], folder: Path) -> None:
    (folder / "samples").mkdir()
    for path in files:
        shutil.copyfile(path, folder / "samples" / path.name)


def _compare(actual: Any, expected: Any) -> dict[str, Any] | None:
    """Return the figures of an output, and whether it is of integers; None if its shape differs."""
    if actual.shape != expected.shape:
        return None
    one, other = (each.float().numpy() if each.is_floating_point() else each.numpy() for each in (actual, expected))
    return asdict(compare_values(one, other)) | {"is_integer": other.dtype.kind in "iub"}


def _read_inputs(path: Path, method: Method) -> Any:
    """Return the tensors in the file of a sample, in the order of the inputs; raises FarmError if it cannot be read."""
    import torch

    if method.read_sample is not None:
        inputs = _call_user("read_sample", method.read_sample, path, (path,))
        return (inputs,) if isinstance(inputs, torch.Tensor) else inputs
    try:
        match path.suffix:
            case ".npy":
                return (torch.from_numpy(np.load(path, allow_pickle=False)),)
            case ".npz":
                with np.load(path, allow_pickle=False) as arrays:
                    return _in_order(path, {name: torch.from_numpy(arrays[name]) for name in arrays.files}, method)
            case ".pt":
                content = torch.load(path, weights_only=True)
                if isinstance(content, torch.Tensor):
                    return (content,)
                return _in_order(path, content, method) if isinstance(content, Mapping) else content
            case ".bin":
                return _split(path, method)
    except FarmError:
        raise
    except Exception as error:  # of numpy, of zipfile, or of torch, which refuses a pickle that runs code
        if is_failed_allocation(error):
            raise
        if path.suffix == ".pt":  # torch's own text advises to run the code of the pickle
            problem = "not a file of torch.save with tensors alone; objects that run code are not loaded"
            raise FarmError(f"{display_path(path)}: {problem}") from None
        problem = f"cannot be read ({first_line(error)}); save arrays of numbers with numpy"
        raise FarmError(f"{display_path(path)}: {problem}") from None
    raise FarmError(
        f"{display_path(path)}: unknown type; use .npz, .npy, .pt or .bin, or return `read_sample`, a function "
        "(path) -> inputs, from the factory"
    )


def _call_user(key: str, function: Any, path: Path, arguments: tuple[Any, ...]) -> Any:
    """Call a function of the factory for a sample; raises FarmError with the user's line if it fails."""
    try:
        return function(*arguments)
    except Exception as error:
        if is_failed_allocation(error):
            raise
        raise FarmError(f"{display_path(path)}: `{key}` failed: {explain_error(error, first_line(error))}") from None


def _in_order(path: Path, tensors: Mapping[str, Any], method: Method) -> tuple[Any, ...]:
    """Return tensors in the order of forward's parameters, or as they are if their names are `arr_0`, `arr_1`, ..."""
    parameters = list(inspect.signature(method.module.forward).parameters)[: len(method.inputs)]
    if set(tensors) == set(parameters):
        return tuple(tensors[name] for name in parameters)
    if set(tensors) == {f"arr_{number}" for number in range(len(tensors))}:
        return tuple(tensors[f"arr_{number}"] for number in range(len(tensors)))
    raise FarmError(f"{display_path(path)}: has {', '.join(tensors)}; the inputs are {', '.join(parameters)}")


def _split(path: Path, method: Method) -> tuple[Any, ...]:
    """Return the inputs in a raw file, one after another, in the types and shapes of the example."""
    import torch

    data = path.read_bytes()
    sizes = [each.numel() * each.element_size() for each in method.inputs]
    if len(data) != sum(sizes):
        raise FarmError(f"{display_path(path)}: has {len(data)} bytes; the inputs of the example have {sum(sizes)}")
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    return tuple(
        torch.frombuffer(bytearray(data[start : start + size]), dtype=each.dtype).reshape(each.shape)
        for start, size, each in zip(starts, sizes, method.inputs, strict=True)
    )


def _check_inputs(path: Path, inputs: Any, method: Method) -> Inputs:
    """Return the inputs of a sample if their number, types and shapes fit the method; raises FarmError if not."""
    import torch

    where = display_path(path)
    if not isinstance(inputs, tuple | list) or not all(isinstance(each, torch.Tensor) for each in inputs):
        raise FarmError(f"{where}: contains {type(inputs).__name__}; a sample is a tensor for each input")
    if len(inputs) != len(method.inputs):
        raise FarmError(f"{where}: has {len(inputs)} inputs; the model takes {len(method.inputs)}")
    for number, (each, example) in enumerate(zip(inputs, method.inputs, strict=True)):
        shape, needed = list(each.shape), list(example.shape)
        is_other = len(shape) != len(needed) if method.dynamic_shapes else shape != needed
        if is_other:
            raise FarmError(f"{where}: input {number} has shape {shape}; the model takes {needed}")
        if each.dtype != example.dtype and not (each.is_floating_point() and example.is_floating_point()):
            types = [str(tensor.dtype).removeprefix("torch.") for tensor in (each, example)]
            raise FarmError(f"{where}: input {number} is {types[0]}; the model takes {types[1]}")
    return tuple(inputs)
