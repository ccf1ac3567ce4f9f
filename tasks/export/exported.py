"""Exports on disk: what was made once per content, and the cases in which a program is measured."""

import contextlib
import errno
import hashlib
import json
import logging
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from devices.errors import FarmError, InputError
from tasks.export.program import DataType, ProgramMethod, data_types, read_program
from tasks.store.files import remove_at_once, sha256_of

logger = logging.getLogger(__name__)
EXPORT_VERSION = 2
FORWARD = "forward"
Tensors = list[dict[str, Any]]


class ExportError(FarmError):
    """A model cannot be exported; the text is one sentence: model, precision, cause, where the full log is."""


class NotApplicableError(ExportError):
    """A recipe has no meaning for a model, so that the pair is skipped; the text is one sentence with the reason."""


@dataclass(frozen=True)
class Case:
    """One way in which a program is measured: a method with inputs.

    Tensors are {file, dtype, shape, sha256}, with files in the export's folder.
    """

    name: str = ""
    """Empty for the only case."""
    method: str = FORWARD
    inputs: Tensors = field(default_factory=list)
    outputs: Tensors = field(default_factory=list)
    """Of the converted model in eager PyTorch; of a .pte file from elsewhere, what its owner expects."""
    outputs_fp32: Tensors = field(default_factory=list)
    """Of the model before its conversion; empty for fp32."""
    outputs_host: Tensors = field(default_factory=list)
    """Of the exported program, as ExecuTorch runs it on the machine that exported it; none if it cannot run it."""
    choices: dict[str, Tensors] = field(default_factory=dict)
    """For the text that eager PyTorch and the program on the host wrote, `eager` and `host`: the likeliest tokens at
    each place, and how far each is behind the first, relative to the root mean square of the scores."""
    setup: dict[str, Any] | None = None
    """{method, inputs}: executed before, so that there is a state, such as a filled KV cache: once with each group of
    inputs."""
    tokens: int | None = None
    """Tokens that one execution of a language model processes."""
    kv_depth: int | None = None
    """Tokens that are in its KV cache before."""
    prompt_tokens: int | None = None
    """Of a prompt that is read in chunks, of which this case is the last one; None for all others."""
    steps: int | None = None
    """Executions of a session, each one token further; the outputs are those of the last. None: each does the same."""
    is_dynamic: bool = False
    """Whether the program allows other shapes, so that the runner must be told these."""
    taps: Tensors = field(default_factory=list)
    """The layers whose values the program returns after its outputs: {order, module, operator} and the value of each
    in eager PyTorch, in `fp32` that of the fp32 model; none unless it was made for the mode numerics."""

    @property
    def tensors(self) -> Tensors:
        """All tensors with files, those of the set-up included."""
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
    """One case of an exported model on disk: its folder and the content of export.json that concerns it.

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
    """Multiply-accumulate operations of one execution; None of a dynamic shape and of a .pte file from elsewhere."""
    read_bytes: int | None = None
    """Bytes of weights and state that one execution reads, each once; None of a .pte file from elsewhere."""
    trial: str | None = None
    """How the execution on the machine that exported it ended: `succeeded`, or `not tried here: cause`; None of a .pte
    file that exists already."""
    left_out: list[dict[str, Any]] = field(default_factory=list)
    """Steps of the farm that this export does without: {step, method, reason}; see lowering/passes.py."""
    perplexity: float | None = None
    """On the text that the entry names, in eager PyTorch; None without one, and of recipes that change the program."""
    source_sha256: str | None = None
    """Of the files that the model was made from; None of a .pte file that exists already."""
    tapped: "Export | None" = None
    """The same case of the program made for the mode numerics, if the sweep has that mode."""
    tapped_error: str | None = None
    """Why there is none although the sweep has that mode."""

    @property
    def pte(self) -> Path:
        return self.folder / "model.pte"

    @property
    def etrecord(self) -> Path:
        """The ETRecord, which maps the program's events to the source model; a .pte from elsewhere may have none."""
        return self.folder / "model.etrecord"

    @property
    def inputs(self) -> Tensors:
        return self.case.inputs

    @property
    def outputs(self) -> Tensors:
        return self.case.outputs

    @property
    def left_out_notes(self) -> list[str]:
        """A sentence for each step of the farm that this export does without."""
        return [
            f"exported without {each['step']}{' in ' + each['method'] if each['method'] else ''}: {each['reason']}"
            for each in self.left_out
        ]

    def executions(self, planned: int, warmup: int) -> tuple[int, int]:
        """Return the executions of a session, and how many of them are warm-up ones.

        Where each is one token further, the case states how many there are.
        """
        steps = self.case.steps
        return (steps, min(warmup, steps - 1)) if steps else (planned, warmup)

    @cached_property
    def inputs_sha256(self) -> str:
        """Identifies what is executed with the program: the method, its inputs, its set-up and weights outside it."""

        def contents(tensors: Tensors) -> list[list[Any]]:
            return [[tensor["sha256"], tensor["dtype"], tensor["shape"]] for tensor in tensors]

        case = self.case
        setup = [case.setup["method"], contents(case.setup["inputs"])] if case.setup else None
        data = [[entry["sha256"] for entry in self.data]] if self.data else []
        text = json.dumps([case.method, contents(case.inputs), setup, *data])
        return hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def program_method(self) -> ProgramMethod | None:
        """The case's method in the program; None if it cannot be read."""
        try:
            return next(each for each in read_program(self.pte) if each.name == self.case.method)
        except (InputError, StopIteration):
            return None

    @property
    def delegate_calls(self) -> tuple[tuple[int, int, str], ...] | None:
        """Chain, instruction and backend of each delegate call of the case's method; None if they cannot be read."""
        return self.program_method.delegate_calls if self.program_method else None

    @cached_property
    def data_types(self) -> frozenset[DataType] | None:
        """The types that the program computes in, beside fp32; None if they cannot be known."""
        return data_types(self.pte)

    @property
    def content(self) -> tuple[str, str]:
        """What is measured: the program, and what is executed with it."""
        return self.pte_sha256, self.inputs_sha256


