"""The result of a sweep: the counts of its sessions, what failed, its end state, and the message about it.

ETFARM_NOTIFY names the services that get the message, as URLs of apprise. They contain secrets: nothing prints, logs or
stores them.
"""

import contextlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pydantic import BaseModel

from devices.errors import FarmError
from devices.settings import settings
from devices.untrusted import excerpt
from flows.device.job import COUNTED, DeviceTally, format_tallies
from flows.formatting import join_first, page_link, report_link
from flows.warehouse.publish import warn
from flows.warehouse.readable import readable_warehouse, warehouse_reader
from sql.errors import WarehouseError
from tasks.measure import prometheus
from tasks.measure.health import HealthError, Registry
from tasks.pages.notify import Message, send
from tasks.results import addresses
from tasks.results.devices import noise_lines
from tasks.results.incidents import IncidentRow, open_incidents, read_incidents
from tasks.results.night import night_headline
from tasks.results.reader import open_answers
from tasks.results.verdicts import (
    WORSE,
    FailingVerdict,
    VerdictRow,
    failed_lines,
    failing_verdicts,
    read_sweep_verdicts,
)
from tasks.store.workspace import Workspace

_log = logging.getLogger(__name__)
_MAX_LINES, _MAX_OTHERS = 10, 5
_SESSIONS_OF_THIS_START = ("succeeded", "failed", "invalid", "discarded")


class SweepEnd(BaseModel):
    sweep_id: str
    message: str
    lines: list[str] = []
    """The message without the verdicts, for those who see them above: the sessions, what went wrong, the report."""
    sessions: dict[str, int] = {}
    """Their number by how they ended (`COUNTED`)."""
    report: str | None = None
    """Path of the HTML file; None if it could not be written."""
    is_regression: bool = False
    is_recorded: bool = True
    """Whether it has a session; otherwise there are no times, verdicts or report."""


def read_verdicts(sweep_id: str, workspace: Workspace) -> list[VerdictRow]:
    """Return the verdicts on the sweep's night, worst first: all on latency, of other figures those that changed."""
    with readable_warehouse(workspace) as readable, open_answers(readable, sweep_id) as answers:
        return read_sweep_verdicts(answers)


def read_noise_lines(sweep_id: str, workspace: Workspace) -> list[str]:
    with warehouse_reader(workspace) as reader:
        return noise_lines(reader, sweep_id=sweep_id)


def log_verdicts(rows: list[VerdictRow], fail_on: FailingVerdict) -> None:
    """Log each change for the worse: as an error if it makes a sweep Failed, otherwise as a warning."""
    failing = failing_verdicts(rows, fail_on)
    for row in rows:
        if row.verdict in WORSE:
            _log.log(logging.ERROR if row in failing else logging.WARNING, "%s", row.line)


