"""What the process of an export does: it exports one model and sends the answer."""

import contextlib
import faulthandler
import gc
import json
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

from devices.errors import FarmError
from tasks.export.entry import ModelEntry
from tasks.export.exported import EXPORT_VERSION, first_line, os_cause
from tasks.export.from_transformers import made_from_transformers
from tasks.export.key import export_key, is_own, note_left_out, note_used, source_sha256, versions
from tasks.export.language.generation import generation
from tasks.export.language.weights import NotApplicable
from tasks.export.made import Method, methods_of
from tasks.export.process.descendants import adopt_orphans, end_below
from tasks.export.process.memory import is_failed_allocation, memory_limit, out_of_memory
from tasks.export.process.user_module import load_function
from tasks.export.process.warm import share_node_sources
from tasks.export.recipes import recipe_of
from tasks.export.user_code import in_users_words, shown
from tasks.export.zoo import MODELS
from tasks.store.files import publish_folder, work_folder, write_complete

_log = logging.getLogger(__name__)
SERVER_LOG = "ETFARM_EXPORT_SERVER_LOG"
"""Environment variable of the server that exports are forked from: the file that it prints to."""


@dataclass(frozen=True)
class Request:
    """What an export process is to do."""

    entry: ModelEntry
    precision: str
    exports_dir: Path
    seed: int
    taps: bool
    """Whether the program returns the values of the layers as well."""
    log: Path
    """Everything that the process prints; it exists."""
    deadline_s: float


def export(
    request: Request, limit_bytes: int, environment: dict[str, str], answer_to: "Connection[Any, Any]"
) -> NoReturn:
    """Export one model with at most `limit_bytes` of memory, and end this process.

    Sends {"doing": what} for each step, then {"folder": name}, {"skipped": reason} or {"error": cause}.
    """
    os.setsid()
    adopt_orphans()
    log = os.open(request.log, os.O_WRONLY | os.O_APPEND)
    for stream in (1, 2):  # libraries print to stdout
        os.dup2(log, stream)
    os.environ.clear()
    os.environ.update(environment | {"PYTHONHASHSEED": "0"})
    faulthandler.enable()
    # Libraries that the server imports may have set up logging.
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s", force=True)
    logging.getLogger("tasks.export").addHandler(_Steps(answer_to))
    threading.Thread(target=_end_with_farm, daemon=True).start()
    answer_to.send(_answer(request, limit_bytes))
    with contextlib.suppress(OSError):  # the log's disk may be full
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(0)  # without waiting for threads of the model


class _Steps(logging.Handler):
    """Sends what this process does, so that the farm knows it if the process does not finish."""

    def __init__(self, answer_to: "Connection[Any, Any]") -> None:
        super().__init__(logging.INFO)
        self.answer_to = answer_to

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno == logging.INFO:
            self.answer_to.send({"doing": record.getMessage()})


def _end_with_farm() -> None:
    """End this process and what is below it when the process that requested the export has ended."""
    farm = multiprocessing.parent_process()
    assert farm is not None
    farm.join()
    end_below(os.getpid())
    os.killpg(0, signal.SIGKILL)


def _answer(request: Request, limit_bytes: int) -> dict[str, Any]:
    try:
        with memory_limit(limit_bytes):
            folder = _export_here(request)
    except NotApplicable as reason:
        return {"skipped": str(reason)}
    except Exception as error:
        with contextlib.suppress(OSError):  # the log's disk may be the full one
            traceback.print_exc()
        if sys.platform == "linux" and is_failed_allocation(error):
            return out_of_memory(limit_bytes)
        return {"error": _cause(error, request.exports_dir)}
    return {"folder": folder.name}


def _export_here(request: Request) -> Path:
    """Export in this process and return the published folder."""
    from tasks.export.lowering.lower import build

    entry, precision, seed, exports_dir = request.entry, request.precision, request.seed, request.exports_dir
    started = time.monotonic()
    gc.set_threshold(1_000_000, 5, 5)  # with the default, garbage collection takes a sixth of the time
    share_node_sources()
    _check_cache(entry, precision)
    _log.info("loading the model")
    methods, own_recipe = _make(entry, precision, exports_dir, seed)
    if request.taps:  # its sessions execute once
        methods = [replace(method, steps=None) for method in methods]
    with work_folder(exports_dir) as made:
        built = build(methods, recipe_of(precision), made, own_recipe, taps=request.taps, log=request.log)
        left_out = sorted([each["step"], each["method"] or ""] for each in built["left_out"])
        note_left_out(entry, precision, seed, exports_dir, left_out, taps=request.taps)
        key = export_key(entry, precision, seed, exports_dir, taps=request.taps)
        head = {"export_version": EXPORT_VERSION, "export_key": key, "model": entry.name, "precision": precision}
        source = {"source_sha256": source_sha256(entry, precision, exports_dir)}
        tail = {"seed": seed, "versions": versions(), **source, "export_s": round(time.monotonic() - started, 3)}
        write_complete(made / "export.json", json.dumps(head | built | tail, indent=1).encode())
        with publish_folder(exports_dir / key) as aside:
            for path in made.iterdir():
                path.rename(aside / path.name)
    return exports_dir / key


def _check_cache(entry: ModelEntry, precision: str) -> None:
    """Raise NotApplicable if the cache would be converted, complete, for every token."""
    dtype = entry.generate.cache.dtype if entry.generate else None
    computes_in = {"float32": "fp32", "float16": "fp16"}[recipe_of(precision).float_type]
    if dtype and dtype != computes_in:
        raise NotApplicable(f"{precision} computes in {computes_in}, so a cache in {dtype} has no meaning for it")


def _make(entry: ModelEntry, precision: str, exports_dir: Path, seed: int) -> tuple[list[Method], Any]:
    """Return the seeded methods and the function of your own recipe; record the files that your own code used."""
    import torch

    from tasks.export.used import watching

    torch.manual_seed(seed)
    recipe = recipe_of(precision)
    if entry.factory in MODELS and recipe.own is None:
        return methods_of(MODELS[entry.factory](), entry.factory), None
    with watching() as used:
        own_recipe = load_function(recipe.own) if recipe.own else None
        factory = entry.transformers or str(entry.factory)
        name = factory.rpartition(":")[2]
        if entry.transformers:
            made: Any = generation(entry) if entry.generate else made_from_transformers(entry)
        elif is_own(factory):
            function = load_function(factory)
            made, name = function(), _named(function)
        else:
            made = MODELS[factory]()
    note_used(entry, precision, exports_dir, used.files, used.distributions)
    return methods_of(made, name), own_recipe


def _named(function: Any) -> str:
    """Return how messages name a function of the user's: with its file and line."""
    code = getattr(function, "__code__", None)
    where = f"{shown(Path(code.co_filename))}, line {code.co_firstlineno}: " if code else ""
    return f"{where}{getattr(function, '__name__', function)}"


def _cause(error: Exception, exports_dir: Path) -> str:
    if isinstance(error, FarmError):
        return str(error)
    if isinstance(error, OSError):
        return os_cause(error, exports_dir)
    return in_users_words(error, first_line(error))
