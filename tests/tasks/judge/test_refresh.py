"""Judging night by night gives the rows that judging all nights at once gives, in any order of loads."""

import contextlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from datetime import date
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sql import schema
from sql.schema import SqlFile
from sql.warehouse import open_read_only, writing
from tasks.judge import series_states
from tasks.judge.decisions import Decision, Decisions, Selector
from tasks.judge.figures import LATENCY, METRICS, Metric
from tasks.judge.refresh import judge_series
from tasks.judge.states import HistoryNeeded
from tasks.judge.verdicts.night import Night, NightVerdict
from tasks.judge.verdicts.rules import SeriesJudge
from tasks.judge.verdicts.state import SeriesState
from tasks.load.load import load_paths
from tasks.maintain.check import checksum
from tasks.maintain.decisions import store_decisions
from tasks.maintain.forget import forget_sessions
from tests.fixtures.nights import decision, fields_of, night_of
from tests.fixtures.series import SESSIONS, compared, judge_all, night
from tests.fixtures.warehouse import CONVOLUTION, MEAN, BundleMaker, open_for_loads, profile_of

TABLES = (
    "series_verdict", "comparison_result", "series_operator_verdict", "series_cause", "incident_series", "prediction",
)  # fmt: skip
NIGHTS = 6
QP8 = "Fully Connected (NC, QP8, F32, QC8W) GEMM #1"
KAI_SME2 = "kai_kernel_matmul_clamp_f32_qai8dxp1vlx4_qsi8cxp4vlx4_1vlx4vl_sme2_mopa"
LEVELS = st.sampled_from([10.0, 10.1, 9.9, 10.2, 11.0, 12.5, 8.0])
"""Of a night, in ms: near to the usual one, or at one of three others."""
KINDS = st.sampled_from(["usual"] * 8 + ["few", "none", "mixed", "compared", "reset", "excluded", "accepted"])


def nights_of(levels_ms: Sequence[float], kinds: Sequence[str], contents: Sequence[int]) -> list[Night]:
    """Make nights of a series, some of them with few or no sessions, two states, a comparison or a decision."""
    nights = []
    for number, (level_ms, kind, content) in enumerate(zip(levels_ms, kinds, contents, strict=True)):
        sessions = {"few": 4, "none": 0}.get(kind, 8)
        each = replace(night(number, level_ms, sessions), content=f"content {content}")
        if kind == "mixed":
            slow = [level_ms * move * (1.15 if at % 3 == 0 else 1.0) for at, move in enumerate(SESSIONS)]
            each = replace(each, figures=tuple(slow))
        elif kind == "compared":
            each = replace(compared(each, level_ms / 10), comparison=f"comparison {number}")
        decisions: dict[str, dict[str, Any]] = {
            "reset": {"starts_baseline": True, "is_reset": True},
            "excluded": {"is_excluded": True},
            "accepted": {"accepted": ((date.fromisoformat(each.night), date(2026, 10, 1)),)},
        }
        nights.append(replace(each, **decisions.get(kind, {})))
    return nights


def judge_one_by_one(nights: Sequence[Night], metric: Metric) -> list[NightVerdict]:
    """Judge each night from the state after the night before it; from the first night on where that is not enough."""
    verdicts: list[NightVerdict] = []
    state: SeriesState | None = None
    for number, each in enumerate(nights):
        judge = SeriesJudge(metric, state)
        try:
            verdicts.append(judge.judge(each))
        except HistoryNeeded:
            judge = SeriesJudge(metric)
            verdicts = [judge.judge(before) for before in nights[: number + 1]]
        state = SeriesState(**asdict(judge.state()))
    return verdicts


@settings(max_examples=60)
@given(st.lists(st.tuples(LEVELS, KINDS, st.integers(1, 3)), min_size=1, max_size=45), st.sampled_from([*METRICS]))
def test_a_night_is_judged_from_the_state_as_from_all_nights_before_it(
    nights: list[tuple[float, str, int]], metric: str
) -> None:
    made = nights_of(*zip(*nights, strict=True))
    judged = METRICS[metric]
    if judged.is_share:
        made = [replace(each, figures=tuple(figure / 20 for figure in each.figures)) for each in made]
    assert judge_one_by_one(made, judged) == judge_all(made, judged)


