"""Measure a sweep with two versions of ExecuTorch, side by side on each device."""

import hashlib
from typing import Any

from prefect import flow, runtime
from prefect.client.schemas.objects import State

from flows.device_selection import SweepRequest
from flows.server.states import user_run_name
from flows.shutdown import shutdown_handler
from flows.sweep import PARALLEL_STEPS, run_sweep
from tasks.measure.sweep_file import SweepSpec
from tasks.runner.executorch_versions import ExecutorchVersions


def upgrade_sweep(spec: SweepSpec, a: ExecutorchVersions, b: ExecutorchVersions, sessions: int) -> SweepSpec:
    """Return a sweep with the models and devices of `spec` that measures versions `a` and `b` of ExecuTorch.

    Its name contains a digest of the versions. So it shares a sweep id, and thus a cell, with no other sweep.
    """
    digest = hashlib.sha256(f"{a} {b}".encode()).hexdigest()[:8]
    changes: dict[str, Any] = {"executorch": [a, b], "options": SweepSpec.model_fields["options"].default}
    changes |= {"modes": ["timing"], "sessions": sessions, "noise_sessions": 0, "interval_percent": None}
    return spec.model_copy(update={"name": f"{spec.name}-upgrade-{digest}", **changes})


def _flow_run_name() -> str:
    request: SweepRequest = runtime.flow_run.parameters["request"]
    return user_run_name() or request.spec.name


@flow(name="upgrade", flow_run_name=_flow_run_name, task_runner=PARALLEL_STEPS, validate_parameters=False)
def check_upgrade(request: SweepRequest) -> State[Any]:
    """Run the sweep of an upgrade; its sessions belong to no series and no night."""
    with shutdown_handler(runtime.flow_run.id):
        return run_sweep(request)
