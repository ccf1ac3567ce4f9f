"""How a sweep ended: the counts of its sessions, what failed, its end state, and the message about it.

ETFARM_NOTIFY names the services that get the message, as URLs of apprise. They contain secrets: nothing prints, logs or
stores them.
"""

import contextlib
import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from devices.errors import FarmError
from devices.foreign_text import one_line
from flows.device.job import COUNTED, DeviceTally, counts_in_words
from flows.live_exports import Snapshot
from flows.warehouse.publish import tell
from flows.warehouse.readable import readable_warehouse
from flows.words import first_of, page_link, report_link
from sql.errors import WarehouseError
from tasks.measure import metrics
from tasks.measure.health import HealthError, Registry
from tasks.pages.notify import Message, send
from tasks.results.devices import noise_lines
from tasks.results.reader import open_answers, open_reader
from tasks.results.verdicts import WORSE, FailingVerdict, Verdict, failed_lines, fails, headline
from tasks.store.var import Var

_log = logging.getLogger(__name__)
_MOST_LINES = 10
_SESSIONS_OF_THIS_START = ("succeeded", "failed", "invalid", "discarded")


class SweepEnd(BaseModel):
    """What a sweep returns to its caller."""

    sweep_id: str
    message: str
    sessions: dict[str, int] = {}
    """How many ended how."""
    report: str | None = None
    """Its file; None if it could not be written."""


def verdicts_of(sweep_id: str, var: Path, warehouse: Path | None) -> list[Verdict]:
    """Return the verdicts on the sweep's night, worst first: each on latency, and the changes of other figures."""
    with readable_warehouse(var, warehouse) as readable, open_answers(readable, sweep_id) as answers:
        return answers.rows(Verdict)


def noise_of(sweep_id: str, var: Path, warehouse: Path | None) -> list[str]:
    """Return a line for each device of the sweep that was busy, and for each whose noise has doubled."""
    with readable_warehouse(var, warehouse) as readable, open_reader(readable) as reader:
        return noise_lines(reader, sweep_id)


def log_verdicts(rows: list[Verdict], fail_on: FailingVerdict) -> None:
    """Log each change for the worse: as an error if it makes a sweep Failed, otherwise as a warning."""
    failing = fails(rows, fail_on)
    for row in rows:
        if row.verdict in WORSE:
            _log.log(logging.ERROR if row in failing else logging.WARNING, "%s", row.line)


@dataclass(frozen=True)
class Step:
    """How a step at the end of a sweep ended."""

    result: Any = None
    error: str | None = None
    """Why it failed; None if it did not."""


