"""The process that exports one model: `python -m tasks.prepare.export ENTRY PRECISION EXPORTS_DIR`."""

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
from typing import Any, TextIO

from devices.errors import FarmError
from tasks.prepare.export.convert import NotApplicable
from tasks.prepare.export.entry import ModelEntry
from tasks.prepare.export.export import os_cause
from tasks.prepare.export.exported import EXPORT_VERSION, first_line
from tasks.prepare.export.from_transformers import made_from_transformers
from tasks.prepare.export.key import export_key, is_own, note_used, source_sha256, versions
from tasks.prepare.export.made import Method, methods_of
from tasks.prepare.export.memory import MemoryLimit
from tasks.prepare.export.recipes import recipe_of
from tasks.prepare.export.warm import share_node_sources
from tasks.prepare.export.zoo import MODELS
from tasks.store.files import publish_folder, write_complete

_LOOK_S = 1.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Export one model in this process; print {"folder": name}, {"skipped": reason} or {"error": cause} on stdout."""
    # Libraries print to stdout, so their stdout goes to the log and the answer to the original stdout.
    with os.fdopen(os.dup(1), "w") as answer_to:
        os.dup2(2, 1)
        return answer(sys.argv[1:] if arguments is None else arguments, answer_to)


def answer(arguments: Sequence[str], answer_to: TextIO) -> int:
    """Export one model in this process, write the result to `answer_to`, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tasks.prepare.export", description=main.__doc__)
    parser.add_argument("entry", type=ModelEntry.model_validate_json, help="the model's entry as JSON")
    parser.add_argument("precision")
    parser.add_argument("exports_dir", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--taps", action="store_true", help="return the values of the layers as well")
    parser.add_argument("--parent", type=int, default=os.getppid(), help="process id; this process ends with it")
    parser.add_argument("--memory-limit", type=int, help="bytes that this process may use")
    options = parser.parse_args(arguments)
    faulthandler.enable()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    threading.Thread(target=_end_with_parent, args=(options.parent,), daemon=True).start()
    limit = MemoryLimit(options.memory_limit)
    result: dict[str, Any]
    try:
        given = (options.entry, options.precision, options.exports_dir, options.seed)
        with limit:
            folder = _export_here(*given, taps=options.taps)
        result = {"folder": folder.name}
    except NotApplicable as reason:
        result = {"skipped": str(reason)}
    except Exception as error:
        with contextlib.suppress(OSError):  # the log's disk may be the full one
            traceback.print_exc()
        result = limit.answer_to(error) or {"error": _cause(error, options.exports_dir)}
    json.dump(result, answer_to)
    return 1 if "error" in result else 0


def _end_with_parent(parent: int) -> None:
    """End this process and its children when the process that requested the export was killed."""
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    os.killpg(0, signal.SIGKILL)


def _export_here(entry: ModelEntry, precision: str, exports_dir: Path, seed: int, *, taps: bool) -> Path:
    """Export in this process and return the published folder."""
    from tasks.prepare.export.lower import build

    started = time.monotonic()
    gc.set_threshold(1_000_000, 5, 5)  # with the default, garbage collection takes a sixth of the time
    share_node_sources()
    methods, own_recipe = _make(entry, precision, exports_dir, seed)
    key = export_key(entry, precision, seed, exports_dir, taps=taps)
    folder = exports_dir / key
    with publish_folder(folder) as aside:
        built = build(methods, recipe_of(precision), aside, own_recipe, taps=taps)
        head = {"export_version": EXPORT_VERSION, "export_key": key, "model": entry.name, "precision": precision}
        source = {"source_sha256": source_sha256(entry, precision, exports_dir)}
        tail = {"seed": seed, "versions": versions(), **source, "export_s": round(time.monotonic() - started, 3)}
        write_complete(aside / "export.json", json.dumps(head | built | tail, indent=1).encode())
    return folder


def _make(entry: ModelEntry, precision: str, exports_dir: Path, seed: int) -> tuple[list[Method], Any]:
    """Return the seeded methods and the function of your own recipe; record the files that your own code used."""
    import torch

    from tasks.prepare.export.used import watching

    torch.manual_seed(seed)
    recipe = recipe_of(precision)
    if entry.factory in MODELS and recipe.own is None:
        return methods_of(MODELS[entry.factory](), entry.factory), None
    with watching() as used:
        own_recipe = _function(recipe.own) if recipe.own else None
        made: Any
        if entry.transformers:
            made, factory = made_from_transformers(entry), entry.transformers
        elif is_own(entry.factory):
            factory = str(entry.factory)
            made = _function(factory)()
        else:
            factory = str(entry.factory)
            made = MODELS[factory]()
    note_used(entry, precision, exports_dir, used.files, used.distributions)
    return methods_of(made, factory.rpartition(":")[2]), own_recipe


def _function(own: str) -> Any:
    """Return the function that `package.module:function` or `file.py:function` names."""
    name, _, function_name = own.rpartition(":")
    if name.endswith(".py"):
        path = Path(name)
        sys.path.insert(0, os.fspath(path.parent))
        name = path.stem
    else:
        sys.path.insert(0, os.fspath(Path.cwd()))
    module = importlib.import_module(name)
    function = getattr(module, function_name, None)
    if not callable(function):
        raise FarmError(f"{module.__file__} does not define a function named {function_name}")
    return function


def _cause(error: Exception, exports_dir: Path) -> str:
    if isinstance(error, FarmError):
        return str(error)
    if isinstance(error, OSError):
        return os_cause(error, exports_dir)
    return first_line(error)
