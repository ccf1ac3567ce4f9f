"""Which models the farm exports: each through the farm and, if that refuses it or its program is wrong, without it.

Run: python -m tests.benchmarks.models suite [PREFIX ...], the models of ExecuTorch's own tests in fp32; or
     python -m tests.benchmarks.models pairs [PREFIX ...], generated ones: all recipes, static, dynamic, stateful; or
     python -m tests.benchmarks.models cost [PREFIX ...], the CPU time of the zoo's exports, beside ExecuTorch alone.

The first two print a line for each that is not right, and a table. PREFIX selects models by the beginning of their
names. --results FILE writes each outcome to FILE; outcomes that are in it are not determined again.
"""

import argparse
import contextlib
import gc
import importlib
import json
import multiprocessing
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.runtime import Runtime

from devices.errors import FarmError
from tasks.bundle.elements import read_elements
from tasks.export import zoo
from tasks.export.accuracy_limits import recipe_limits
from tasks.export.exported import NotApplicableError, first_line
from tasks.export.factory import build_methods
from tasks.export.lowering import lower
from tasks.export.lowering.passes import largest_distance
from tasks.export.process.child import avoid_repeated_work
from tasks.export.process.refusals import FAILS_IN_EAGER
from tasks.export.recipes import parse_recipe
from tasks.export.user_code import explain_error
from tests.fixtures import generated_models, suite_models

PLAIN_TOLERANCE = 1e-3
Kind = Literal[
    "right",
    "skipped",
    "not supported by ExecuTorch",
    "refused by the farm",
    "wrong by the farm",
    "wrong by ExecuTorch",
    "fails in eager PyTorch",
]
_RAW = re.compile(r"(?:^|: |`: )\w*(?:Error|Exception|Violation\w*): ")
"""The name of an exception, which begins a sentence without a remedy."""


@dataclass(frozen=True)
class Outcome:
    name: str
    precision: str
    kind: Kind
    sentence: str = ""

    @property
    def is_confusing(self) -> bool:
        """Whether a refusal has the name of an exception and no remedy."""
        return bool(_RAW.search(self.sentence)) and "; " not in self.sentence


def outcomes(source: str, pairs: list[tuple[str, str]]) -> Iterator[Outcome]:
    """Yield the outcome of each (factory in the module `source`, precision), without tests that have no model.

    All run in one other process. If it crashes, the model is not supported, and a new process continues behind it.
    """
    context = multiprocessing.get_context("spawn")
    while pairs:
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_send_outcomes, args=(source, pairs, sender))
        process.start()
        sender.close()
        try:
            while pairs:
                if outcome := receiver.recv():
                    yield outcome
                pairs = pairs[1:]
        except EOFError:
            alone = context.Process(target=_exit_if_plain_is_right, args=(source, pairs[0][0]))
            alone.start()
            alone.join()
            is_right = pairs[0][1] == "fp32" and alone.exitcode == 0
            kind: Kind = "refused by the farm" if is_right else "not supported by ExecuTorch"
            yield Outcome(*pairs[0], kind, "the process crashed")
            pairs = pairs[1:]
        finally:
            process.kill()
            process.join()


def _send_outcomes(source: str, pairs: list[tuple[str, str]], sender: "Connection[Any, Any]") -> None:
    avoid_repeated_work()
    gc.set_threshold(1_000_000, 5, 5)  # as an export does
    torch.set_num_threads(1)  # the models are small
    log = Path(tempfile.mkstemp()[1])  # the runtime prints the causes of its errors
    with log.open("w") as stream:
        for printed in (1, 2):
            os.dup2(stream.fileno(), printed)
    module = importlib.import_module(source)
    for name, precision in pairs:
        try:
            sender.send(_outcome(getattr(module, name), name, precision, log))
        except suite_models.NoModelError:
            sender.send(None)
        except Exception as error:
            sender.send(Outcome(name, precision, "not supported by ExecuTorch", str(error)))


def _outcome(make: Callable[[], Any], name: str, precision: str, log: Path) -> Outcome:
    torch.manual_seed(0)
    content = make()
    with tempfile.TemporaryDirectory() as folder:
        try:
            built = lower.build(build_methods(content, name), parse_recipe(precision), Path(folder), log=log)
            problem = _difference(built, precision, Path(folder))
        except NotApplicableError as reason:
            return Outcome(name, precision, "skipped", str(reason))
        except Exception as error:
            sentence = str(error) if isinstance(error, FarmError) else explain_error(error, first_line(error))
            if FAILS_IN_EAGER in getattr(error, "__notes__", ()):
                return Outcome(name, precision, "fails in eager PyTorch", sentence)
            is_right = precision == "fp32" and _is_plain_right(make)
            return Outcome(
                name, precision, "refused by the farm" if is_right else "not supported by ExecuTorch", sentence
            )
    if problem is None:
        return Outcome(name, precision, "right")
    is_right = precision != "fp32" or _is_plain_right(make)
    return Outcome(name, precision, "wrong by the farm" if is_right else "wrong by ExecuTorch", problem)


