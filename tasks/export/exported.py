"""Exports on disk, one for each content key, and the cases in which a program is measured."""

import contextlib
import errno
import hashlib
import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devices.errors import FarmError, InputError
from tasks.bundle.cell import XNNPACK
from tasks.bundle.delegates import word_of_backends
from tasks.bundle.runtime import case_name, parse_runtime, program_name
from tasks.export.conversion import describe_export, fault_sentence, random_sentence
from tasks.store.files import hash_file, remove_atomically

if TYPE_CHECKING:
    from tasks.bundle.memory_plan import MemoryPlan
    from tasks.export.contents.program_types import DataType
    from tasks.export.program import ProgramMethod  # slow to import, and a plan reads no program

logger = logging.getLogger(__name__)
EXPORT_VERSION = 2
FORWARD = "forward"
SAMPLES = "samples.json"
Tensors = list[dict[str, Any]]
Layers = list[dict[str, Any]]
"""The layers with weights of a method: {module, kind, type, weights, is_delegated, reason}. `type` is that of the
stored weights, such as fp32 or int4, `weights` their number, `reason` why the recipe left them in fp32; None if it did
not."""


class ExportError(FarmError):
    """A model cannot be exported, or an export cannot be used; the text is one sentence with the cause and its log."""

    def __init__(self, reason: str, log: Path | None = None) -> None:
        super().__init__(f"{reason}; the full log is {log}" if log else reason)
        self._reason = reason

    @property
    def reason(self) -> str:
        return self._reason


class NotApplicableError(ExportError):
    """A recipe has no meaning for a model, so the pair is skipped; the text is one sentence with the reason."""


class NotHereError(NotApplicableError):
    """This machine cannot export for a delegate, so the pair is skipped; it is not recorded, since another one can."""


def describe_tensor(file: str, content: bytes, dtype: str, shape: Iterable[int]) -> dict[str, Any]:
    return {"file": file, "dtype": dtype, "shape": list(shape), "sha256": hashlib.sha256(content).hexdigest()}


@dataclass(frozen=True)
class Case:
    """A method of a program with the inputs that are measured.

    Tensors are {file, dtype, shape, sha256}; the files are in the export's folder.
    """

    name: str = ""
    """Empty for the only case."""
    method: str = FORWARD
    inputs: Tensors = field(default_factory=list)
    outputs: Tensors = field(default_factory=list)
    """Of the converted model in eager PyTorch; for a prebuilt .pte file, those that the user expects."""
    outputs_fp32: Tensors = field(default_factory=list)
    """Of the model before its conversion; empty for fp32 and for a prebuilt .pte file."""
    outputs_host: Tensors = field(default_factory=list)
    """Of the exported program, executed on the machine that exported it; empty if it was not executed."""
    choices: dict[str, Tensors] = field(default_factory=dict)
    """By `eager` and `host`, for the text that each wrote: the likeliest tokens at each position, and the distance of
    each from the first, relative to the root mean square of the scores."""
    setup: dict[str, Any] | None = None
    """{method, inputs}: executed first, to fill state such as a KV cache. `inputs` is a flat list of the tensors of all
    its executions."""
    tokens: int | None = None
    """Tokens that one execution of a language model processes."""
    kv_depth: int | None = None
    """Tokens in its KV cache before the execution."""
    prompt_tokens: int | None = None
    """Length of the complete prompt if it is read in chunks and this case is the last one; otherwise None."""
    steps: int | None = None
    """Executions of a session, each one token further; the outputs are those of the last. None: all are equal."""
    is_dynamic: bool = False
    """Whether the program accepts other shapes, so that the runner needs those of the inputs."""
    taps: Tensors = field(default_factory=list)
    """Layers whose values the program returns after its outputs: {order, module, operator}, the tensor of the value in
    eager PyTorch and, in `fp32`, that of the fp32 model. Empty unless exported for the mode numerics."""

    @property
    def tensors(self) -> Tensors:
        """All tensors that have files, including those of the set-up and the taps."""
        return [
            *self.inputs,
            *self.outputs,
            *self.outputs_fp32,
            *self.outputs_host,
            *chain(*self.choices.values()),
            *self.taps,
            *(tap["fp32"] for tap in self.taps if "fp32" in tap),
            *(self.setup["inputs"] if self.setup else ()),
        ]