def read_exports(folder: Path) -> tuple[Export, ...]:
    """Return the cases of the export in `folder`, at least one.

    Raises ExportError if export.json is missing, damaged or of a newer version.
    """
    try:
        described = json.loads((folder / "export.json").read_bytes())
        if described.pop("export_version") != EXPORT_VERSION:
            raise ExportError(f"{folder / 'export.json'}: written by another version; export the model again")
        model, cases, methods = (described.pop(key) for key in ("model", "cases", "methods"))
        if not cases:
            raise ValueError("no cases")
        exports = []
        for case in (Case(**each) for each in cases):
            name = f"{model}@{case.name}" if case.name else model
            exports.append(Export(folder=folder, model=name, case=case, **methods[case.method], **described))
        return tuple(exports)
    except FileNotFoundError:
        raise ExportError(f"{folder}: export.json is missing; export the model again") from None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        cause = first_line(error)
        raise ExportError(f"{folder / 'export.json'}: the file is damaged ({cause}); export the model again") from None


def kept_export(exports_dir: Path, key: str | None, pte_sha256: str | None, model: str) -> Export:
    """Return the case `model` of an earlier export, by its key and the hash of its .pte file.

    Raises ExportError if it is not kept.
    """
    for export in read_complete(exports_dir / key) or () if key else ():
        if export.pte_sha256 == pte_sha256 and export.model == model:
            return export
    raise ExportError(f"its .pte file ({(pte_sha256 or 'unknown')[:8]}) is not in {exports_dir} any more")


def read_complete(folder: Path) -> tuple[Export, ...] | None:
    """Return the export in `folder` if every file matches its hash; remove a damaged export and return None."""
    if not folder.is_dir():
        return None
    try:
        exports = read_exports(folder)
        files = [entry for export in exports for entry in (*export.case.tensors, *export.data)]
        hashes = {"model.pte": exports[0].pte_sha256} | {entry["file"]: entry["sha256"] for entry in files}
        damaged = [name for name, sha256 in hashes.items() if sha256_of(folder / name) != sha256]
        if not damaged:
            return exports
        cause = f"{', '.join(damaged)} differs from what was written"
    except (ExportError, OSError, TypeError, KeyError) as error:
        cause = first_line(error)
    logger.warning("the export in %s is damaged and will be made again: %s", folder, cause)
    with contextlib.suppress(FileNotFoundError):  # another process may have moved it first
        remove_at_once(folder)
    return None


def first_line(error: Exception) -> str:
    """Return the first line of an error's text, after the name of its class unless it is an ExportError."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else ""
    return text if isinstance(error, ExportError) else f"{type(error).__name__}: {text}"[:400].rstrip(": ")


def os_cause(error: OSError, exports_dir: Path) -> str:
    """Return the cause of an operating system error; for a full disk, also what to do."""
    if error.errno == errno.ENOSPC:
        return f"no space left on the disk of {exports_dir}; free space and export again"
    return f"{error.strerror}: {error.filename}" if error.filename else first_line(error)
