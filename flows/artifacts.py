"""Artifacts of a sweep in Prefect's UI; without an answer of the server nothing is shown, and the sweep goes on."""

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
from tasks.pages.comparison import night_markdown, verdict_row
from tasks.results.verdicts import Verdict, headline

_PAUSE_S = 10.0
# Prefect keeps each state of the table as an event, so that of a thousand devices is sent less often.
_PAUSE_OF_STEP_S = 0.1
_MAX_SENDING_S = 7.0


@contextlib.contextmanager
def shown_progress() -> Iterator[None]:
    """Show how far each step of the present flow run is, in one table, which is sent again while it changes."""
    ended = threading.Event()
    thread = threading.Thread(target=copy_context().run, args=(_show_steps, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _show_steps(ended: threading.Event) -> None:
    shown: list[dict[str, Any]] = []
    table: UUID | None = None
    has_ended = False
    while not has_ended:
        has_ended = ended.wait(_PAUSE_S + _PAUSE_OF_STEP_S * len(shown))
        if (steps := board.steps()) == shown:
            continue
        with _sending(), get_client(sync_client=True) as client:
            if table is None:
                described = "Items done and failed of each step; a device's are its sessions"
                table = cast(UUID, create_table_artifact(_plain_rows(steps), key="progress", description=described))
            else:
                client.update_artifact(table, ArtifactUpdate(data=json.dumps(_plain_rows(steps))))
            shown = steps


def show_markdown(markdown: str, key: str, description: str) -> None:
    with _sending():
        create_markdown_artifact(markdown, key=key, description=description)


def show_verdicts(rows: list[Verdict], sweep_id: str) -> None:
    """Show the verdicts and the matrix of the night in Prefect's UI, and emit an event for each regression.

    The event is `etfarm.regression`.
    """
    show_table([verdict_row(row) for row in rows], "verdicts", f"{sweep_id}: {headline(rows)}")
    if rows and (markdown := night_markdown(rows, page_link(rows[0].night))):
        show_markdown(markdown, "night", f"{sweep_id}: models and devices")
    for row in rows:
        if row.is_regression:
            resource = {"prefect.resource.id": f"etfarm.cell.{row.cell}", "prefect.resource.name": row.title}
            emit_event("etfarm.regression", resource=resource, payload={**verdict_row(row), "sweep": sweep_id})


def show_report(html: Path) -> None:
    """Show the report of a sweep, and where its page is."""
    markdown = html.with_suffix(".md").read_text(encoding="utf-8")
    show_markdown(markdown, "report", f"Complete: {report_link(html)}")


def show_table(rows: list[dict[str, Any]], key: str, description: str) -> None:
    with _sending():
        create_table_artifact(_plain_rows(rows), key=key, description=description)


def _plain_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows without characters that could act where they are shown."""
    return [
        {key: sanitize_line(value) if isinstance(value, str) else value for key, value in row.items()} for row in rows
    ]


@contextlib.contextmanager
def _sending() -> Iterator[None]:
    """Leave out what the server does not accept within seconds."""
    seconds = {PREFECT_CLIENT_MAX_RETRIES: 1, PREFECT_API_REQUEST_TIMEOUT: _MAX_SENDING_S}
    with contextlib.suppress(httpx.HTTPError, RuntimeError), temporary_settings(seconds):
        yield


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
    show_table(table, "devices", "Devices of the inventory")