@dataclass(frozen=True)
class Export:
    """One case of an exported model on disk: its folder and its part of export.json.

    `delegated` is {operator, count}, `portable` {operator, count, reason}, of the case's method.
    """

    folder: Path
    export_key: str
    model: str
    """The case's full name: the model's name, or `model@case`."""
    precision: str
    seed: int
    pte_sha256: str
    pte_bytes: int
    versions: dict[str, str | None]
    delegated: list[dict[str, Any]]
    portable: list[dict[str, Any]]
    export_s: float
    case: Case
    data: Tensors = field(default_factory=list)
    """Weights outside the program, as {file, sha256}."""
    is_stateful: bool = False
    """Whether the case's method changes buffers of the program, so that executions may differ."""
    macs: int | None = None
    """Multiply-accumulate operations of one execution; None for dynamic shapes, branches and a prebuilt .pte file."""
    read_bytes: int | None = None
    """Bytes of weights and state that one execution reads, each once; None for a prebuilt .pte file."""
    delegates: list[dict[str, Any]] | None = None
    """What each backend took of the case's method, {backend, operators, macs}; see lowering/shares.py. None for a
    prebuilt .pte file, and of an export before there was a choice."""
    portable_operators: int | None = None
    """Operators that no backend took, without those that only compute shapes and numbers."""
    portable_macs: int | None = None
    trial: str | None = None
    """Result of the execution on the exporting machine: `succeeded`, or `not tried here: cause`; None for a prebuilt
    .pte file."""
    left_out: list[dict[str, Any]] = field(default_factory=list)
    """Steps that this export does without: {step, method, reason}; see lowering/passes.py."""
    random: list[dict[str, Any]] | None = field(default_factory=list)
    """What draws random numbers in evaluation mode, see outputs/randomness.py; None if that is unknown."""
    fault: dict[str, Any] | None = None
    """What ExecuTorch computes wrong on the exporting machine, see outputs/fault_search.py; None if nothing is."""
    layers: Layers = field(default_factory=list)
    """Of the case's method; empty for a prebuilt .pte file."""
    type_changes: list[dict[str, Any]] = field(default_factory=list)
    """Floating-point types that the export does not keep: {before, after, weights, inputs}, with numbers of values."""
    live_bytes: dict[str, int | None] = field(default_factory=dict)
    """The largest live set of the case's method at the shapes of each of its cases, by name. None if all are
    static, or if sizes depend on values; empty for a prebuilt .pte file."""
    samples: dict[str, str] | None = None
    """{file, sha256} of the figures of the entry's samples; None without samples."""
    perplexity: float | None = None
    """In eager PyTorch on the entry's text; None without a text, and for recipes that change the program."""
    source_sha256: str | None = None
    """Of the files that the model was built from; None for a prebuilt .pte file."""
    tapped: "Export | None" = None
    """The same case of the program for the mode numerics, if the sweep has that mode."""
    tapped_error: str | None = None
    """Why `tapped` is None although the sweep has that mode."""

    @property
    def pte(self) -> Path:
        return self.folder / "model.pte"

    @property
    def etrecord(self) -> Path:
        """Path of the ETRecord, which maps the program's events to the source model; the file may be missing."""
        return self.folder / "model.etrecord"

    @property
    def inputs(self) -> Tensors:
        return self.case.inputs

    @property
    def outputs(self) -> Tensors:
        return self.case.outputs

    @property
    def fault_notes(self) -> list[str]:
        """One sentence for each thing that is random in the model, or that ExecuTorch computes wrong."""
        wrong = [fault_sentence(self.fault, self.versions.get("executorch"))] if self.fault else []
        return [*map(random_sentence, self.random or ()), *wrong]

    @property
    def notes(self) -> list[str]:
        """One sentence each: what the recipe converted, what is portable or left out, and `fault_notes`."""
        return [*describe_export(self), *self.fault_notes]

    def executions(self, planned: int, warmup: int) -> tuple[int, int]:
        """Return the number of executions of a session and of warm-up ones among them; `steps` overrides `planned`."""
        steps = self.case.steps
        return (steps, min(warmup, steps - 1)) if steps else (planned, warmup)

    @cached_property
    def inputs_sha256(self) -> str:
        """Hash of everything that is executed with the program: method, inputs, set-up, and weights outside it."""

        def contents(tensors: Tensors) -> list[list[Any]]:
            return [[tensor["sha256"], tensor["dtype"], tensor["shape"]] for tensor in tensors]

        case = self.case
        setup = [case.setup["method"], contents(case.setup["inputs"])] if case.setup else None
        data = [[entry["sha256"] for entry in self.data]] if self.data else []
        text = json.dumps([case.method, contents(case.inputs), setup, *data])
        return hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def program_method(self) -> "ProgramMethod | None":
        """The case's method in the program; None if the program cannot be read."""
        from tasks.export.program import read_program

        try:
            return next(each for each in read_program(self.pte) if each.name == self.case.method)
        except (InputError, StopIteration):
            return None

    @property
    def delegate_calls(self) -> tuple[tuple[int, int, str], ...] | None:
        """Chain, instruction and backend of each call of a delegate; None if the program cannot be read."""
        return self.program_method.delegate_calls if self.program_method else None

    @cached_property
    def memory(self) -> "MemoryPlan | None":
        """What the case needs of memory by its program; None if the program cannot be read."""
        from tasks.export.contents.program_memory import plan_case

        case = self.case
        return plan_case(
            self.pte,
            case.method,
            [tensor["shape"] for tensor in case.inputs],
            has_setup=case.setup is not None,
            external_bytes=sum((self.folder / each["file"]).stat().st_size for each in self.data),
            needed_bytes=self.live_bytes.get(case.name),
        )

    @cached_property
    def sample_figures(self) -> dict[str, Any] | None:
        """Content of samples.json, see outputs/samples.py; None without samples."""
        figures: dict[str, Any] | None = json.loads((self.folder / SAMPLES).read_bytes()) if self.samples else None
        return figures

    @cached_property
    def data_types(self) -> "frozenset[DataType] | None":
        """The types other than fp32 that the program computes in; None if they are unknown."""
        from tasks.export.contents.program_types import data_types

        return data_types(self.pte)

    @cached_property
    def stored_bytes(self) -> dict[str, int]:
        """Bytes of the weights, constants and initial state in the program by their type; see program_types.py."""
        from tasks.export.contents.program_types import stored_bytes

        return stored_bytes(self.pte)

    @property
    def content(self) -> tuple[str, str]:
        """`pte_sha256` and `inputs_sha256`, which together identify what is measured."""
        return self.pte_sha256, self.inputs_sha256