@dataclass(frozen=True)
class SweepResult:
    sweep_id: str
    tallies: list[DeviceTally]
    skipped: Mapping[tuple[str, str], str]
    """By model and recipe, why they were not exported, although nothing failed."""
    fail_on: FailingVerdict
    refused: Mapping[str, str] = field(default_factory=dict)
    """Why sessions could not be loaded, by their ids."""
    verdicts: list[VerdictRow] | None = None
    """Those on the night; None if they could not be read."""
    report: Path | None = None
    """None if it could not be written."""
    report_error: str | None = None
    step_errors: Sequence[str] = ()
    """Why another step at the end failed."""
    not_planned: Sequence[str] = ()
    """Why devices cannot run delegates of the sweep, a sentence each."""
    failed_exports: Sequence[str] = ()
    """Why exports failed that no session needed, so that none reports it."""
    is_recorded: bool = True
    """Whether the sweep has a session, of this start or an earlier one."""

    @cached_property
    def counts(self) -> dict[str, int]:
        return {name: sum(tally.counts[name] for tally in self.tallies) for name in COUNTED}

    @property
    def sessions_line(self) -> str:
        """The counts, failed and skipped exports, what devices cannot run: `sessions: 24 succeeded, 1 discarded`."""
        ended = f"sessions: {format_tallies(self.tallies)}"
        ended = "; ".join([ended, *([join_first(self.failed_exports)] if self.failed_exports else [])])
        skipped = [f"{model} {precision} ({reason})" for (model, precision), reason in sorted(self.skipped.items())]
        skipped += self.not_planned
        return f"{ended}; skipped: {', '.join(skipped)}" if skipped else ended

    @property
    def rows(self) -> list[VerdictRow]:
        return self.verdicts or []

    @property
    def errors(self) -> list[str]:
        """Devices that stopped, refused bundles whose sessions were not measured again, and failed steps."""
        broken = [tally.stopped_by for tally in self.tallies if tally.stopped_by]
        replaced = {session_id for tally in self.tallies for session_id in tally.replaced}
        if missing := [reason for session_id, reason in self.refused.items() if session_id not in replaced]:
            broken.append(f"{len(missing)} could not be loaded: {join_first(missing)}")
        return [*broken, *self.step_errors]

    @property
    def causes(self) -> list[str]:
        """The first reason of each device why sessions failed or were invalid, unless the verdicts state it."""
        reported = "; ".join(failed_lines(self.rows))
        reasons = [(tally.device, tally.unusable or tally.first_reason) for tally in self.tallies]
        return [
            why if why.startswith((f"{device}: ", f"{device} ")) else f"{device}: {why}"
            for device, why in reasons
            if why and why.rstrip(".") not in reported
        ]

    @property
    def report_line(self) -> str:
        if self.report:
            return f"report: {report_link(self.report)}"
        if not self.is_recorded:
            return "no session was recorded, so there is no report"
        return f"the report could not be written; {self.report_error}"

    @property
    def is_bad(self) -> bool:
        """Whether the sweep is Failed: by its sessions, devices or steps, or by a verdict that `fail_on` includes."""
        failed = self.counts["failed"] or self.counts["invalid"] or self.failed_exports or not self.report
        return bool(failed or self.errors or self.is_regression)

    @property
    def is_regression(self) -> bool:
        """Whether a verdict that `fail_on` includes was found, even if sessions failed, too."""
        return bool(failing_verdicts(self.rows, self.fail_on))

    @property
    def message(self) -> str:
        """Everything about the end in one line."""
        slower = [row.line for row in failing_verdicts(self.rows, self.fail_on)]
        lists = failed_lines(self.rows), self.causes, slower
        failed, causes, changes = ([join_first(each)] if each else [] for each in lists)
        return "; ".join([self.sessions_line, *failed, *causes, *self.errors, *changes, self.report_line])

    @property
    def end(self) -> SweepEnd:
        report = str(self.report) if self.report else None
        return SweepEnd(
            sweep_id=self.sweep_id,
            message=self.message,
            lines=["; ".join([self.sessions_line, *self.causes, *self.errors]), self.report_line],
            sessions=self.counts,
            report=report,
            is_regression=self.is_regression,
            is_recorded=self.is_recorded,
        )


def notify_end(result: SweepResult, workspace: Workspace) -> None:
    """Count an ended sweep and send its message, unless one was sent and this start ran no session."""
    prometheus.record("etfarm_sweeps", end="failed" if result.is_bad else "completed")
    prometheus.flush()
    with _errors_as_warnings():
        sent = workspace.reports / result.sweep_id / "notified"
        has_measured = any(result.counts[name] for name in _SESSIONS_OF_THIS_START)
        if (has_measured or not sent.exists()) and _notify(build_message(result, workspace)):
            sent.parent.mkdir(parents=True, exist_ok=True)
            sent.touch()