def _difference(built: dict[str, Any], precision: str, folder: Path) -> str | None:
    """Return how this machine's outputs differ from the references; None if they are right."""
    limits = recipe_limits(precision, None)
    for case in built["cases"]:
        if not case["outputs_host"]:
            return str(built["trial"])
        for references, min_db in ((case["outputs"], limits.eager_db), (case["outputs_fp32"], limits.fp32_db)):
            for number, each in enumerate(zip(case["outputs_host"], references, strict=bool(references))):
                actual, exact = (_read_values(folder / one["file"], one["dtype"]) for one in each)
                snr_db = _snr_db(actual, exact) if actual.shape == exact.shape else float("-inf")
                if snr_db < min_db:
                    return f"output {number}: {snr_db:.1f} dB"
    return None


def _read_values(file: Path, dtype: str) -> Any:
    with file.open("rb") as stream:
        return read_elements(stream, dtype).astype(float)


def _snr_db(actual: Any, exact: Any) -> float:
    is_equal = (actual == exact) | (np.isnan(actual) & np.isnan(exact))
    noise = np.where(is_equal, 0.0, actual - exact)
    if not np.any(noise):
        return float("inf")
    with np.errstate(all="ignore"):
        signal = np.square(exact[np.isfinite(exact)]).sum()
        return float(10 * np.log10(signal / np.square(noise).sum()))


def _is_plain_right(make: Callable[[], Any]) -> bool:
    """Whether a program by ExecuTorch alone returns what eager PyTorch returns."""
    with contextlib.suppress(Exception), torch.no_grad():
        torch.manual_seed(0)
        content = make()
        content = content if isinstance(content, dict) else dict(zip(("module", "inputs"), content, strict=True))
        module, inputs = content["module"].eval(), content["inputs"]
        program = torch.export.export(module, inputs, dynamic_shapes=content.get("dynamic_shapes"))
        lowered = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()]).to_executorch()
        program = Runtime.get().load_program(lowered.buffer)
        distances = []
        for each in content.get("shapes", {"": inputs}).values():
            leaves = torch.utils._pytree.tree_leaves(each)
            copies = [leaf.clone().contiguous() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
            actual = program.load_method("forward").execute(copies)
            expected = torch.utils._pytree.tree_leaves(module(*each))
            tensors = [[leaf for leaf in values if isinstance(leaf, torch.Tensor)] for values in (actual, expected)]
            distances.append(largest_distance(*tensors, with_integers=True))
        return max(distances) < PLAIN_TOLERANCE
    return False


def _print_costs(prefixes: tuple[str, ...]) -> None:
    """Print the CPU seconds of an export in fp32 with one execution, the least of three interleaved rounds."""
    torch.set_num_threads(1)
    avoid_repeated_work()

    def farm(make: Callable[[], Any], name: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            lower.build(build_methods(make(), name), parse_recipe("fp32"), Path(folder))

    for name, make in zoo.MODELS.items():
        if name.startswith(prefixes or ("",)):
            rounds = [[_cpu_s(_is_plain_right, make), _cpu_s(farm, make, name)] for _ in range(3)]
            alone, with_farm = map(min, zip(*rounds, strict=True))
            print(f"{name}: {alone:.1f} s alone, {with_farm:.1f} s, {with_farm / alone:.2f} times", flush=True)


def _cpu_s(call: Callable[..., Any], *arguments: Any) -> float:
    started = sum(os.times()[:4])  # of this process, and of the programs that it starts
    call(*arguments)
    return sum(os.times()[:4]) - started


def _exit_if_plain_is_right(source: str, name: str) -> None:
    """End this process with 0 if ExecuTorch alone is right, else with 1."""
    sys.exit(not _is_plain_right(getattr(importlib.import_module(source), name)))


def resumed_outcomes(source: str, pairs: list[tuple[str, str]], results: Path | None) -> Iterator[Outcome]:
    """Yield the outcomes that the file `results` has, then the others, and append these to it."""
    written = results.read_text(encoding="utf-8").splitlines() if results and results.exists() else []
    done = {(each.name, each.precision): each for each in (Outcome(**json.loads(line)) for line in written)}
    yield from (done[pair] for pair in pairs if pair in done)
    for outcome in outcomes(source, [pair for pair in pairs if pair not in done]):
        if results:
            with results.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(asdict(outcome)) + "\n")
        yield outcome


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["suite", "pairs", "cost"])
    parser.add_argument("prefixes", nargs="*")
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    if options.what == "cost":
        _print_costs(tuple(options.prefixes))
        return
    source = {"suite": "suite_models", "pairs": "generated_models"}[options.what]
    suite = [(name, "fp32") for name in suite_models.list_models()] if options.what == "suite" else []
    pairs = suite or generated_models.list_pairs()
    pairs = [pair for pair in pairs if pair[0].startswith(tuple(options.prefixes) or ("",))]
    counts = Counter[str]()
    for outcome in resumed_outcomes(f"tests.fixtures.{source}", pairs, options.results):
        counts[outcome.kind] += 1
        counts["confusing"] += outcome.is_confusing
        if outcome.kind != "right":
            mark = "confusing " if outcome.is_confusing else ""
            print(f"{mark}{outcome.kind}: {outcome.name} {outcome.precision}: {outcome.sentence}", flush=True)
    print(
        "| outcome | models |", "| --- | --- |", *(f"| {kind} | {count} |" for kind, count in counts.items()), sep="\n"
    )


if __name__ == "__main__":
    main()
