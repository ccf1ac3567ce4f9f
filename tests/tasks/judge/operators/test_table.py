"""Verdicts on operators in the warehouse, and the cause that they name beside the verdict on a latency."""

import itertools
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from sql.warehouse import writing
from tasks.etdump.delegates import DELEGATES, Times
from tasks.judge.operators.rules import OperatorVerdict, OperatorVerdicts
from tasks.judge.operators.table import describe_hidden_changes
from tasks.judge.refresh import judge_series
from tests.fixtures.etdump_builder import Profile, Run, build_etdump, delegated, method
from tests.fixtures.nights import fields_of
from tests.fixtures.warehouse import CONVOLUTION, LINEAR, MEAN, TRANSPOSE, BundleMaker

USUAL_NS = {CONVOLUTION: 6_000_000, LINEAR: 2_000_000, TRANSPOSE: 1_000_000, MEAN: 1_000_000}
NONE: Mapping[str, float] = {}
CONVOLUTION_NAME = "Convolution (NHWC, F32) IGEMM"
COST = b'{"estimatedCost": 0.4}'
STARTS = itertools.count(1_000_000_000_000, 100_000_000)
SINCE = "compared with 2026-11-08: changes of the device since then are included"


def night(
    maker: BundleMaker,
    day: int,
    factors: Mapping[str, float] = NONE,
    shared: float = 1,
    model: str = "toy",
    pte: str = "p1",
    **changes: Any,
) -> None:
    """Write the sessions of one night: they differ by up to 4 % in frequency, and by 0.2 % in each operator."""
    for number in range(8 if day > 7 else 5):  # what confirms a change and what it is compared with
        common = shared * (1 + 0.02 * (0, 1, -1, 2, -2, 1, -1, 0)[number])
        own = [1 + 0.002 * ((number * index) % 3 - 1) * (index > 0) for index in range(len(USUAL_NS))]
        usual = zip(USUAL_NS.items(), own, strict=True)
        times_ns = {name: round(ns * common * factors.get(name, 1.0) * moved) for (name, ns), moved in usual}
        run = (sum(times_ns.values()) + 10_000, times_ns)
        names: dict[str, Any] = {"model__name": model, "model__pte_sha256": pte}
        maker.session([run] * 3, repetition=number, **names, **fields_of(day), **changes)


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> BundleMaker:
    """Three models with five nights without a change and two with one; of one, the device is slower instead."""
    maker = BundleMaker(tmp_path_factory.mktemp("operators"))
    changes = {"slower": ({CONVOLUTION: 1.38}, 1, "p2"), "moved": (NONE, 1.09, "p1"), "small": ({MEAN: 1.06}, 1, "p2")}
    for model, (factors, shared, pte) in changes.items():
        for day in range(4, 9):
            night(maker, day, model=model, pte=f"{model} p1")
        for day in (9, 10):
            night(maker, day, factors, shared, model, f"{model} {pte}")
    maker.load()
    return maker


@pytest.mark.thorough
def test_verdicts_do_not_depend_on_the_order_of_loads(maker: BundleMaker, tmp_path: Path) -> None:
    for day, factor in ((7, 1.0), (8, 1.0), (9, 1.38), (10, 1.38)):
        night(maker, day, {CONVOLUTION: factor})
    # when they are loaded one by one from the newest to the oldest, and all at once
    for sweep in sorted(maker.bundles.iterdir(), reverse=True):
        maker.load(sweep)
    other = BundleMaker(tmp_path / "other")
    other.load(maker.bundles)
    for query in ("SELECT * EXCLUDE (reason) FROM verdict ORDER BY ALL", "FROM operator_verdict ORDER BY ALL"):
        assert len(maker.ask(query)) >= 4
        assert maker.ask(query) == other.ask(query)


def causes(farm: BundleMaker, model: str) -> dict[date, tuple[str, str | None]]:
    rows = farm.ask(f"SELECT night, verdict, cause FROM verdict WHERE night > '2026-11-07' AND model = '{model}'")
    return {night: (verdict, cause) for night, verdict, cause in rows}