@dataclass(frozen=True)
class Ending:
    """The results of a sweep's steps; `refused` are reasons by session id."""

    sweep_id: str
    tallies: list[DeviceTally]
    refused: Mapping[str, str]
    second: Step
    report: Step
    verdicts: Step
    fail_on: FailingVerdict
    exports: Snapshot

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many sessions ended how."""
        return {name: sum(tally.counts[name] for tally in self.tallies) for name in COUNTED}

    @property
    def sessions(self) -> str:
        """The counts, and what was skipped: `sessions: 24 succeeded, 1 discarded`."""
        ended = f"sessions: {counts_in_words(self.tallies)}"
        skipped = [
            f"{model} {precision} ({reason})" for (model, precision), reason in sorted(self.exports.skipped.items())
        ]
        return f"{ended}; skipped: {', '.join(skipped)}" if skipped else ended

    @property
    def rows(self) -> list[Verdict]:
        """The verdicts on the night; none if they could not be read."""
        return [] if self.verdicts.error else self.verdicts.result

    @property
    def errors(self) -> list[str]:
        """What failed beside sessions and the report."""
        broken = [tally.stopped_by for tally in self.tallies if tally.stopped_by]
        replaced = {session_id for tally in self.tallies for session_id in tally.replaced}
        if missing := [reason for session_id, reason in self.refused.items() if session_id not in replaced]:
            broken.append(f"{len(missing)} could not be loaded: {first_of(missing)}")
        if self.second.error:
            broken.append(f"suspected series could not be compared the same night: {self.second.error}")
        if self.verdicts.error:
            broken.append(f"the verdicts could not be read: {self.verdicts.error}")
        return broken

    @property
    def failed(self) -> list[str]:
        """Which series failed and why."""
        return failed_lines(self.rows)

    @property
    def causes(self) -> list[str]:
        """Why other sessions failed or were invalid: the first reason of each device."""
        told = "; ".join(self.failed)
        found = [(tally.device, tally.unusable or tally.first_reason) for tally in self.tallies]
        return [
            why if why.startswith((f"{device}: ", f"{device} ")) else f"{device}: {why}"
            for device, why in found
            if why and why.rstrip(".") not in told
        ]

    @property
    def report_file(self) -> Path | None:
        """The report; None if it could not be written."""
        return None if self.report.error else self.report.result

    @property
    def report_line(self) -> str:
        """Where the report is, or why it could not be written."""
        if self.report_file:
            return f"report: {report_link(self.report_file)}"
        return f"the report could not be written; {self.report.error}"

    @property
    def is_bad(self) -> bool:
        """Whether the sweep failed."""
        failed = self.counts["failed"] or self.counts["invalid"] or not self.report_file
        return bool(failed or self.errors or fails(self.rows, self.fail_on))

    @property
    def message(self) -> str:
        """Everything about the end in one line."""
        slower = [row.line for row in fails(self.rows, self.fail_on)]
        failed, causes, changes = ([first_of(each)] if each else [] for each in (self.failed, self.causes, slower))
        return "; ".join([self.sessions, *failed, *causes, *self.errors, *changes, self.report_line])

    @property
    def end(self) -> SweepEnd:
        """What a sweep returns."""
        report = str(self.report_file) if self.report_file else None
        return SweepEnd(sweep_id=self.sweep_id, message=self.message, sessions=self.counts, report=report)


def notify_end(ending: Ending, places: Var) -> None:
    """Count a sweep that has ended and send the message about it, unless nothing was measured since the last one."""
    metrics.record("etfarm_sweeps", end="failed" if ending.is_bad else "completed")
    metrics.flush()
    with _errors_as_warnings():
        sent = places.reports / ending.sweep_id / "notified"
        has_measured = any(ending.counts[name] for name in _SESSIONS_OF_THIS_START)
        if (has_measured or not sent.exists()) and _send(message_of(ending, places)):
            sent.parent.mkdir(parents=True, exist_ok=True)
            sent.touch()


@contextlib.contextmanager
def notify_of_error(sweep: str) -> Iterator[None]:
    """Count a sweep that starts; send a message about an error that stops it, which is raised again."""
    for end in ("completed", "failed", "stopped"):
        metrics.record("etfarm_sweeps", 0, end=end)  # Prometheus sees an increase only of what was there before
    metrics.record("etfarm_sweeps_started")
    metrics.flush()
    try:
        yield
    except Exception as error:
        metrics.record("etfarm_sweeps", end="stopped")
        metrics.flush()
        is_ours = isinstance(error, FarmError | WarehouseError)
        cause = str(error) if is_ours else one_line(f"{type(error).__name__}: {error}")
        with _errors_as_warnings():
            _send(Message(f"{sweep}: the sweep stopped", f"{cause}; run the same command to resume", is_bad=True))
        raise


@contextlib.contextmanager
def _errors_as_warnings() -> Iterator[None]:
    """No error of a notification changes how a sweep ends; its text is not shown, because it may contain a URL."""
    try:
        yield
    except Exception as error:
        tell(f"notification not sent: {type(error).__name__}; report this error")


def message_of(ending: Ending, places: Var) -> Message:
    """Return the message about a sweep that has ended, with at most 10 regressions and 10 reasons of failures."""
    found = "The verdicts could not be read." if ending.verdicts.error else headline(ending.rows)
    lines = [ending.sessions, *ending.errors]
    for told in ([row.line for row in fails(ending.rows, "regression")], ending.failed):
        lines += told[:_MOST_LINES]
        if len(told) > _MOST_LINES:
            lines.append(f"{len(told) - _MOST_LINES} more in the report")
    lines += [*_device_lines(ending, places), ending.report_line]
    if ending.rows and (page := page_link(ending.rows[0].night)):
        lines.append(f"page: {page}")
    return Message(f"{ending.sweep_id}{' failed' if ending.is_bad else ''}: {found}", "\n".join(lines), ending.is_bad)


def _device_lines(ending: Ending, places: Var) -> list[str]:
    """Why sessions of devices failed, and which devices sweeps will not use."""
    lines = ending.causes[:_MOST_LINES]
    if len(ending.causes) > _MOST_LINES:
        lines.append(f"{len(ending.causes) - _MOST_LINES} more devices in the report")
    for tally in ending.tallies:
        if tally.unusable:
            with contextlib.suppress(HealthError):
                health = Registry(places.registry).health(tally.device)
                if not health.usable and str(health) not in tally.unusable:
                    lines.append(f"{tally.device} is {health}; see `etfarm devices release --help`")
    return list(dict.fromkeys(lines))


def _send(message: Message) -> bool:
    """Send a message to all services; return whether there are any and all accepted it. A failure is a warning."""
    urls = os.environ.get("ETFARM_NOTIFY", "").strip()
    warnings = send(urls, message) if urls else []
    for warning in warnings:
        tell(warning)
    return bool(urls) and not warnings
