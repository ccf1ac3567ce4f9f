"""Measure a sweep with two versions of ExecuTorch, side by side on each device."""

import hashlib
from collections.abc import Sequence
from typing import Any

from prefect import flow, runtime
from prefect.client.schemas.objects import State

from devices.errors import InputError
from flows.device_selection import SweepRequest
from flows.server.states import user_run_name
from flows.shutdown import shutdown_handler
from flows.sweep import PARALLEL_STEPS, run_sweep
from tasks.measure.sweep_file import SweepSpec
from tasks.runner.executorch_versions import ExecutorchVersions

_MATRIX = {"models", "precisions", "variants", "threads", "executions", "warmup_executions", "seed"}
"""What an upgrade takes from a sweep and shows a row for, or measures differently."""


def upgrade_sweep(
    spec: SweepSpec, a: ExecutorchVersions, b: ExecutorchVersions, sessions: int, devices: Sequence[str] = ()
) -> SweepSpec:
    """Return a sweep with the models and `devices` of `spec` that measures versions `a` and `b` of ExecuTorch.

    Its name contains a digest of the versions and of all that is measured with them. So it shares a sweep id, and thus
    a cell and an answer, with no other sweep; more sessions continue those of the day. Raises InputError for a program
    that is exported already.
    """
    if exported := next((model.name for model in spec.models if model.pte), None):
        raise InputError(
            f"{exported} is a program that is exported already, so that no version exports it; leave it out, or "
            "measure it by a sweep with `executorch: [own, {runner: 1.5.0}]` and `etfarm compare default runner=1.5.0`"
        )
    matrix = f"{a} {b} {spec.model_dump_json(include=_MATRIX)} {sorted(devices)}"
    if spec.delegates != SweepSpec.model_fields["delegates"].default:
        matrix += f" {spec.delegates}"
    digest = hashlib.sha256(matrix.encode()).hexdigest()[:8]
    changes: dict[str, Any] = {"executorch": [a, b], "options": SweepSpec.model_fields["options"].default}
    changes |= {"modes": ["timing"], "sessions": sessions, "noise_sessions": 0, "interval_percent": None}
    changes |= {"roof": False}  # it is no model that could get worse
    return spec.model_copy(update={"name": f"{spec.name}-upgrade-{digest}", **changes})


def _flow_run_name() -> str:
    request: SweepRequest = runtime.flow_run.parameters["request"]
    return user_run_name() or request.spec.name


@flow(name="upgrade", flow_run_name=_flow_run_name, task_runner=PARALLEL_STEPS, validate_parameters=False)
def check_upgrade(request: SweepRequest) -> State[Any]:
    """Run the sweep of an upgrade; its sessions belong to no series and no night."""
    with shutdown_handler(runtime.flow_run.id):
        return run_sweep(request)
