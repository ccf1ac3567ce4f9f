"""Artifacts of a flow run in Prefect's UI. Without an answer of the server they are left out, and the run continues."""

import contextlib
import json
import threading
from collections.abc import Iterator
from contextvars import copy_context
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import httpx
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import ArtifactUpdate
from prefect.events import emit_event
from prefect.settings import PREFECT_API_REQUEST_TIMEOUT, PREFECT_CLIENT_MAX_RETRIES, temporary_settings

from devices.untrusted import sanitize_line
from flows.device.states import DeviceState
from flows.formatting import page_link, report_link
from flows.progress import board
from flows.status.expected_time import StepProgress
from tasks.pages.comparison import night_markdown, verdict_row
from tasks.results.addresses import night_page
from tasks.results.night import night_headline
from tasks.results.verdicts import VerdictRow

_PAUSE_S = 10.0  # between two updates of the table `progress`
# Prefect stores every update of the table as an event. So a table of many devices is sent less often.
_PAUSE_PER_STEP_S = 0.1
_REQUEST_S = 7.0


@contextlib.contextmanager
def progress_table() -> Iterator[None]:
    """Show the progress of each step of the present flow run in a table, which a thread updates during the block."""
    ended = threading.Event()
    thread = threading.Thread(target=copy_context().run, args=(_show_steps, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _show_steps(ended: threading.Event) -> None:
    """Send the table `progress` whenever a step has changed, until `ended` is set, and then once more."""
    sent: list[dict[str, Any]] = []
    table: UUID | None = None
    has_ended = False
    while not has_ended:
        has_ended = ended.wait(_PAUSE_S + _PAUSE_PER_STEP_S * len(sent))
        if (rows := _plain_rows(_rows(board.steps()))) == sent:  # also if an end has passed meanwhile
            continue
        with _ignoring_server_errors(), get_client(sync_client=True) as client:
            if table is None:
                text = "Items done and failed of each step; a device's are its sessions, with their expected end"
                table = cast(UUID, create_table_artifact(rows, key="progress", description=text))
            else:
                client.update_artifact(table, ArtifactUpdate(data=json.dumps(rows)))
            sent = rows


def _rows(steps: list[StepProgress]) -> list[dict[str, Any]]:
    names = ("step", "lab", "done", "of", "failed", "doing")
    return [{name: getattr(step, name) for name in names} | {"until": str(step.end or "")} for step in steps]


def show_markdown(markdown: str, key: str, description: str) -> None:
    with _ignoring_server_errors():
        create_markdown_artifact(markdown, key=key, description=description)


def show_verdicts(rows: list[VerdictRow], sweep_id: str) -> None:
    """Show the verdicts as a table and the night as a matrix; emit `etfarm.regression` for each regression."""
    show_table([verdict_row(row) for row in rows], "verdicts", f"{sweep_id}: {night_headline(rows)}")
    if rows and (markdown := night_markdown(rows, page_link(night_page(rows[0].night)))):
        show_markdown(markdown, "night", f"{sweep_id}: models and devices")
    for row in rows:
        if row.verdict == "regression":
            resource = {"prefect.resource.id": f"etfarm.cell.{row.cell}", "prefect.resource.name": row.title}
            with _ignoring_server_errors():
                emit_event("etfarm.regression", resource=resource, payload={**verdict_row(row), "sweep": sweep_id})


def show_report(html: Path) -> None:
    """Show the Markdown file beside the HTML file of a report, with the address of the latter."""
    markdown = html.with_suffix(".md").read_text(encoding="utf-8")
    show_markdown(markdown, "report", f"Complete: {report_link(html)}")


def show_table(rows: list[dict[str, Any]], key: str, description: str) -> None:
    with _ignoring_server_errors():
        create_table_artifact(_plain_rows(rows), key=key, description=description)


def _plain_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows with control characters in texts replaced."""
    return [
        {key: sanitize_line(value) if isinstance(value, str) else value for key, value in row.items()} for row in rows
    ]


@contextlib.contextmanager
def _ignoring_server_errors() -> Iterator[None]:
    """Suppress errors of the server in the block. A request takes at most 7 s and is repeated once."""
    limits = {PREFECT_CLIENT_MAX_RETRIES: 1, PREFECT_API_REQUEST_TIMEOUT: _REQUEST_S}
    with contextlib.suppress(httpx.HTTPError, RuntimeError), temporary_settings(limits):
        yield


def show_devices(states: list[DeviceState]) -> None:
    """Show a table of devices; `reason` is why one is unreachable, otherwise the reason of its health."""
    table = [
        {
            "device": each.spec.name,
            "state": each.state.partition(": ")[0],
            "health": each.health.state,
            "reason": each.unreachable or each.health.reason or "",
        }
        for each in states
    ]
    show_table(table, "devices", "Devices of the inventory")
