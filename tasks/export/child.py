"""The process that exports one model: `python -m tasks.export MODEL PRECISION EXPORTS_DIR`."""

import argparse
import contextlib
import faulthandler
import gc
import importlib
import json
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from devices.errors import FarmError
from tasks.export.export import first_line, os_cause
from tasks.export.key import EXPORT_VERSION, export_key, is_own, note_used, source_sha256, versions
from tasks.export.precision import PRECISIONS, Precision
from tasks.export.zoo import MODELS
from tasks.files import publish_folder, write_complete

_LOOK_S = 1.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Export one model in this process and print the result on stdout: {"folder": name} or {"error": cause}."""
    parser = argparse.ArgumentParser(prog="python -m tasks.export", description=main.__doc__)
    parser.add_argument("model")
    parser.add_argument("precision", choices=PRECISIONS)
    parser.add_argument("exports_dir", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--parent", type=int, default=os.getppid(), help="process id; this process ends with it")
    options = parser.parse_args(arguments)
    # Libraries print to stdout, so their stdout goes to the log and the answer to the original stdout.
    answer_to = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    faulthandler.enable()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    threading.Thread(target=_end_with_parent, args=(options.parent,), daemon=True).start()
    try:
        answer = {"folder": _export_here(options.model, options.precision, options.exports_dir, options.seed).name}
    except Exception as error:
        with contextlib.suppress(OSError):  # the log's disk may be the full one
            traceback.print_exc()
        answer = {"error": _cause(error, options.exports_dir)}
    with answer_to:
        json.dump(answer, answer_to)
    return 1 if "error" in answer else 0


def _end_with_parent(parent: int) -> None:
    """End this process and its children when the process that requested the export was killed."""
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    os.killpg(0, signal.SIGKILL)


def _export_here(model: str, precision: Precision, exports_dir: Path, seed: int) -> Path:
    """Export in this process and return the published folder."""
    from tasks.export.lower import build

    started = time.monotonic()
    gc.set_threshold(1_000_000, 5, 5)  # with the default, garbage collection takes a sixth of the time
    module, inputs = _make(model, exports_dir, seed)
    key = export_key(model, precision, seed, exports_dir)
    folder = exports_dir / key
    with publish_folder(folder) as aside:
        built = build(module, inputs, precision, aside)
        head = {"export_version": EXPORT_VERSION, "export_key": key, "model": model, "precision": precision}
        source = {"source_sha256": source_sha256(model, exports_dir)}
        tail = {"seed": seed, "versions": versions(), **source, "export_s": round(time.monotonic() - started, 3)}
        write_complete(aside / "export.json", json.dumps(head | built | tail, indent=1).encode())
    return folder


def _make(model: str, exports_dir: Path, seed: int) -> tuple[Any, tuple[Any, ...]]:
    """Return the seeded module and its example inputs; record the files that the user's own model used for them."""
    import torch

    from tasks.export.used import watching

    torch.manual_seed(seed)
    if not is_own(model):
        return MODELS[model]()
    name, _, factory_name = model.partition(":")
    sys.path.insert(0, os.fspath(Path.cwd()))
    with watching() as used:
        module = importlib.import_module(name)
        factory = getattr(module, factory_name, None)
        if not callable(factory):
            raise FarmError(f"{module.__file__} does not define a function named {factory_name}")
        made = factory()
    note_used(model, exports_dir, used.files, used.distributions)
    match made:
        case (torch.nn.Module() as built, tuple(inputs)) if all(isinstance(entry, torch.Tensor) for entry in inputs):
            return built, inputs
    raise FarmError(f"{factory_name} must return (torch.nn.Module, tuple of tensors), not {_types_of(made)}")


def _types_of(made: Any) -> str:
    if isinstance(made, tuple):
        return f"({', '.join(_types_of(entry) for entry in made)})"
    return type(made).__name__


def _cause(error: Exception, exports_dir: Path) -> str:
    if isinstance(error, FarmError):
        return str(error)
    if isinstance(error, OSError):
        return os_cause(error, exports_dir)
    return first_line(error)
