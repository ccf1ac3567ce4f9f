"""Whether a series changed from night to night: each night is judged with the nights before it only."""

from dataclasses import replace

import numpy as np

from tasks.bundle.robust_statistics import interquartile_mean
from tasks.judge.figures import LATENCY, Metric
from tasks.judge.states import (
    REMEMBERED,
    HistoryNeeded,
    Positions,
    assign_states,
    cluster_sessions,
    describe_assignment,
    describe_open_state,
    recognize_states,
)
from tasks.judge.verdicts.night import Night, NightVerdict, why_incomparable
from tasks.judge.verdicts.series import Series
from tasks.judge.verdicts.state import SeriesState, keep_state, restore_series


class SeriesJudge:
    """Judges the nights of one series on one device in the order of their dates, from `state` on if there is one."""

    def __init__(self, metric: Metric, state: SeriesState | None = None) -> None:
        self._metric = metric
        self._series = _SeriesWithinStates(metric, state)
        self._has_baseline = state is not None and state.has_baseline

    def judge(self, night: Night) -> NightVerdict:
        """Return the verdict on the next night; HistoryNeeded if what was kept does not fit its states."""
        before = self._series.judge(night) if night.is_reset else None
        if night.starts_baseline:
            self._series = _SeriesWithinStates(self._metric)
        verdict = self._series.judge(night)
        if verdict.verdict == "new" and self._has_baseline:
            verdict = replace(verdict, verdict="insufficient data")
            if before is not None and before.since == night.night:
                why = f"{verdict.reason}; a change that begins in it is accepted"
                verdict = replace(before, verdict=verdict.verdict, baseline_nights=0, reason=why)
        self._has_baseline |= verdict.verdict == "new"
        return verdict

    def state(self) -> SeriesState:
        """Return what later nights need of the nights up to now."""
        within = self._series
        return keep_state(within.series, within.states, within.clusters, has_baseline=self._has_baseline)


class _SeriesWithinStates:
    """A series on a device. Once its sessions show two states, its latency is judged within them."""

    def __init__(self, metric: Metric, state: SeriesState | None = None) -> None:
        self.metric = metric
        self.series = restore_series(state, metric) if state else Series(metric)
        self.states = state.states if state else None
        self.past: list[Night] | None = None if state else []
        """The last nights that can be compared, None if they were not kept; and (below) the clusters of their
        sessions."""
        self.clusters = state.clusters if state else []

    def judge(self, night: Night) -> NightVerdict:
        if self.metric is not LATENCY or why_incomparable(night, self.metric) is not None:
            return self.series.judge(night)
        positions = np.log(night.figures)
        self.clusters = [*self.clusters, cluster_sessions(positions)][-REMEMBERED:]
        states = recognize_states(self.clusters, self.states)
        if states != self.states:
            if self.past is None:
                raise HistoryNeeded
            # Earlier verdicts stay; the level and the step are computed again within the states.
            self.series, self.states = Series(self.metric), states
            for earlier in self.past:
                self._judge(earlier, np.log(earlier.figures))
        if self.past is not None:
            self.past = [*self.past, night][-REMEMBERED:]
        return self._judge(night, positions)

    def _judge(self, night: Night, positions: Positions) -> NightVerdict:
        """Judge a night that can be compared, as if all its sessions were in the fast state."""
        if self.states is None:
            return self.series.judge(night)
        level, content = self.series.newest_level_and_content
        assigned = assign_states(
            positions, self.states, level, is_same_content=bool(content) and content == night.content
        )
        if assigned is None:
            return NightVerdict(night.night, "insufficient data", describe_open_state(positions, self.states, level))
        verdict = self.series.judge(replace(night, figures=tuple(np.exp(assigned.positions))))
        before = interquartile_mean(night.figures) / verdict.ratio if verdict.ratio else None
        return replace(
            verdict,
            baseline_value=before,
            reason=f"{verdict.reason}; {describe_assignment(assigned, self.states, night.frequencies_mhz)}",
        )
