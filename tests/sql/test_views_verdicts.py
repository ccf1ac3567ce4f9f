"""Verdicts in the warehouse: one row per night of a series on a device, made at the load."""

from datetime import UTC, date, datetime
from pathlib import Path

from tasks.analyse.verdict.decisions import Decision, Decisions, Kind
from tasks.keep.decisions import store_decisions
from tasks.keep.forget import forget_sessions
from tests.fixtures.nights import night_of
from tests.fixtures.warehouse import BundleMaker

NOW = datetime(2026, 11, 12, tzinfo=UTC)


def test_a_steady_series_is_no_change_every_night(maker: BundleMaker) -> None:
    for day in range(1, 9):
        night_of(maker, day)
    maker.load()
    assert maker.ask("SELECT verdict, count(*) FROM verdict GROUP BY verdict ORDER BY ALL") == [
        ("insufficient data", 1),
        ("no change", 7),
    ]


def test_a_step_is_a_regression_with_what_changed(maker: BundleMaker) -> None:
    # given a week without a change, and a model that is 10 % slower for two nights, from another .pte file
    for day in range(1, 8):
        night_of(maker, day)
    for day in (8, 9):
        night_of(maker, day, 1.1, model__pte_sha256="p2", model__versions={"executorch": "1.6.0"})
    maker.load()
    # then the first night is suspected and the second confirms it
    assert maker.ask(
        "SELECT night::VARCHAR, verdict, round(ratio, 2), since::VARCHAR, changed FROM verdict "
        "WHERE night >= '2026-11-07' ORDER BY night"
    ) == [
        ("2026-11-07", "no change", 1.0, None, None),
        ("2026-11-08", "suspected", 1.1, "2026-11-08", ".pte file, executorch 1.5.1 -> 1.6.0"),
        ("2026-11-09", "regression", 1.1, "2026-11-08", ".pte file, executorch 1.5.1 -> 1.6.0"),
    ]
    assert maker.ask("SELECT nights, verdict, since::VARCHAR FROM series_overview") == [(9, "regression", "2026-11-08")]


def test_verdicts_do_not_depend_on_the_order_of_loads(maker: BundleMaker, tmp_path: Path) -> None:
    # given the same nights, loaded at once and one by one from the newest to the oldest
    nights = [night_of(maker, day, 1.1 if day > 7 else 1.0) for day in range(1, 10)]
    query = "SELECT * EXCLUDE (reason) FROM verdict ORDER BY night"
    for folders in reversed(nights):
        maker.load(*folders)
    one_by_one = maker.ask(query)
    other = BundleMaker(tmp_path / "other")
    other.load(maker.bundles)
    # then the verdicts are the same
    assert len(one_by_one) == 9
    assert other.ask(query) == one_by_one


def test_a_forgotten_night_is_judged_no_more_and_the_later_ones_again(maker: BundleMaker) -> None:
    for day in range(1, 8):
        night_of(maker, day)
    slow = night_of(maker, 8, 1.1)
    night_of(maker, 9, 1.1)
    maker.load()
    forget_sessions(maker.warehouse, [folder.name for folder in slow])
    assert maker.ask("SELECT night::VARCHAR, verdict FROM verdict WHERE night > '2026-11-06' ORDER BY night") == [
        ("2026-11-07", "no change"),
        ("2026-11-09", "suspected"),
    ]


def test_emulated_devices_are_never_judged(maker: BundleMaker) -> None:
    for day in range(1, 4):
        night_of(maker, day, device__emulated=True)
    maker.load()
    assert maker.ask("SELECT count(*) FROM verdict") == [(0,)]


def test_two_phones_of_one_model_are_judged_apart(maker: BundleMaker) -> None:
    # given two phones of one model, one of which is always 5 % slower, in use on alternate nights
    for day in range(1, 9):
        night_of(maker, day, 1.05 if day % 2 else 1.0, device__name="slow" if day % 2 else "fast")
    maker.load()
    # then neither is ever suspected
    assert maker.ask("SELECT DISTINCT device, verdict FROM verdict WHERE baseline_nights > 0 ORDER BY ALL") == [
        ("fast", "no change"),
        ("slow", "no change"),
    ]
    assert maker.ask("SELECT max(abs(ratio - 1)) < 0.001 FROM night_over_night") == [(True,)]


def test_sessions_outside_the_limits_make_the_night_invalid(maker: BundleMaker) -> None:
    for day in range(1, 6):
        night_of(maker, day)
    for folder_number in range(8):
        maker.session(
            sweep={"sweep_id": "nightly-2026-11-06", "name": "nightly", "night": "2026-11-06"},
            status="invalid",
            reason_code="thermal",
            reason="48 C",
            index=folder_number,
        )
    maker.load()
    assert maker.ask(
        "SELECT verdict, sessions, invalid_sessions, median_ms FROM verdict WHERE night = '2026-11-06'"
    ) == [("invalid environment", 0, 8, None)]


def decided(kind: Kind, night: date) -> Decisions:
    """One decision about all series."""
    return Decisions(
        (Decision(id="0000000a", kind=kind, reason="x", decided_at=datetime.now(UTC), decided_by="a@b", night=night),)
    )


def test_a_reset_baseline_makes_a_regression_the_new_normal(maker: BundleMaker) -> None:
    # given a model that is 10 % slower since the eighth night
    for day in range(1, 12):
        night_of(maker, day, 1.1 if day > 7 else 1.0)
    maker.load()
    newest = "SELECT verdict, baseline_nights FROM verdict WHERE is_newest"
    assert maker.ask(newest)[0][0] == "regression"
    # when the user accepts it
    store_decisions(maker.warehouse, decided("baseline_reset", date(2026, 11, 8)))
    # then the nights since then are compared with each other only
    assert maker.ask(newest) == [("no change", 3)]


def test_an_excluded_night_is_compared_with_nothing(maker: BundleMaker) -> None:
    for day in range(1, 10):
        night_of(maker, day, 1.1 if day == 8 else 1.0)
    maker.load()
    store_decisions(maker.warehouse, decided("night_exclusion", date(2026, 11, 8)))
    assert maker.ask(
        "SELECT verdict, baseline_nights, ratio FROM verdict WHERE night >= '2026-11-08' ORDER BY night"
    ) == [("insufficient data", 0, None), ("no change", 7, 1.0)]
