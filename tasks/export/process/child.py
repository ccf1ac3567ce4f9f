"""The code of the export process: export one model and send the result to the parent process."""

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
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from devices.errors import FarmError
from tasks.bundle.delegates import user_partitioners
from tasks.bundle.runtime import parse_runtime
from tasks.export.entry import ExportRequest
from tasks.export.exported import EXPORT_VERSION, NotApplicableError, NotHereError, first_line, os_cause
from tasks.export.factory import Method, build_methods
from tasks.export.from_transformers import build_transformers_model
from tasks.export.key import export_key, record_left_out, record_used, source_sha256, versions
from tasks.export.process.dependencies import recorded_dependencies
from tasks.export.process.sandbox import adopt_orphans, is_failed_allocation, kill_descendants, memory_limit
from tasks.export.recipes import Recipe, parse_recipe
from tasks.export.user_code import display_path, explain_error, load_function, locations_in, user_line
from tasks.export.zoo import MODELS
from tasks.store.files import publish_folder, work_folder, write_complete

if TYPE_CHECKING:
    from tasks.export.lowering.delegates import Lowering

_log = logging.getLogger(__name__)
SERVER_LOG = "ETFARM_EXPORT_SERVER_LOG"
"""Environment variable with the log file of the server that exports are forked from."""
_LOOK_UP = "_materialize_cpp_cia_ops"
"""Function of torch that makes all composite operators attributes of torch.ops."""
_LIST_REGISTERED = "_dispatch_get_registrations_for_dispatch_key"


@dataclass(frozen=True)
class ExportOutcome:
    """Result of an export: exactly one of its folder's name, the reason why it was skipped, and the error."""

    folder: str | None = None
    skipped: str | None = None
    is_of_machine: bool = False
    """Whether it was skipped because of this machine, so that another one may export it."""
    error: str | None = None
    log: Path | None = None
    """What explains the error, if it is not the log of the export."""
    is_out_of_memory: bool = False


def out_of_memory(limit_bytes: int) -> ExportOutcome:
    cause = (
        f"out of memory: it needs more than its limit of {limit_bytes / 1e9:.1f} GB, "
        "the memory available for it on this machine; free memory, or export on a machine with more"
    )
    return ExportOutcome(error=cause, is_out_of_memory=True)


def export(
    request: ExportRequest, log: Path, limit_bytes: int, environment: dict[str, str], parent: "Connection[Any, Any]"
) -> NoReturn:
    """Export one model with at most `limit_bytes` of memory, and end this process.

    Sends `parent` the text of each step, then an ExportOutcome. Appends everything that the process prints to `log`.
    Its environment is `environment`, with a fixed hash seed. It also ends when the process that requested the export
    ends.
    """
    os.setsid()  # run.py kills the process group
    adopt_orphans()
    printed = os.open(log, os.O_WRONLY | os.O_APPEND)
    for stream in (1, 2):  # libraries print to stdout
        os.dup2(printed, stream)
    os.environ.clear()
    os.environ.update(environment | {"PYTHONHASHSEED": "0"})
    threading.Thread(target=_end_with_farm, daemon=True).start()
    export_here(request, log, limit_bytes, parent)


class Sender(Protocol):
    """Sends the farm the text of each step, then an ExportOutcome."""

    def send(self, message: Any, /) -> None: ...


def export_here(request: ExportRequest, log: Path, limit_bytes: int, parent: Sender) -> NoReturn:
    """Export in this process, whose output goes to `log` already; tell `parent` the outcome and end."""
    faulthandler.enable()
    # Libraries that the server imports may have set up logging.
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s", force=True)
    logging.getLogger("tasks.export").addHandler(_StepSender(parent))
    parent.send(_export_outcome(request, log, limit_bytes))
    with contextlib.suppress(OSError):  # the log's disk may be full
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(0)  # without waiting for threads of the model


class _StepSender(logging.Handler):
    """Sends each INFO message as a step, so that the last one is known if the process does not finish."""

    def __init__(self, parent: Sender) -> None:
        super().__init__(logging.INFO)
        self.parent = parent

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno == logging.INFO:
            self.parent.send(record.getMessage())


def _end_with_farm() -> None:
    """Wait until the process that requested the export has ended, then kill this process and everything below it."""
    farm = multiprocessing.parent_process()
    assert farm is not None
    farm.join()
    end_all()


def end_all() -> None:
    """Kill this process and everything below it."""
    kill_descendants(os.getpid())
    os.killpg(0, signal.SIGKILL)


def _export_outcome(request: ExportRequest, log: Path, limit_bytes: int) -> ExportOutcome:
    """Export with at most `limit_bytes` of memory; an error is printed with its traceback and becomes one sentence."""
    try:
        with memory_limit(limit_bytes):
            return ExportOutcome(folder=_export(request, log).name)
    except NotApplicableError as reason:
        return ExportOutcome(skipped=str(reason), is_of_machine=isinstance(reason, NotHereError))
    except Exception as error:
        with contextlib.suppress(OSError):  # the log's disk may be the full one
            traceback.print_exc()
        if sys.platform == "linux" and is_failed_allocation(error):
            return out_of_memory(limit_bytes)
        if isinstance(error, FarmError):
            line = user_line(locations_in("\n".join(getattr(error, "__notes__", ()))))
            return ExportOutcome(error=f"{line}: {error}" if line else str(error))
        sentence = os_cause(error, request.exports_dir) if isinstance(error, OSError) else first_line(error)
        explained = explain_error(error, sentence)
        if request.entry.transformers and not isinstance(error, OSError):
            remedy = "leave `generate` out, or " if request.entry.generate else ""
            cause = f"{request.entry.transformers} of transformers cannot be exported as it is ({explained})"
            explained = f"{cause}; {remedy}write a factory that returns a changed model and its inputs"
        return ExportOutcome(error=explained)


