"""Sentences about outputs that are wrong, from the records in export.json."""

from collections.abc import Mapping
from typing import Any


def random_sentence(draw: Mapping[str, str | None]) -> str:
    """Return what is random in a model, where, and what to do."""
    if draw["operator"] is None:
        return (
            "random in evaluation mode: two executions with the same inputs have different outputs, and no operator of "
            "PyTorch draws random numbers; make its forward compute the same values each time"
        )
    module = f" in {draw['module']}" if draw["module"] else ""
    line = f" ({draw['line']})" if draw["line"] else ""
    return (
        f"random in evaluation mode: {draw['operator']}{module}{line} draws other numbers in each execution; "
        "remove it, draw only while `self.training` is true, or pass the numbers as an input"
    )


def fault_sentence(fault: Mapping[str, Any], executorch: str | None) -> str:
    """Return what ExecuTorch (of a version) computes wrong, and what to do."""
    by = f"ExecuTorch {executorch or ''}".rstrip()
    if fault["operator"] is None:
        return f"{by} computes this program wrong on this machine; which operator it is was not found: {fault['cause']}"
    module = f" in {fault['module']}" if fault["module"] else ""
    line = f" ({fault['line']})" if fault["line"] else ""
    at = f"element {fault['element']} is" if fault["element"] else "the result is"
    return (
        f"{by} computes {fault['operator']}{module}{line} wrong in {fault['kernel']}: {at} {fault['actual']}, in eager "
        f"PyTorch {fault['expected']}; the program without the farm's passes is wrong, too: replace this operator in "
        "the model, and report it to ExecuTorch"
    )
