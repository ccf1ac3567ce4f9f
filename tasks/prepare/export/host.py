"""What the exported program computes on this machine, by ExecuTorch's own runtime with the same backend.

A device that runs the same program must return almost the same, whatever the recipe cost. That is a tighter question
than how far the program is from eager PyTorch, and it has its own limit.
Everything here runs in the export process: executorch is imported inside the function that needs it. The text of this
file is part of every export key.
"""

import logging
from pathlib import Path

from tasks.prepare.export.references import CaseInputs, Outputs

logger = logging.getLogger(__name__)


def host_outputs(pte: Path, case: CaseInputs) -> Outputs | None:
    """Return the outputs of the first execution of a case, None if this machine's runtime cannot run the program.

    The wheel's runtime has no custom operators and few backends. A case with a set-up is not run: its methods share
    state, which this runtime does not.
    """
    if case.method.setup:
        return None
    try:
        import executorch.kernels.quantized  # noqa: F401 - registers operators
        from executorch.runtime import Runtime, Verification

        program = Runtime.get().load_program(pte, verification=Verification.Minimal)
        method = program.load_method(case.method.program_method)
        for _ in range(case.method.steps or 1):
            outputs = method.execute([each.clone() for each in case.inputs])
    except Exception as error:  # whatever a runtime of another version or without an operator raises
        logger.info("the program does not run on this machine: %s", error)
        return None
    return [each.clone() for each in outputs]