def _export(request: ExportRequest, log: Path) -> Path:
    """Load, build and publish an export; return its folder, which is named by its key. `log` is this process's."""
    from tasks.export.lowering.lower import build
    from tasks.export.outputs.samples import add_samples, keep_files

    entry, precision, exports_dir = request.entry, request.precision, request.exports_dir
    recipe, started = parse_recipe(precision), time.monotonic()
    delegate = parse_runtime(entry.name).delegate
    gc.set_threshold(1_000_000, 5, 5)  # with the default, garbage collection takes a sixth of the time
    avoid_repeated_work()
    _check_cache_type(request, recipe)
    _log.info("loading the model")
    methods, lowering = _load(request, recipe)
    recipe = lowering.traced_recipe(recipe)
    if entry.samples:
        methods = add_samples(entry.samples, methods, recipe, needs_score=entry.needs_score)
    if request.taps:  # a program with taps is executed once in a session, and samples only calibrate it
        methods = [replace(method, steps=None, samples=None) for method in methods]
    with work_folder(exports_dir) as folder, work_folder(exports_dir) as libraries:
        lowering.prepare(libraries)
        built = build(methods, recipe, folder, lowering, taps=request.taps, log=log)
        if entry.keep_samples and not request.taps:
            keep_files(methods[0].samples.files, folder)
        record_left_out(request, sorted([step["step"], step["method"] or ""] for step in built["left_out"]))
        key = export_key(request)  # only now: the recorded files and left-out steps are part of it
        head = {"export_version": EXPORT_VERSION, "export_key": key, "model": entry.name, "precision": precision}
        tail = {"seed": request.seed, "versions": versions(delegate), "source_sha256": source_sha256(request)}
        tail["export_s"] = round(time.monotonic() - started, 3)
        write_complete(folder / "export.json", json.dumps(head | built | tail, indent=1).encode())
        with publish_folder(exports_dir / key) as aside:
            for path in folder.iterdir():
                path.rename(aside / path.name)
    return exports_dir / key


def _check_cache_type(request: ExportRequest, recipe: Recipe) -> None:
    """Raise NotApplicableError if the KV cache has another type: it would be converted completely for every token."""
    cache_type = request.entry.generate.cache.dtype if request.entry.generate else None
    computes_in = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}[recipe.float_type]
    if cache_type and cache_type != computes_in:
        raise NotApplicableError(
            f"{request.precision} computes in {computes_in}, so a cache in {cache_type} has no meaning for it"
        )


def avoid_repeated_work() -> None:
    """Make torch do some work once that it repeats in every pass of an export.

    Copies of a graph share their `NodeSource` objects, which saves a fifth of the time: torch copies the whole history
    of a node, and never changes a `NodeSource` after its creation. Composite operators are looked up again only after
    others were registered, which saves 0.3 s: torch does it in each decomposition once for each namespace.
    """
    import torch
    from torch._export import utils
    from torch.fx.traceback import NodeSource

    NodeSource.__deepcopy__ = lambda source, _memo: source
    look_up, list_registered = getattr(utils, _LOOK_UP, None), getattr(torch._C, _LIST_REGISTERED, None)
    if look_up is None or list_registered is None:
        return  # another version of torch: its export repeats the work
    looked_up = list[str]()

    def look_up_new() -> None:
        registered = list_registered("CompositeImplicitAutograd")
        if registered != looked_up:
            look_up()
            looked_up[:] = registered

    setattr(utils, _LOOK_UP, look_up_new)


def _load(request: ExportRequest, recipe: Recipe) -> tuple[list[Method], "Lowering"]:
    """Return the seeded methods, and the delegates with your functions; record used files, unless all is built in."""
    import torch

    from tasks.export.lowering.delegates import Lowering, load_lowering

    entry, name = request.entry, str(request.entry.factory)
    delegate = parse_runtime(entry.name).delegate
    Lowering(delegate).check_recipe(recipe)
    torch.manual_seed(request.seed)
    if name in MODELS and recipe.user_function is None and not user_partitioners(delegate):
        return build_methods(MODELS[name](), name), Lowering(delegate)
    with recorded_dependencies() as used:
        user_recipe = load_function(recipe.user_function) if recipe.user_function else None
        lowering = load_lowering(delegate, user_recipe)
        if entry.transformers:
            content, name = build_transformers_model(entry), entry.transformers
        elif name in MODELS:
            content = MODELS[name]()
        else:
            function = load_function(name)
            content, code = function(), getattr(function, "__code__", None)  # None if it is not written in Python
            where = f"{display_path(Path(code.co_filename))}, line {code.co_firstlineno}: " if code else ""
            name = f"{where}{getattr(function, '__name__', function)}"
    record_used(request, used.files, used.distributions)
    return build_methods(content, name), lowering
