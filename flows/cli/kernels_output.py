"""`etfarm model check --expect sme2`: which kernels a device executed, and the exit code."""

import json
import platform
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from devices.inventory import DeviceSpec
from devices.settings import settings
from flows.cli.options import choose_device
from flows.kernel_check import KernelCheck, check_kernels
from flows.terminal import show, show_pieces
from tasks.bundle.sizes import size_text
from tasks.export.entry import ExportRequest
from tasks.export.exported import ExportError
from tasks.store.workspace import Workspace


def expect_sme2(
    request: ExportRequest,
    workspace: Workspace,
    inventory: Path | None,
    device: str | None,
    format: Literal["text", "json"],
) -> int:
    """Print the kernels that each case of a model executes; return 0 if each executed SME2 kernels, 1 if one did not.

    The device is the one of that name, or the only one of `inventory`, or this machine. Raises FarmError if it cannot
    count kernels.
    """
    spec = DeviceSpec(name=platform.node() or "this-machine", transport="local")
    if inventory or device:
        spec = choose_device(inventory or settings().inventory, device)
    started = time.monotonic()
    problems: list[str] = []
    checks: list[KernelCheck] = []
    try:
        for case in check_kernels(request, workspace, spec, lambda cause: show(f"waiting: {cause}", err=True)):
            checks.append(case)
            if format == "text":
                show(*_text_lines(case))
            if case.problem:
                problems.append(f"{case.export.model}: {case.problem}")
    except ExportError as error:
        problems = [str(error)]
    seconds = time.monotonic() - started
    if format == "text":
        show(f"checked in {seconds:.1f} s", f"failed: {'; '.join(problems)}" if problems else "executed SME2 kernels")
    else:
        about = {"model": request.entry.name, "precision": request.precision, "device": spec.name}
        document = about | {"executed": not problems, "problems": problems, "seconds": seconds}
        show_pieces([json.dumps(document | {"cases": [_case_as_json(case) for case in checks]}, indent=1) + "\n"])
    return 1 if problems else 0


def _text_lines(case: KernelCheck) -> Iterator[str]:
    export, counts = case.export, case.counts
    yield f"{export.model} {export.precision}: {size_text(export.pte_bytes)}"
    if counts is None:
        return
    yield f"kernels of KleidiAI on {case.device.name}, {counts.executions} executions, 1 thread, SME2 on:"
    for each in case.executed:
        ms = "" if each.ms_per_run is None else f", {each.ms_per_run:.4f} ms"
        yield f"  {each.name}: {each.calls_per_run:g} calls per run{ms}"
    yield f"the runner has {len(counts.kernels)} such kernels; kernels of XNNPACK have no names and are not counted"
    if case.cost_ms is not None:
        yield f"counting added at most {case.cost_ms:.4f} ms to a run"


def _case_as_json(case: KernelCheck) -> dict[str, Any]:
    counts = case.counts
    return {
        "model": case.export.model,
        "precision": case.export.precision,
        "executions": counts.executions if counts else None,
        "kernels": [asdict(each) for each in case.executed],
        "sme2_calls_per_run": case.sme2_calls_per_run,
        "cost_ms": case.cost_ms,
        "compiled": [each.name for each in counts.kernels] if counts else [],
        "problem": case.problem,
    }