def changed(farm: BundleMaker, model: str) -> list[tuple[Any, ...]]:
    columns = "night::VARCHAR, operator, verdict, round(ratio, 2)"
    of_model = f"model = '{model}' AND verdict <> 'no change'"
    return farm.ask(f"SELECT {columns} FROM operator_verdict WHERE {of_model} ORDER BY night")


def test_a_regression_names_the_operator_that_caused_it(farm: BundleMaker) -> None:
    # given two nights with a convolution that is 38 % slower, then it is named beside each verdict, it alone
    cause = f"`{CONVOLUTION_NAME}` +2.280 ms (+38.0 %), {SINCE}"
    verdicts = {8: ("no change", None), 9: ("suspected", cause), 10: ("regression", cause)}
    assert causes(farm, "slower") == {date(2026, 11, day): each for day, each in verdicts.items()}
    names = [(f"2026-11-{day:02}", CONVOLUTION_NAME, verdicts[day][0], 1.38) for day in (9, 10)]
    assert changed(farm, "slower") == names
    assert farm.ask(
        "SELECT round(baseline_ms), round(time_ms, 1), round(part_percent), round(common_factor, 2), low < 1.38,"
        " high > 1.38, total_verdict, is_newest FROM operator_verdict"
        f" WHERE operator = '{CONVOLUTION_NAME}' AND model = 'slower' ORDER BY night DESC LIMIT 1"
    ) == [(6.0, 8.3, 99.0, 1.0, True, True, "regression", True)]


def test_where_a_comparison_decided_its_sessions_are_the_base_of_change_and_cause(
    maker: BundleMaker,
) -> None:
    # given a slower convolution in a night in which the device is slower, too, and a comparison in that night
    for day in range(4, 9):
        night(maker, day)
    for day in (9, 10):
        night(maker, day, {CONVOLUTION: 1.38}, 1.1, pte="p2")
    for side, factors in (("a", NONE), ("b", {CONVOLUTION: 1.38})):
        arm = {"purpose": "same_night", "comparison": "c" * 16, "side": side}
        night(maker, 9, factors, 1.05, pte={"a": "p1", "b": "p2"}[side], arm=arm)
    maker.load()
    # then it is decided once, and cause, change and incident have one base
    cause = f"`{CONVOLUTION_NAME}` +2.394 ms (+38.0 %)"
    assert causes(maker, "toy") == {
        date(2026, 11, 8): ("no change", None),
        **{date(2026, 11, day): ("regression", cause) for day in (9, 10)},
    }
    for table in ("_shown_verdict WHERE night >= '2026-11-09' AND metric = 'latency'", "incident"):
        changes = maker.ask(f"SELECT round((value - baseline_value) / 1e6, 3) FROM {table}")
        assert set(changes) == {(2.394,)}


def test_the_share_of_an_operator_is_that_of_the_time_of_the_night() -> None:
    # given an operator that got faster, and others below 1 %, which have a third of the time
    faster = OperatorVerdict("operator", "mean", "Other", "improvement", 0.7, 0.6, 0.8, 0.35e6, 0.5e6, None)
    judged = OperatorVerdicts((faster,), common=1.0, common_percent=None, change=0.0, total_ns=1e6, votes=3)
    assert describe_hidden_changes(judged) == "`mean` -30.0 %, 35 % of the time"


def test_a_cause_is_that_of_the_content_that_the_change_began_with(maker: BundleMaker) -> None:
    # given a slower convolution, and in the next night another program with a slower mean
    for day in range(4, 9):
        night(maker, day)
    night(maker, 9, {CONVOLUTION: 1.38}, pte="p2")
    night(maker, 10, {CONVOLUTION: 1.38, MEAN: 1.2}, pte="p3")
    maker.load()
    cause = f"`{CONVOLUTION_NAME}` +2.280 ms (+38.0 %), {SINCE}"
    assert causes(maker, "toy")[date(2026, 11, 10)] == ("regression", cause)