@contextlib.contextmanager
def notify_of_error(sweep: str) -> Iterator[None]:
    """Count a sweep that starts. Count and report an error that stops it, and raise the error again."""
    for end in ("completed", "failed", "stopped"):
        prometheus.record("etfarm_sweeps", 0, end=end)  # Prometheus sees an increase only of what was there before
    prometheus.record("etfarm_sweeps_started")
    prometheus.flush()
    try:
        yield
    except Exception as error:
        prometheus.record("etfarm_sweeps", end="stopped")
        prometheus.flush()
        is_ours = isinstance(error, FarmError | WarehouseError)
        cause = str(error) if is_ours else excerpt(f"{type(error).__name__}: {error}")
        with _errors_as_warnings():
            _notify(Message(f"{sweep}: the sweep stopped", f"{cause}; run the same command to resume", is_bad=True))
        raise


@contextlib.contextmanager
def _errors_as_warnings() -> Iterator[None]:
    """Turn any error into a warning, so that the sweep ends as it would; without its text, which may contain a URL."""
    try:
        yield
    except Exception as error:
        warn(f"notification not sent: {type(error).__name__}; report this error")


def build_message(result: SweepResult, workspace: Workspace) -> Message:
    """Return the message about a sweep that has ended: at most 10 incidents, 10 failures and 10 causes of devices.

    Incidents are those that its verdicts are part of and a sweep of its name found; other open ones are named with the
    sweep that found them.
    """
    unread = "The verdicts could not be read." if result.is_recorded else "No session was recorded."
    summary = unread if result.verdicts is None else night_headline(result.rows)
    lines = [result.sessions_line, *result.errors]
    every = _read_open_incidents(workspace)
    of_rows = {row.incident_id for row in result.rows}
    incidents = [each for each in every if each.incident_id in of_rows and each.is_found_by(result.sweep_id)]
    alone = [row for row in result.rows if row.incident_id not in {each.incident_id for each in every}]
    changes = [each.line for each in incidents] + [row.line for row in failing_verdicts(alone, "regression")]
    for sentences in (changes, failed_lines(alone)):
        lines += sentences[:_MAX_LINES]
        if len(sentences) > _MAX_LINES:
            lines.append(f"{len(sentences) - _MAX_LINES} more in the report")
    if others := [each for each in every if each not in incidents]:
        lines.append(f"open incidents that this sweep did not find: {len(others)}")
        lines += [f"- {each.found_line}" for each in others[:_MAX_OTHERS]]
        if page := page_link(addresses.INCIDENTS_PAGE):
            lines.append(f"all: {page}")
    lines += [*_device_lines(result, workspace), result.report_line]
    if result.rows and (page := page_link(addresses.night_page(result.rows[0].night))):
        lines.append(f"page: {page}")
    return Message(f"{result.sweep_id}{' failed' if result.is_bad else ''}: {summary}", "\n".join(lines), result.is_bad)


def _read_open_incidents(workspace: Workspace) -> list[IncidentRow]:
    """Return the open incidents of the farm; empty without a readable warehouse."""
    with contextlib.suppress(FarmError, WarehouseError), warehouse_reader(workspace) as reader:
        return open_incidents(read_incidents(reader))
    return []


def _device_lines(result: SweepResult, workspace: Workspace) -> list[str]:
    """Return the causes of failures, and a line for each device that is quarantined or retired, if none states it."""
    lines = result.causes[:_MAX_LINES]
    if len(result.causes) > _MAX_LINES:
        lines.append(f"{len(result.causes) - _MAX_LINES} more devices in the report")
    for tally in result.tallies:
        if tally.unusable:
            with contextlib.suppress(HealthError):
                health = Registry(workspace.registry).health(tally.device)
                if not health.usable and str(health) not in tally.unusable:
                    lines.append(f"{tally.device} is {health}; see `etfarm devices release --help`")
    return list(dict.fromkeys(lines))


def _notify(message: Message) -> bool:
    """Send a message to all services; return whether there are any and all accepted it. A failure is a warning."""
    urls = settings().notify.get_secret_value().strip()
    warnings = send(urls, message) if urls else []
    for warning in warnings:
        warn(warning)
    return bool(urls) and not warnings
