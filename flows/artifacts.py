"""What a sweep shows in Prefect's UI beside its runs; without an answer of the server it shows nothing."""

import contextlib
import time
from datetime import datetime
from typing import cast
from uuid import UUID

import httpx
from prefect.artifacts import (
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId, ArtifactFilterType

from flows.device.states import DeviceState
from flows.server.watch import ServerGoneError

_ALL = 100.0
# The server answers in a tenth of a second and more while many devices measure short sessions.
_PAUSE_S = 10.0


class ProgressArtifact:
    """The progress of a device."""

    def __init__(self, device: str) -> None:
        self._next = 0.0
        key = "sessions-" + "".join(letter if letter.isalnum() else "-" for letter in device.lower())
        self._id: UUID | None = None
        with contextlib.suppress(httpx.HTTPError, ServerGoneError):
            self._id = cast(UUID, create_progress_artifact(0.0, key=key, description=f"Sessions on {device}"))

    def update(self, percent: float) -> None:
        """Show that `percent` (0 to 100) of the sessions have ended; what soon changes again is not sent."""
        if self._id is not None and (percent >= _ALL or time.monotonic() >= self._next):
            self._next = time.monotonic() + _PAUSE_S
            with contextlib.suppress(httpx.HTTPError, ServerGoneError):
                update_progress_artifact(self._id, percent)


def expected_end(client: SyncPrefectClient, run: UUID) -> datetime | None:
    """Return when the device of a flow run will have ended at its pace so far; None before its first session ended."""
    of_run = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[run]), type=ArtifactFilterType(any_=["progress"]))
    for artifact in client.read_artifacts(artifact_filter=of_run):
        percent, begun, now = artifact.data, artifact.created, artifact.updated
        if isinstance(percent, int | float) and percent > 0 and begun and now:
            return begun + (now - begun) * (_ALL / percent)
    return None


def show_report(markdown: str, sweep_id: str) -> None:
    """Show the report of a sweep."""
    with contextlib.suppress(httpx.HTTPError, ServerGoneError):
        create_markdown_artifact(markdown, key="report", description=sweep_id)


def show_devices(states: list[DeviceState]) -> None:
    """Show the state and health of devices as a table."""
    table = [
        {
            "device": each.spec.name,
            "state": each.state.partition(": ")[0],
            "health": each.health.state,
            "reason": each.unreachable or each.health.reason or "",
        }
        for each in states
    ]
    with contextlib.suppress(httpx.HTTPError, ServerGoneError):
        create_table_artifact(table, key="devices", description="Devices of the inventory")