def test_a_device_that_got_slower_is_no_cause_in_the_model(farm: BundleMaker) -> None:
    assert causes(farm, "moved")[date(2026, 11, 10)] == ("device slower", None)
    assert changed(farm, "moved") == []


def test_a_small_operator_that_got_slower_is_named_where_the_latency_hides_it(farm: BundleMaker) -> None:
    # given a portable operator with a tenth of the time that takes 6 % longer
    assert causes(farm, "small")[date(2026, 11, 10)] == ("no change", "`mean` +5.8 %, 11 % of the time")


def test_without_the_operators_of_the_last_good_night_operators_are_judged_and_no_cause_is_named(
    maker: BundleMaker,
) -> None:
    # given a slower convolution, and a last good night whose events were removed
    for day in range(4, 11):
        night(maker, day, {CONVOLUTION: 1.38} if day > 8 else NONE, pte="p2" if day > 8 else "p1")
    maker.load()
    asked = "SELECT count(*) > 0, any_value(cause) FROM operator_verdict JOIN verdict USING (series_id, device, night)"
    [(is_judged, cause)] = maker.ask(f"{asked} WHERE night = '2026-11-10'")
    assert (is_judged, CONVOLUTION_NAME in cause) == (True, True)
    with writing(maker.warehouse) as connection:
        of_night = "SELECT session_key FROM _session WHERE night = '2026-11-08'"
        connection.execute(f"DELETE FROM session_node WHERE session_key IN ({of_night})")
        connection.execute("DELETE FROM series_verdict")
        judge_series(connection)
    assert maker.ask(f"{asked} WHERE night = '2026-11-10'") == [(True, None)]


def test_operators_whose_times_are_estimates_are_judged_as_their_sum(maker: BundleMaker) -> None:
    # given calls of Core ML whose time stays, while its cost model divides it otherwise on the last two nights
    for day, share in ((6, 0.7), (7, 0.7), (8, 0.7), (9, 0.2), (10, 0.2)):
        for number in range(6):
            runs, end = [], next(STARTS)
            for _ in range(4):
                start, call_ns = end, 900_000 + 1_000 * number
                middle, stop, end = start + round(share * call_ns), start + call_ns, start + call_ns + 100_000
                parts = [delegated("conv_1", start, middle, 0, COST), delegated("relu_2", middle, stop, 0, COST)]
                runs.append(Run([*parts, Profile("DELEGATE_CALL", start, stop, instruction=0), method(start, end)]))
            files = {"model.etdump": build_etdump(runs)}
            maker.session([end - start] * 3, files=files, repetition=number, **fields_of(day))
    maker.load()
    # then single operators keep their mark and have no verdict
    delegated_parts = "SELECT DISTINCT operator, category FROM operator_time WHERE kind = 'delegated' ORDER BY operator"
    assert maker.ask(delegated_parts) == [("conv_1 [estimate]", "Other"), ("relu_2 [estimate]", "Other")]
    assert maker.ask("SELECT DISTINCT operator, verdict FROM operator_verdict ORDER BY operator") == [
        ("Core ML delegate", "no change"), ("Unattributed", "no change"),
    ]  # fmt: skip
    # nor do they have an interval or a roof
    columns = "operator, kind, bound, macs, low_ms IS NOT NULL"
    assert maker.ask(f"SELECT DISTINCT {columns} FROM operator_roofline ORDER BY ALL") == [
        ("conv_1 [estimate]", "delegated", "unknown", None, False),
        ("relu_2 [estimate]", "delegated", "unknown", None, False),
    ]  # fmt: skip
    # nor are they operators that lack a category
    assert maker.ask("FROM unknown_operator") == []
    # and no other delegate reports estimates
    assert [each.name for each in DELEGATES.values() if each.times is Times.ESTIMATE] == ["Core ML"]
