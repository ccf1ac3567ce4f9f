"""Execute each exported program on this machine, by ExecuTorch's runtime with the same backends.

A program that no device can run fails here, once, with the cause. The outputs are saved: a device that runs the same
program must return almost the same. That has a tighter limit than the distance from eager PyTorch.
"""

import functools
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from devices.errors import FarmError
from tasks.export.process.refusals import find_refusal
from tasks.export.program import read_program
from tasks.export.references import CaseInputs, Outputs

logger = logging.getLogger(__name__)
SUCCEEDED = "succeeded"
_ATEN = "aten::"
"""Namespace of operators whose kernels are those of ExecuTorch; others may be registered by a user's runner."""
# Errors of the runtime, the cause first and then its callers; what cpuinfo reports is not an error.
_REPORTED = re.compile(r"^\[(?!cpuinfo)\w+\.(?:cpp|h):\d+\] (.+)$", re.MULTILINE)
_CHECK = re.compile(r"Check failed \((.*?)\): (.*)")
_OPERATOR = re.compile(r"failed at instruction \d+:\d+ in operator (\S+?)\.?: 0x")


@dataclass(frozen=True)
class Trial:
    outcome: str
    """`succeeded`, or `not tried here: cause`."""
    outputs: dict[str, Outputs] = field(default_factory=dict)
    """Of the first execution of each case, or of the last of its steps; empty if not tried."""


def execute_on_host(pte: Path, cases: Sequence[CaseInputs], log: Path | None) -> Trial:
    """Execute each case of a program after its set-up; a program that needs what this runtime lacks is not tried.

    `log` is the file that this process prints to. Raises FarmError with the runtime's cause if an execution fails, and
    if ExecuTorch has no kernel for an ATen operator: no device could execute it.
    """
    try:
        import executorch.kernels.quantized  # noqa: F401 - registers operators
        from executorch.runtime import Runtime

        runtime = Runtime.get()
        backends = runtime.backend_registry
        operators = set(runtime.operator_registry.operator_names)
        calls = [call for method in read_program(pte) for call in method.calls]
        called = sorted({call.operator for call in calls if call.operator} - operators)
        if absent := [name for name in called if name.startswith(_ATEN)]:
            remedy = "replace it by simpler operators, or compute it outside the model"
            raise FarmError(f"ExecuTorch has no kernel for {', '.join(absent)}; {remedy} (pytorch/executorch#11320)")
        missing = (
            f"the operator {call.operator}" if call.operator else f"the backend {call.delegate}"
            for call in calls
            if (call.operator and call.operator not in operators)
            or (call.delegate and not _has_backend(backends, call.delegate))
        )
        cause = next((f"this machine does not have {each}" for each in missing), None)
    except ImportError as error:
        cause = f"ExecuTorch's runtime cannot be imported ({error})"
    if cause:
        logger.info("not tried here: %s", cause)
        return Trial(f"not tried here: {cause}")
    logger.info("executing the program on this machine")
    return Trial(SUCCEEDED, {case.name: _execute_case(_load(pte), case, log) for case in cases})


def _has_backend(registry: Any, backend: str) -> bool:
    """Whether this runtime can execute a backend; one that is registered may lack a library, such as OpenVINO's."""
    return backend in registry.registered_backend_names and registry.is_available(backend)


def execute_each(
    pte: Path, cases: Iterable[CaseInputs], log: Path | None, *, again: bool
) -> Iterator[tuple[CaseInputs, Outputs]]:
    """Yield each case with its outputs; load the program once, or (`again`) for each case, so that its state is new.

    The program must have been tried. Raises FarmError as `execute_on_host` does.
    """
    load: Callable[[], Any] | None = None
    for case in cases:
        load = _load(pte) if load is None or again else load
        yield case, _execute_case(load, case, log)


def _load(pte: Path) -> Callable[[], Any]:
    """Return a function that loads the program at its first call, and returns the same one from then on."""
    from executorch.runtime import Runtime, Verification

    return functools.cache(lambda: Runtime.get().load_program(pte, verification=Verification.Minimal))


def _execute_case(load: Callable[[], Any], case: CaseInputs, log: Path | None) -> Outputs:
    """Return the outputs of a case, executed like a session; FarmError with the cause that was added to `log`."""
    name, setup = case.method.program_method, case.method.setup
    setup_steps = [(setup[0], inputs) for inputs in setup[1]] if setup else []
    steps = [*setup_steps, *([(name, case.inputs)] * (case.method.steps or 1))]
    printed_bytes = log.stat().st_size if log else 0
    outputs: Outputs = []
    try:
        program = load()
        for name, _ in steps:  # all before the first execution: loading a method may initialize the state
            program.load_method(name)
        for name, inputs in steps:
            outputs = [each.clone() for each in program.load_method(name).execute([each.clone() for each in inputs])]
    except Exception as error:  # of any type that the runtime raises
        printed = log.read_bytes()[printed_bytes:].decode(errors="replace") if log else ""
        raise FarmError(f"{name} fails when this machine executes it: {_first_error(printed) or error}") from None
    return outputs


def _first_error(printed: str) -> str | None:
    """Return the first error that the runtime printed, with the operator that failed; None if it printed none."""
    lines = _REPORTED.findall(printed)
    if not lines:
        return None
    check = _CHECK.match(lines[0])
    cause = (check[2].strip() or f"{check[1]} is false") if check else lines[0].strip()
    operator = next((operator_match[1] for line in lines if (operator_match := _OPERATOR.search(line))), None)
    if operator is None:
        return cause
    problem = f"{operator}: {cause}"
    return find_refusal(RuntimeError(problem), problem) or f"{problem}; replace this operation in the model"
