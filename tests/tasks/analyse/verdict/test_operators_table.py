"""Verdicts on operators in the warehouse, and the cause that they name beside the verdict on a latency."""

from collections.abc import Mapping
from datetime import date
from pathlib import Path

import pytest

from sql.warehouse import writing
from tasks.keep.check import check_aggregates
from tasks.keep.forget import forget_sessions
from tests.fixtures.warehouse import CONVOLUTION, LINEAR, MEAN, TRANSPOSE, BundleMaker

USUAL_NS = {CONVOLUTION: 6_000_000, LINEAR: 2_000_000, TRANSPOSE: 1_000_000, MEAN: 1_000_000}
CONVOLUTION_NAME = "Convolution (NHWC, F32) IGEMM"
CHANGED = "SELECT night::VARCHAR, operator, verdict, round(ratio, 2) FROM operator_verdict WHERE verdict <> 'no change'"


@pytest.fixture
def maker(tmp_path: Path) -> BundleMaker:
    return BundleMaker(tmp_path)


def night(
    maker: BundleMaker,
    day: int,
    factors: Mapping[str, float] | None = None,
    *,
    shared: float = 1.0,
    sessions: int = 8,
    usual_ns: Mapping[str, int] = USUAL_NS,
) -> list[Path]:
    """Write the sessions of one night: they differ by up to 4 % in frequency, and by 0.2 % in each operator."""
    folders = []
    for number in range(sessions):
        common = shared * (1 + 0.02 * (number % 5 - 2))
        times_ns = {
            name: round(ns * common * (factors or {}).get(name, 1.0) * (1 + 0.002 * ((number * index) % 3 - 1)))
            for index, (name, ns) in enumerate(usual_ns.items())
        }
        folders.append(
            maker.session(
                [(sum(times_ns.values()) + 10_000, times_ns)] * 3,
                sweep={"sweep_id": f"nightly-2026-11-{day:02}", "name": "nightly", "night": f"2026-11-{day:02}"},
                started_at=f"2026-11-{day:02}T01:00:00+00:00",
                ended_at=f"2026-11-{day:02}T01:00:09+00:00",
                index=number,
            )
        )
    return folders


def week(maker: BundleMaker) -> None:
    for day in range(1, 9):
        night(maker, day)


def causes(maker: BundleMaker) -> dict[date, tuple[str, str | None]]:
    return {
        row[0]: row[1:] for row in maker.ask("SELECT night, verdict, cause FROM verdict WHERE night > '2026-11-07'")
    }


def test_a_regression_names_the_operator_that_caused_it(maker: BundleMaker) -> None:
    # given a week without a change, then two nights with a convolution that is 38 % slower
    week(maker)
    for day in (9, 10):
        night(maker, day, {CONVOLUTION: 1.38})
    maker.load()
    # then the operator is named beside each verdict, and it alone changed
    cause = f"`{CONVOLUTION_NAME}` +38.0 %, 100 % of the change"
    assert causes(maker) == {
        date(2026, 11, 8): ("no change", None),
        date(2026, 11, 9): ("suspected", cause),
        date(2026, 11, 10): ("regression", cause),
    }
    assert maker.ask(f"{CHANGED} ORDER BY night") == [
        ("2026-11-09", CONVOLUTION_NAME, "suspected", 1.38),
        ("2026-11-10", CONVOLUTION_NAME, "regression", 1.38),
    ]
    assert maker.ask(
        "SELECT round(baseline_ms), round(time_ms, 1), round(part_percent), round(common_factor, 2), low < 1.38,"
        f" high > 1.38, total_verdict, is_newest FROM operator_verdict WHERE operator = '{CONVOLUTION_NAME}'"
        " ORDER BY night DESC LIMIT 1"
    ) == [(6.0, 8.2, 100.0, 1.0, True, True, "regression", True)]


def test_a_device_that_got_slower_is_told_from_a_model_that_did(maker: BundleMaker) -> None:
    week(maker)
    for day in (9, 10):
        night(maker, day, shared=1.09)
    maker.load()
    # then the latency is a regression as before, and the cause is that all operators share it
    assert causes(maker)[date(2026, 11, 10)] == ("regression", "all operators moved alike: +9.0 %")
    assert maker.ask(CHANGED) == []