def test_a_device_with_two_states_is_judged_from_the_state_alone() -> None:
    kinds = ["usual"] * 2 + ["mixed"] * 20
    nights = nights_of([10.0, 10.1] * 11, kinds, [1] * 22)
    judge = SeriesJudge(LATENCY)
    before = [judge.judge(each) for each in nights[:-1]]
    assert "two states" in before[-1].reason
    assert SeriesJudge(LATENCY, judge.state()).judge(nights[-1]) == judge_all(nights)[-1]


class Farm:
    """Bundles of two models on two devices, in parts that are loaded in any order."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        maker = BundleMaker(folder)
        self.parts: list[list[Path]] = []
        """The last ones are a further part of nights that other parts began."""
        self.rebuilt: dict[int, dict[str, Any]] = {}
        """The rows of a warehouse that loads all at once, by the number of decisions."""
        self.forgotten: list[str] = []
        for day in range(1, NIGHTS + 1):
            is_slow = day > NIGHTS - 2
            pte = {"model__pte_sha256": "p2" if is_slow else "p1", "model__name": "step"}
            self.parts.append(night_of(maker, day, 1.2 if is_slow else 1.0, 5, **pte))
            self.parts.append(self._operators(maker, day, slow=day == NIGHTS))
        self.parts.append(night_of(maker, 2, 1.1, 3, model__name="step", model__pte_sha256="p1", attempt=2))
        for name, factor in (("p1", 1.0), ("p2", 1.2)):
            arm = {"purpose": "same_night", "comparison": f"{7:016x}", "side": "a" if name == "p1" else "b"}
            pte = {"model__pte_sha256": name, "model__name": "step"}
            self.parts.append(night_of(maker, NIGHTS - 1, factor, 5, arm=arm, **pte))
        odd = night_of(maker, 3, 1.5, 5, model__name="operators", model__pte_sha256="p9", sweep=self._noon(3))
        self.parts.append(odd)
        self.forgotten = [path.name for path in odd]

    @staticmethod
    def _noon(day: int) -> dict[str, str]:
        return {"sweep_id": f"noon-2026-11-{day:02}", "name": "noon", "night": f"2026-11-{day:02}"}

    @staticmethod
    def _operators(maker: BundleMaker, day: int, *, slow: bool) -> list[Path]:
        """Write a night of a model on two devices, one of which fails in one night."""
        paths = []
        for number in range(5):
            scatter = 1 + 0.002 * (number % 3)
            times = {CONVOLUTION: round(600_000 * scatter * (1.4 if slow else 1)), MEAN: round(100_000 * scatter)}
            fields = fields_of(day) | {"model__name": "operators", "repetition": number}
            paths.append(maker.session([(sum(times.values()), times)] * 3, **fields))
        failed = {"status": "failed", "reason_code": "runner_failed", "reason": "the runner exited with code 1"}
        ended = failed if day == 4 else {}
        for number in range(5):
            fields = fields_of(day) | {"model__name": "operators", "device__name": "other", "repetition": number}
            paths.append(maker.session([] if ended else [1_000_000 + 1000 * number] * 3, **(fields | ended)))
        return paths

    @contextlib.contextmanager
    def empty_warehouse(self, name: str) -> Iterator[Path]:
        warehouse = BundleMaker(self.folder, self.folder / f"{name}.duckdb").warehouse
        with open_for_loads(warehouse):
            yield warehouse


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Farm:
    return Farm(tmp_path_factory.mktemp("orders"))


DECISIONS = [
    decision(1, night=date(2026, 11, 3), series=Selector(model="operators")),
    decision(2, kind="baseline_reset", night=date(2026, 11, 5), series=Selector(device="host", model="operators")),
    decision(3, kind="acceptance", night=date(2026, 11, 5), series=Selector(model="step")),
    decision(4, kind="revocation", revokes=f"{1:08x}"),
]


def rows_of(warehouse: Path) -> dict[str, Any]:
    with open_read_only(warehouse) as connection:
        return {table: checksum(connection, f"SELECT * FROM {table}") for table in TABLES}


def rebuilt_rows(farm: Farm, decisions: Sequence[Decision]) -> dict[str, Any]:
    """Return the rows of a warehouse that loads everything at once."""
    if len(decisions) in farm.rebuilt:
        return farm.rebuilt[len(decisions)]
    with farm.empty_warehouse("rebuilt") as warehouse:
        store_decisions(warehouse, Decisions(tuple(decisions)))
        load_paths([path for part in farm.parts for path in part], warehouse, farm.forgotten)
    return farm.rebuilt.setdefault(len(decisions), rows_of(warehouse))


@pytest.mark.thorough
@pytest.mark.long
@settings(max_examples=3)
@given(st.randoms(use_true_random=False), st.integers(0, len(DECISIONS)))
def test_any_order_of_loads_and_decisions_gives_the_rows_of_a_rebuild(
    farm: Farm, chance: random.Random, count: int
) -> None:
    # given parts of nights, of which two or three are loaded at a time, and decisions in between
    parts = chance.sample(farm.parts, len(farm.parts))
    steps: list[Any] = []
    while parts:
        size = chance.randint(1, 6)
        steps.append([path for part in parts[:size] for path in part])
        parts = parts[size:]
    for number in range(count):
        steps.insert(chance.randint(1, len(steps)), Decisions(tuple(DECISIONS[: number + 1])))
    made = [step for step in steps if isinstance(step, Decisions)]
    ordered = iter(sorted(made, key=lambda each: len(each.records)))
    with farm.empty_warehouse("grown") as warehouse:
        for step in steps:
            if isinstance(step, Decisions):
                store_decisions(warehouse, next(ordered))
            else:
                load_paths(step, warehouse)
        # when one sweep is forgotten
        forget_sessions(warehouse, farm.forgotten)
    # then the rows are those of a rebuild
    assert rows_of(warehouse) == rebuilt_rows(farm, DECISIONS[:count])


def test_a_load_that_ends_before_it_judges_leaves_that_to_the_next_one(farm: Farm) -> None:
    with farm.empty_warehouse("killed") as warehouse:
        for number, part in enumerate(farm.parts[:-2]):
            load_paths(part, warehouse, judges=number % 5 == 3)
        load_paths([path for part in farm.parts for path in part], warehouse, farm.forgotten)
    assert rows_of(warehouse) == rebuilt_rows(farm, [])


def test_a_profile_that_is_loaded_or_forgotten_later_decides_the_coverage_of_its_night(tmp_path: Path) -> None:
    # given an operator whose name is the same with and without SME2
    maker = BundleMaker(tmp_path)
    fields = fields_of(1) | {"variant": "sme2_on"}
    timed = [maker.session([(1_000_000, {QP8: 1_000_000})] * 3, repetition=number, **fields) for number in range(5)]
    profile = maker.session([1_000_000], mode="profile", files=profile_of(**{KAI_SME2: 80}), **fields)
    coverage = "SELECT value FROM series_verdict WHERE metric = 'SME coverage'"
    maker.load(*timed)
    assert maker.ask(coverage) == []
    maker.load(profile)
    assert maker.ask(coverage) == [(1.0,)]
    forget_sessions(maker.warehouse, [profile.name])
    assert maker.ask(coverage) == []


def test_one_more_night_judges_that_night_only(farm: Farm) -> None:
    before, of_night = farm.parts[: 2 * NIGHTS - 2], farm.parts[2 * NIGHTS - 2 : 2 * NIGHTS]
    with farm.empty_warehouse("grown") as warehouse:
        load_paths([path for part in before for path in part], warehouse)
        with patch.object(SeriesJudge, "judge", autospec=True, side_effect=SeriesJudge.judge) as judge:
            load_paths([path for part in of_night for path in part], warehouse)
    assert {call.args[1].night for call in judge.call_args_list} == {f"2026-11-{NIGHTS:02}"}


@pytest.mark.parametrize("name", ["_content", "_session", "sme2_coverage", "_named_node"])
def test_a_macro_or_view_behind_a_figure_is_part_of_the_rules(name: str) -> None:
    before = series_states.rule_sha256.__wrapped__()

    def changed() -> tuple[SqlFile, ...]:
        return tuple(replace(each, text=f"{each.text} other") if each.name == name else each for each in files)

    source = "macros" if name == "_content" else "views"
    files = getattr(schema, source)()
    with patch.object(series_states, source, changed):
        assert series_states.rule_sha256.__wrapped__() != before


def test_another_version_of_the_rules_judges_all_nights_again(farm: Farm) -> None:
    with farm.empty_warehouse("grown") as warehouse:
        load_paths([path for part in farm.parts for path in part], warehouse)
    before = rows_of(warehouse)
    with writing(warehouse) as connection:
        connection.execute("UPDATE series_verdict SET reason = 'of old rules'")
        judge_series(connection)
    assert rows_of(warehouse) != before
    with writing(warehouse) as connection, patch.object(series_states, "rule_sha256", return_value="other"):
        judge_series(connection)
    assert rows_of(warehouse) == before
