"""How a sweep ended: the counts of its sessions, what failed, and its end state."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from prefect.client.schemas.objects import State
from pydantic import BaseModel

from flows.device.job import COUNTED, DeviceTally, counts_in_words
from flows.live_exports import Snapshot
from flows.server.states import data_of, end_state, first_of
from flows.verdicts import FailingVerdict, fails, line_of
from tasks.analyse.report.sections.verdicts import VerdictRow


class SweepEnd(BaseModel):
    """What a sweep returns to its caller."""

    sweep_id: str
    message: str


@dataclass(frozen=True)
class Ending:
    """The results of a sweep's steps; `refused` are reasons by session id."""

    sweep_id: str
    tallies: list[DeviceTally]
    refused: Mapping[str, str]
    second: State[Any]
    report: State[Any]
    verdicts: State[Any]
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
    def rows(self) -> list[VerdictRow]:
        """The verdicts on the night; none if they could not be read."""
        return data_of(self.verdicts) if self.verdicts.is_completed() else []

    @property
    def errors(self) -> list[str]:
        """What failed beside sessions and the report."""
        broken = [tally.stopped_by for tally in self.tallies if tally.stopped_by]
        replaced = {session_id for tally in self.tallies for session_id in tally.replaced}
        if missing := [reason for session_id, reason in self.refused.items() if session_id not in replaced]:
            broken.append(f"{len(missing)} could not be loaded: {first_of(missing)}")
        if not self.second.is_completed():
            broken.append(f"suspected series could not be compared the same night: {self.second.message}")
        if not self.verdicts.is_completed():
            broken.append(f"the verdicts could not be read: {self.verdicts.message}")
        return broken

    @property
    def report_file(self) -> Path | None:
        """The report; None if it could not be written."""
        return data_of(self.report) if self.report.is_completed() else None

    @property
    def report_line(self) -> str:
        """Where the report is, or why it could not be written."""
        if self.report_file:
            return f"report: {self.report_file}"
        return f"the report could not be written; {self.report.message}"

    def state(self) -> State[Any]:
        """Return the sweep's end state, with everything in its message."""
        broken, slower = self.errors, fails(self.rows, self.fail_on)
        if slower:
            broken.append(first_of([line_of(row) for row in slower]))
        message = "; ".join([self.sessions, *broken, self.report_line])
        is_bad = broken or not self.report_file or self.counts["failed"] or self.counts["invalid"]
        return end_state(SweepEnd(sweep_id=self.sweep_id, message=message), message, is_bad=bool(is_bad))
