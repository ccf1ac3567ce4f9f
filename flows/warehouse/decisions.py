"""Reset a baseline, exclude a night, write a note, revoke one: recorded beside the bundles, then in the warehouse."""

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
from devices.suggest import did_you_mean
from devices.untrusted import sanitize_line
from flows.warehouse.publish import publish_of
from tasks.bundle.model_names import model_named, shown_names
from tasks.judge.decisions import Decision, Selector, SeriesNight, known_series, read_decisions
from tasks.maintain.decisions import store_decisions
from tasks.measure.night import parse_night
from tasks.store.store import BundleStore
from tasks.store.var import Var

_MOST_LETTERS = 500
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
        series, matching = _matching(series, known_series(self._file))
        nights = sorted({each.night for each in matching})
        today = date.today()
        first = parse_night(night) if night else max(nights, default=today)
        if not min(nights, default=first) <= first <= max([*nights, today]):
            oldest = f"from {nights[0]} to {today}" if nights else f"up to {today}"
            raise InputError(f"--night {first}: outside the nights of the matching series; use one {oldest}")
        return self._record(f"baseline reset from {first}", "baseline_reset", first, series, reason, matching)

    def exclude_night(self, night: str, series: Selector, reason: str) -> str:
        """Never compare this night of these series, and leave it out of every baseline."""
        series, matching = _matching(series, known_series(self._file))
        excluded = parse_night(night)
        of_night = _of_night(excluded, matching)
        return self._record(f"{excluded} excluded", "night_exclusion", excluded, series, reason, of_night)

    def note(self, text: str, night: str | None, series: Selector) -> str:
        """Keep a text with these series, or with one night of them; verdicts stay as they are."""
        series, matching = _matching(series, known_series(self._file))
        if night is None:
            return self._record("note", "note", None, series, text, matching)
        noted = parse_night(night)
        return self._record(f"note on {noted}", "note", noted, series, text, _of_night(noted, matching))

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
        self._write(kind="revocation", reason=_checked("--reason", reason), revokes=decision_id)
        return f"{decision_id}: revoked; its record stays"

    def _record(
        self, what: str, kind: str, night: date | None, series: Selector, reason: str, matching: Iterable[SeriesNight]
    ) -> str:
        """Record a decision unless the same one is in force; return the line with the outcome."""
        reason = _checked("TEXT" if kind == "note" else "--reason", reason)
        for same in read_decisions(self._bundles).in_force:
            is_same = (same.kind, same.night, same.series) == (kind, night, series)
            if is_same and (kind != "note" or same.reason == reason):
                return f"{same.id}: already recorded by {same.decided_by}; nothing was changed"
        record = self._write(kind=kind, reason=reason, night=night, series=series)
        count = len({(each.model, each.precision, each.variant, each.device) for each in matching})
        return (
            f"{record.id}: {what} for {described(series)} ({count} series); "
            f"undo with: etfarm decisions revoke {record.id} --reason TEXT"
        )

    def _write(self, **fields: Any) -> Decision:
        now = datetime.now(UTC).replace(microsecond=0)
        record = Decision(id=uuid.uuid4().hex[:8], decided_at=now, decided_by=_user(), **fields)
        self._bundles.record_decision(record.file_name, record.text())
        _log.info("decision %s is recorded", record.id)
        store_decisions(self._file, read_decisions(self._bundles))
        publish_of(self._var, self._warehouse)
        return record


def _checked(option: str, text: str) -> str:
    """Return a text of the user without what could act on a terminal; raises InputError unless it is one short line."""
    text = text.strip()
    if not text:
        raise InputError(f"{option}: the text is empty; state why")
    if len(text.splitlines()) > 1:
        raise InputError(f"{option}: the text has several lines; write one")
    if len(text) > _MOST_LETTERS:
        raise InputError(f"{option}: {len(text)} characters; write at most {_MOST_LETTERS}")
    return sanitize_line(text)


def _of_night(night: date, matching: list[SeriesNight]) -> list[SeriesNight]:
    """Return what matches in one night; raises InputError if series match, but none has sessions of it."""
    of_night = [each for each in matching if each.night == night]
    if matching and not of_night:
        nights = sorted({each.night.isoformat() for each in matching})
        raise InputError(
            f"{night}: the matching series have no sessions of that night"
            f"{did_you_mean(night.isoformat(), nights) or f'; their newest night is {nights[-1]}'}"
        )
    return of_night


def _matching(series: Selector, known: list[SeriesNight]) -> tuple[Selector, list[SeriesNight]]:
    """Return what selects the series, its model by the name in the warehouse, and their nights; raises InputError."""
    if series.model and (model := model_named(series.model, shown_names(each.model for each in known))):
        series = series.model_copy(update={"model": model})
    for option, value in series.given.items():
        values = sorted({str(getattr(each, option)) for each in known})
        if known and value not in values:
            near = did_you_mean(value, values) or f"; known: {', '.join(values)}"
            raise InputError(f"--{option} {value}: unknown to the warehouse{near}")
    matching = [each for each in known if series.matches(each)]
    if known and not matching:
        raise InputError(f"{described(series)}: no series has all of these; leave an option out")
    return series, matching


def described(series: Selector) -> str:
    """Return the selected series in words."""
    return ", ".join(f"{option} {value}" for option, value in series.given.items()) or "every series"


def _user() -> str:
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container may run as a user without a name
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"
