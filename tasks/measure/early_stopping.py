"""Early stopping: sessions that a sweep can leave out because the times are already precise enough.

The cells of one model, precision and number of threads end together, so that all its variants have as many sessions as
each other, in the order ABBA.
"""

import math
from collections.abc import Container, Iterable, Sequence

from tasks.bundle.cell import Cell
from tasks.bundle.record import SessionRecord
from tasks.bundle.robust_statistics import ALERT_SESSIONS, interquartile_mean, median_interval
from tasks.measure.plan import PlannedSession, planned_session

_Group = tuple[str, str, int]
"""Model, precision and threads: cells that end together."""


def session_time_ns(record: SessionRecord) -> float | None:
    """Return the interquartile mean of a session's executions; None if it did not succeed, or states no times."""
    if record.status != "succeeded" or record.stats is None or record.stats.execution_ns is None:
        return None
    measured = record.stats.execution_ns[record.warmup_executions :]
    return interquartile_mean(measured) if measured else None


class EarlyStopping:
    """Decides which planned sessions of one device are needed, by what was measured so far.

    A group of cells stops once, after ALERT_SESSIONS complete rounds or more, `median_interval_percent` of each cell is
    below `interval_percent` (None: every planned session is needed). The answer depends on the records only, not on
    when they were made: a sweep that was killed and started again ends at the same session.

    Stopping by the width hardly harms `compare`: of cells whose true ratio is 1.05, and that ended at 8 to 40 sessions
    (CV 2 %; normal, skewed, 5 % of sessions hot, two modes), 93.4 to 95.8 % of its 95 % intervals contain that ratio.
    """

    def __init__(
        self,
        planned: Iterable[PlannedSession],
        records: Iterable[SessionRecord],
        interval_percent: float | None,
        forgotten: Container[str] = (),
    ) -> None:
        self._interval_percent = interval_percent
        self._figures: dict[_Group, dict[Cell, dict[int, float]]] = {}
        self._keys: set[str] = set()
        if interval_percent is not None:
            for session in planned:
                # Neither the discarded session nor one for kernels or a comparison is in a round.
                if session.cell.mode != "timing" or session.cell.arm is not None or session.repetition < 0:
                    continue
                self._figures.setdefault(_group(session), {}).setdefault(session.cell, {})
                self._keys.add(session.key)
            for record in records:
                if record.session_id not in forgotten:
                    self.add(record)

    def add(self, record: SessionRecord) -> None:
        """Count the interquartile mean of an ended session's executions; one without a time above 0 changes nothing."""
        session, figure = planned_session(record), session_time_ns(record)
        if session.key in self._keys and figure:
            self._figures[_group(session)][session.cell][session.repetition] = figure

    def needs(self, session: PlannedSession) -> bool:
        """Return whether a session must be measured; one that failed before, or is in no round, always."""
        if self._interval_percent is None or session.attempt > 1 or session.key not in self._keys:
            return True
        # Only rounds before the session's count, so that all sessions of a round get the same answer.
        cells = self._figures[_group(session)].values()
        before = [
            [figure for repetition, figure in figures.items() if repetition < session.repetition] for figures in cells
        ]
        limit = self._interval_percent
        return any(len(each) < ALERT_SESSIONS for each in before) or any(
            median_interval_percent(each) >= limit for each in before
        )

    def ends_group(self, session: PlannedSession, left: Iterable[PlannedSession]) -> bool:
        """Return whether the result of `session` makes some of the sessions left superfluous.

        It decides about its group alone, of which the first session left is superfluous, or none.
        """
        if self._interval_percent is None:
            return False
        group = _group(session)
        first = next((each for each in left if _group(each) == group and each.key in self._keys), None)
        return first is not None and not self.needs(first)

    def needed(self, left: Sequence[PlannedSession]) -> list[PlannedSession]:
        """Return the sessions left that may be needed, in their order.

        Of each group those from the first that is needed on, since its result decides about the later ones; and those
        that are in no round.
        """
        is_open: set[_Group] = set()
        needed = []
        for session in left:
            group = _group(session)
            if session.key not in self._keys:
                needed.append(session)
            elif group in is_open or self.needs(session):
                is_open.add(group)
                needed.append(session)
        return needed

    def certain(self, left: Sequence[PlannedSession]) -> list[PlannedSession]:
        """Return those of the sessions left, in their order, that are needed, no matter what the others measure.

        They are in no round, failed before, or are in the first ALERT_SESSIONS rounds or the next one of their group.
        """
        next_repetition: dict[_Group, int] = {}
        for session in left:
            if session.key in self._keys:
                next_repetition[_group(session)] = min(
                    session.repetition, next_repetition.get(_group(session), session.repetition)
                )
        return [
            session
            for session in left
            if session.key not in self._keys
            or session.attempt > 1
            or session.repetition < ALERT_SESSIONS
            or (session.repetition == next_repetition[_group(session)] and self.needs(session))
        ]


def median_interval_percent(figures: Sequence[float]) -> float:
    """Return the width of the 95 % interval of the median, in percent of its lower end; infinite if there is none."""
    bounds = median_interval(figures)
    return 100 * (bounds[1] / bounds[0] - 1) if bounds else math.inf


def _group(session: PlannedSession) -> _Group:
    return session.cell.model, session.cell.precision, session.cell.threads