def test_two_operators_that_got_slower_are_not_called_all(maker: BundleMaker) -> None:
    # given a model of two operators, one twice and one seven times as slow
    for day, factor in ((8, 1), (9, 2)):
        night(
            maker,
            day,
            {CONVOLUTION: 7.0 if factor == 2 else 1.0},
            usual_ns={CONVOLUTION: 10**6, LINEAR: factor * 10**6},
        )
    maker.load()
    (_, cause) = causes(maker)[date(2026, 11, 9)]
    assert cause is not None
    assert cause.startswith(f"`{CONVOLUTION_NAME}` +")
    assert "all operators" not in cause


def test_a_small_operator_that_got_slower_is_named_where_the_latency_hides_it(maker: BundleMaker) -> None:
    # given a portable operator with a tenth of the time that takes 6 % longer
    week(maker)
    for day in (9, 10):
        night(maker, day, {MEAN: 1.06})
    maker.load()
    assert causes(maker)[date(2026, 11, 10)] == ("no change", "`mean` +6.0 %, 11 % of the time")


def test_an_operator_that_replaced_another_is_named_with_it(maker: BundleMaker) -> None:
    # given a convolution that runs as a portable operator from one night on
    week(maker)
    others = {name: ns for name, ns in USUAL_NS.items() if name != CONVOLUTION}
    for day in (9, 10):
        night(maker, day, usual_ns={"native_call_convolution.out": 9_000_000, **others})
    maker.load()
    cause = f"`convolution` instead of `{CONVOLUTION_NAME}` +50.0 %, 100 % of the change"
    assert causes(maker)[date(2026, 11, 10)] == ("regression", cause)


def test_few_sessions_suspect_an_operator_but_name_it(maker: BundleMaker) -> None:
    night(maker, 8, sessions=3)
    night(maker, 9, {CONVOLUTION: 2.0}, sessions=3)
    maker.load()
    cause = f"`{CONVOLUTION_NAME}` +100.0 %, 100 % of the change"
    assert causes(maker)[date(2026, 11, 9)] == ("suspected", cause)


def test_sessions_without_operators_have_verdicts_without_a_cause(maker: BundleMaker) -> None:
    for day in (8, 9):
        for number in range(8):
            sweep = {"sweep_id": f"nightly-2026-11-{day:02}", "name": "nightly", "night": f"2026-11-{day:02}"}
            maker.session([10_000_000 * (day - 7)] * 3, sweep=sweep, index=number)
    maker.load()
    assert causes(maker)[date(2026, 11, 9)][0] == "suspected"


def test_a_forgotten_night_takes_its_operators_with_it(maker: BundleMaker) -> None:
    week(maker)
    slow = night(maker, 9, {CONVOLUTION: 1.38})
    maker.load()
    assert len(maker.ask(CHANGED)) == 1
    forget_sessions(maker.warehouse, [folder.name for folder in slow])
    assert maker.ask(CHANGED) == []
    assert maker.ask("SELECT DISTINCT night::VARCHAR FROM operator_verdict") == [("2026-11-08",)]
    assert maker.ask("SELECT max(night)::VARCHAR FROM series_cause") == [("2026-11-08",)]


def test_operators_do_not_depend_on_the_order_of_loads_and_pass_the_check(maker: BundleMaker, tmp_path: Path) -> None:
    week(maker)
    for day in (9, 10):
        night(maker, day, {CONVOLUTION: 1.38})
    for sweep in sorted(maker.bundles.iterdir(), reverse=True):
        maker.load(sweep)
    other = BundleMaker(tmp_path / "other")
    other.load(maker.bundles)
    query = "SELECT * FROM operator_verdict ORDER BY ALL"
    assert len(maker.ask(query)) > 5
    assert maker.ask(query) == other.ask(query)
    with writing(maker.warehouse) as connection:
        assert list(check_aggregates(connection)) == []
    # and a damaged row is found
    with writing(maker.warehouse) as connection:
        connection.execute("UPDATE series_operator_verdict SET ratio = 1.5")
    with writing(maker.warehouse) as connection:
        assert [finding.split(" is not")[0] for finding in check_aggregates(connection)] == [
            "warehouse: series_operator_verdict"
        ]
