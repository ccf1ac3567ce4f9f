"""The verdicts on the night of a sweep: on the terminal, in Prefect's UI, and in the sweep's end."""

import logging
from collections.abc import Sequence
from typing import Literal

from flows.warehouse.publish import ask_warehouse
from flows.warehouse.readable import readable_warehouse
from tasks.pages.report.sections.failures import failed_series
from tasks.pages.report.sections.verdicts import VerdictRow
from tasks.results.cells import series_title
from tasks.results.reader import open_answers
from tasks.results.text import plain_text
from tasks.store.workspace import Workspace

FailingVerdict = Literal["regression", "suspected", "device", "never"]
_FAILING = {
    "regression": {"regression", "inaccurate"},
    "suspected": {"regression", "inaccurate", "suspected"},
    "device": {"regression", "inaccurate", "device slower", "device worse"},
    "never": set[str](),
}
_WORSE = _FAILING["suspected"] | _FAILING["device"]
_log = logging.getLogger(__name__)


def verdicts_of(sweep_id: str, workspace: Workspace) -> list[VerdictRow]:
    """Return the verdicts on the sweep's night, worst first: each on latency, and the changes of other figures."""
    with readable_warehouse(workspace) as readable, open_answers(readable, sweep_id) as answers:
        return answers.rows(VerdictRow)


def noise_lines(sweep_id: str, workspace: Workspace) -> list[str]:
    """Return a line for each device of the sweep that was busy, and for each whose noise has doubled."""
    busy = [
        f"{device} was busy before its sessions: load {load:.1f} on {cores} cores; measure again when it is idle"
        for device, load, cores in ask_warehouse("busy_devices", workspace, sweep_id=sweep_id)
    ]
    return busy + [
        f"{device}: noise {100 * noise:.1f} %, {change:.1f} times that of {nights} earlier nights; check what else "
        "runs on it, its temperature and its power before you trust small changes"
        for device, noise, change, nights in ask_warehouse("noisy_devices", workspace, sweep_id=sweep_id)
    ]


def log_verdicts(rows: list[VerdictRow], fail_on: FailingVerdict) -> None:
    """Log each change for the worse: as an error if it makes a sweep Failed, otherwise as a warning."""
    for row in rows:
        if row.verdict in _WORSE:
            _log.log(logging.ERROR if row.verdict in _FAILING[fail_on] else logging.WARNING, "%s", line_of(row))


def fails(rows: list[VerdictRow], fail_on: FailingVerdict) -> list[VerdictRow]:
    """Return the rows that make a sweep Failed."""
    return [row for row in rows if row.verdict in _FAILING[fail_on]]


def line_of(row: VerdictRow) -> str:
    """One line about a verdict: `regression: linear fp32 on here, SME2 off, one thread: +162.0 % ... (8 sessions)`."""
    needs_evidence = row.ratio is not None and row.evidence and not row.is_of_comparison
    evidence = f" ({row.evidence})" if needs_evidence else ""
    cause = f"; cause: {row.cause}" if row.cause else ""
    changed = f"; changed: {row.changed}" if row.changed else ""
    return f"{row.verdict}: {title_of(row)}: {row.reason}{evidence}{cause}{changed}"


def failed_lines(rows: Sequence[VerdictRow]) -> list[str]:
    """Return a line for each reason why series failed, with the first of them."""
    return [f"failed: {plain_text(named)}: {reason}" for named, reason in failed_series(rows)]


def title_of(row: VerdictRow) -> str:
    """Return the name of a series on a device; that of the model where the figure is one of its file."""
    if row.is_of_file:
        return f"{row.model} {row.precision}"
    return series_title(row)