def needed_delegate(export: Export) -> str | None:
    """Return the delegate that an export's runner needs: the stated one, else what it calls; None for XNNPACK."""
    calls = {backend for _, _, backend in export.delegate_calls or ()}
    return parse_runtime(export.model).delegate or (word_of_backends(calls) if calls - {XNNPACK} else None)


def read_exports(folder: Path) -> tuple[Export, ...]:
    """Return an export's cases, at least one; raises ExportError if it is missing, damaged or of another version."""
    try:
        described = json.loads((folder / "export.json").read_bytes())
        if described.pop("export_version") != EXPORT_VERSION:
            raise ExportError(f"{folder / 'export.json'}: written by another version; export the model again")
        model, cases, methods = (described.pop(key) for key in ("model", "cases", "methods"))
        if not cases:
            raise ValueError("no cases")
        exports = []
        for case in (Case(**each) for each in cases):
            name = case_name(model, case.name)
            exports.append(Export(folder=folder, model=name, case=case, **methods[case.method], **described))
        return tuple(exports)
    except FileNotFoundError:
        raise ExportError(f"{folder}: export.json is missing; export the model again") from None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        cause = first_line(error)
        raise ExportError(f"{folder / 'export.json'}: the file is damaged ({cause}); export the model again") from None


def find_export(exports_dir: Path, key: str | None, pte_sha256: str | None, model: str) -> Export:
    """Return the case `model` of an earlier export by its key and .pte hash; raises ExportError if it is gone."""
    for export in read_complete(exports_dir / key) or () if key else ():
        if export.pte_sha256 == pte_sha256 and export.model == program_name(model):
            return export
    raise ExportError(f"its .pte file ({(pte_sha256 or 'unknown')[:8]}) is not in {exports_dir} any more")


def read_complete(folder: Path) -> tuple[Export, ...] | None:
    """Return an export's cases, hashes checked; None if it is missing or damaged, which removes it with a warning."""
    if not folder.is_dir():
        return None
    try:
        exports = read_exports(folder)
        damaged = damaged_files(exports)
        if not damaged:
            return exports
        cause = f"{', '.join(damaged)} differs from what was written"
    except (ExportError, OSError, TypeError, KeyError) as error:
        cause = first_line(error)
    logger.warning("the export in %s is damaged and will be exported again: %s", folder, cause)
    with contextlib.suppress(FileNotFoundError):  # another process may have moved it first
        remove_atomically(folder)
    return None


def damaged_files(exports: tuple[Export, ...]) -> list[str]:
    """Return the files of an export whose content is not what it states, or that are not in its folder.

    Raises OSError, TypeError or KeyError if a file is missing, or export.json does not list it with its hash.
    """
    first = exports[0]
    files = [entry for export in exports for entry in (*export.case.tensors, *export.data)]
    files += [first.samples] if first.samples else []
    hashes = {"model.pte": first.pte_sha256} | {entry["file"]: entry["sha256"] for entry in files}
    return [
        name
        for name, sha256 in hashes.items()
        if Path(name).name != name or (first.folder / name).is_symlink() or hash_file(first.folder / name) != sha256
    ]


def first_line(error: Exception) -> str:
    """Return the first line of a FarmError, or `Class: first line` of another error, at most 400 characters."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else ""
    return text if isinstance(error, FarmError) else f"{type(error).__name__}: {text}"[:400].rstrip(": ")


def os_cause(error: OSError, exports_dir: Path) -> str:
    """Return the cause of an OS error and, for a full disk (assumed to be that of `exports_dir`), the remedy."""
    if error.errno == errno.ENOSPC:
        return f"no space left on the disk of {exports_dir}; free space and export again"
    return f"{error.strerror}: {error.filename}" if error.filename else first_line(error)
