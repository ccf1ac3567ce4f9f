"""What the next night needs of the nights before it, as a row of the table `series_state` keeps it."""

import json
from dataclasses import asdict, dataclass
from itertools import repeat
from typing import Any

import numpy as np

from tasks.judge.comparison import SideComparison
from tasks.judge.figures import Metric
from tasks.judge.states import Clusters, States
from tasks.judge.verdicts.series import Series
from tasks.judge.verdicts.shift import BASELINE_NIGHTS, Point
from tasks.judge.verdicts.step import Confirmation, Step

_NO_POSITIONS = np.empty(0)


@dataclass(frozen=True)
class SeriesState:
    """A series on a device after a night; fields are columns of `series_state`, which describes them."""

    has_baseline: bool
    min_level: int
    newest_content: str
    history_nights: list[str]
    history_positions: list[float]
    level_nights: list[str]
    level_positions: list[float]
    level_contents: list[str]
    former_deviations: list[float]
    moves: list[float]
    steps: str
    cluster_offsets: list[float | None]
    cluster_scatters: list[float | None]
    are_clusters_clear: list[bool | None]
    states_offset: float | None
    states_slow_share: float | None

    @property
    def states(self) -> States | None:
        if self.states_offset is None or self.states_slow_share is None:
            return None
        return States(self.states_offset, self.states_slow_share)

    @property
    def clusters(self) -> list[Clusters | None]:
        """Those of the last nights, without positions."""
        figures = zip(self.cluster_offsets, self.cluster_scatters, self.are_clusters_clear, strict=True)
        return [
            None if offset is None or scatter is None else Clusters(_NO_POSITIONS, offset, scatter, bool(is_clear))
            for offset, scatter, is_clear in figures
        ]


def keep_state(
    series: Series, states: States | None, clusters: list[Clusters | None], *, has_baseline: bool
) -> SeriesState:
    """Return what is kept of a series; of its level only the nights that a baseline may have."""
    level = series.level[-BASELINE_NIGHTS:]
    return SeriesState(
        has_baseline=has_baseline,
        min_level=series.min_level,
        newest_content=series.newest_content,
        history_nights=[night for night, _ in series.history],
        history_positions=[position for _, position in series.history],
        level_nights=[point.night for point in level],
        level_positions=[point.position for point in level],
        level_contents=[point.content for point in level],
        former_deviations=series.former_deviations,
        moves=series.moves,
        steps=json.dumps([_step_record(series.step), _step_record(series.second)]),
        cluster_offsets=[each.offset if each else None for each in clusters],
        cluster_scatters=[each.scatter if each else None for each in clusters],
        are_clusters_clear=[each.is_clear if each else None for each in clusters],
        states_offset=states.offset if states else None,
        states_slow_share=states.slow_share if states else None,
    )


def restore_series(state: SeriesState, metric: Metric) -> Series:
    series = Series(metric)
    series.min_level, series.newest_content = state.min_level, state.newest_content
    series.history = list(zip(state.history_nights, state.history_positions, strict=True))
    # Nothing else of a night of the past is needed.
    series.level = list(
        map(Point, state.level_nights, state.level_contents, repeat(0), state.level_positions, repeat(0.0))
    )
    series.former_deviations, series.moves = state.former_deviations, state.moves
    series.step, series.second = (_restore_step(record) for record in json.loads(state.steps))
    return series


def _step_record(step: Step) -> dict[str, Any]:
    if not step.points:
        return {"quiet_nights": step.quiet_nights}
    points = [(point.night, point.content, point.position) for point in step.points]
    confirmation = step.confirmation and asdict(step.confirmation)
    return {**vars(step), "points": points, "confirmation": confirmation}


def _restore_step(record: dict[str, Any]) -> Step:
    confirmation = record.pop("confirmation", None)
    if confirmation:
        confirmation = Confirmation(**{**confirmation, "comparison": SideComparison(**confirmation["comparison"])})
    points = [Point(night, content, 0, position, 0.0) for night, content, position in record.pop("points", [])]
    return Step(**record, points=points, confirmation=confirmation)
