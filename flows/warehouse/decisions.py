"""Reset a baseline, exclude a night, revoke either: record it beside the bundles, then in the warehouse."""

import getpass
import logging
import os
import socket
import uuid
from collections.abc import Iterable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from devices.errors import InputError
from devices.foreign_text import plain_line
from devices.suggest import did_you_mean
from flows.warehouse.publish import publish_of
from tasks.analyse.verdict.decision_table import known_series
from tasks.analyse.verdict.decisions import Decision, Selector, SeriesNight, read_decisions
from tasks.keep.decisions import store_decisions
from tasks.measure.night import parse_night
from tasks.store.store import BundleStore
from tasks.store.var import Var

_log = logging.getLogger(__name__)


class DecisionBook:
    """The decisions of a bundle store, and the warehouse that follows them.

    Every method that records writes the file first: if the warehouse cannot be changed now, the next load does it.
    Each returns a line with the outcome and raises InputError, BundleError or WarehouseError.
    """

    def __init__(self, bundles: BundleStore, var: Path, warehouse: Path | None) -> None:
        self._bundles = bundles
        self._var = var
        self._warehouse = warehouse
        self._file = warehouse or Var(var).warehouse

    def reset_baseline(self, night: str | None, series: Selector, reason: str) -> str:
        """Compare nights of these series from `night` on (default: their newest) with none before it."""
        known = known_series(self._file)
        matching = _matching(series, known)
        nights = sorted({each.night for each in matching})
        today = date.today()
        first = parse_night(night) if night else max(nights, default=today)
        if not min(nights, default=first) <= first <= max([*nights, today]):
            oldest = f"from {nights[0]} to {today}" if nights else f"up to {today}"
            raise InputError(f"--night {first}: outside the nights of the matching series; use one {oldest}")
        return self._record(f"baseline reset from {first}", "baseline_reset", first, series, reason, matching)

    def exclude_night(self, night: str, series: Selector, reason: str) -> str:
        """Never compare this night of these series, and leave it out of every baseline."""
        known = known_series(self._file)
        matching, excluded = _matching(series, known), parse_night(night)
        nights = sorted({each.night.isoformat() for each in matching})
        if known and excluded.isoformat() not in nights:
            raise InputError(
                f"{excluded}: the matching series have no sessions of that night"
                f"{did_you_mean(excluded.isoformat(), nights) or f'; their newest night is {nights[-1]}'}"
            )
        of_night = [each for each in matching if each.night == excluded]
        return self._record(f"{excluded} excluded", "night_exclusion", excluded, series, reason, of_night)

    def revoke(self, decision_id: str, reason: str) -> str:
        """Take a decision back: its file stays, and a revocation is recorded beside it."""
        decisions = read_decisions(self._bundles)
        in_force = [record.id for record in decisions.in_force]
        if decision_id in decisions.revoked:
            at = decisions.revoked[decision_id].decided_at
            raise InputError(f"{decision_id}: already revoked on {at:%Y-%m-%d %H:%M} UTC; nothing was recorded")
        if decision_id not in in_force:
            way_on = did_you_mean(decision_id, in_force) or "; list them with `etfarm decisions`"
            raise InputError(f"{decision_id}: not a decision of {self._bundles.location}{way_on}")
        self._write(kind="revocation", reason=reason, revokes=decision_id)
        return f"{decision_id}: revoked; its record stays"

    def _record(
        self, what: str, kind: str, night: date, series: Selector, reason: str, matching: Iterable[SeriesNight]
    ) -> str:
        """Record a decision unless the same one is in force; return the line with the outcome."""
        for same in read_decisions(self._bundles).in_force:
            if (same.kind, same.night, same.series) == (kind, night, series):
                return f"{same.id}: already recorded by {same.decided_by}; nothing was changed"
        record = self._write(kind=kind, reason=reason, night=night, series=series)
        count = len({(each.model, each.precision, each.variant, each.device) for each in matching})
        return (
            f"{record.id}: {what} for {described(series)} ({count} series); "
            f"undo with: etfarm decisions revoke {record.id} --reason TEXT"
        )

    def _write(self, **fields: Any) -> Decision:
        fields["reason"] = plain_line(fields["reason"].strip())
        if not fields["reason"]:
            raise InputError("--reason: the text is empty; state why")
        now = datetime.now(UTC).replace(microsecond=0)
        record = Decision(id=uuid.uuid4().hex[:8], decided_at=now, decided_by=_user(), **fields)
        self._bundles.record_decision(record.file_name, record.text())
        _log.info("decision %s is recorded", record.id)
        store_decisions(self._file, read_decisions(self._bundles))
        publish_of(self._var, self._warehouse)
        return record


def _matching(series: Selector, known: list[SeriesNight]) -> list[SeriesNight]:
    """Return the nights of the selected series; raises InputError if none of those known is selected."""
    for option, value in series.given.items():
        values = sorted({str(getattr(each, option)) for each in known})
        if known and value not in values:
            near = did_you_mean(value, values) or f"; known: {', '.join(values)}"
            raise InputError(f"--{option} {value}: unknown to the warehouse{near}")
    matching = [each for each in known if series.matches(each)]
    if known and not matching:
        raise InputError(f"{described(series)}: no series has all of these; leave an option out")
    return matching


def described(series: Selector) -> str:
    """Return the selected series in words."""
    return ", ".join(f"{option} {value}" for option, value in series.given.items()) or "every series"


def _user() -> str:
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container may run as a user without a name
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"
