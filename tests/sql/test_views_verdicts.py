"""Verdicts in the warehouse: one row per night of a series on a device, made at the load."""

from datetime import UTC, date, datetime
from typing import Any

import pytest

from sql.warehouse import writing
from tasks.judge.decisions import Decision, Decisions, Kind
from tasks.maintain.decisions import store_decisions
from tasks.maintain.forget import forget_sessions
from tests.fixtures.nights import fields_of, night_of, week_of
from tests.fixtures.warehouse import BundleMaker


def test_a_step_is_a_regression_with_what_changed(maker: BundleMaker) -> None:
    # given a steady week, and a model that is 10 % slower for two nights, from another .pte file
    week_of(maker)
    for day in (8, 9):
        night_of(maker, day, 1.1, model__pte_sha256="p2", model__versions={"executorch": "1.6.0"})
    maker.load()
    # then the first night is suspected and the second confirms it
    changed = [
        {"fact": ".pte file", "before": "p1", "after": "p2"},
        {"fact": "executorch", "before": "1.5.1", "after": "1.6.0"},
    ]
    assert maker.ask(
        "SELECT night::VARCHAR, verdict, round(ratio, 2), since::VARCHAR, changed FROM verdict "
        "WHERE night >= '2026-11-07' ORDER BY night"
    ) == [
        ("2026-11-07", "no change", 1.0, None, None),
        ("2026-11-08", "suspected", 1.1, "2026-11-08", changed),
        ("2026-11-09", "regression", 1.1, "2026-11-08", changed),
    ]
    assert maker.ask("SELECT nights, verdict, since::VARCHAR FROM series_overview") == [(9, "regression", "2026-11-08")]


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        ({}, "device slower"),
        ({"model__pte_sha256": "p2"}, "regression"),
        ({"model__inputs_sha256": "i2"}, "regression"),
        ({"runner__runner_sha256": "r2"}, "regression"),
        ({"warmup_executions": 2}, "regression"),
    ],
    ids=["nothing", "program", "inputs", "runner", "settings"],
)
def test_a_step_is_the_devices_only_if_program_inputs_runner_and_settings_are_equal(
    maker: BundleMaker, changed: dict[str, Any], verdict: str
) -> None:
    week_of(maker)
    for day in (8, 9):
        night_of(maker, day, 1.1, **changed)
    maker.load()
    assert maker.ask("SELECT verdict FROM verdict WHERE is_newest") == [(verdict,)]


def test_a_forgotten_night_is_judged_no_more_and_the_later_ones_again(maker: BundleMaker) -> None:
    week_of(maker)
    slow = night_of(maker, 8, 2.0, model__pte_sha256="p2")
    night_of(maker, 9, 2.0, model__pte_sha256="p2")
    maker.load()
    forget_sessions(maker.warehouse, [folder.name for folder in slow])
    # then that is so of the latency, and of the other figures
    for metric in ("latency", "first execution"):
        asked = f"SELECT day(night), verdict FROM metric_verdict WHERE metric = '{metric}' AND night > '2026-11-06'"
        assert maker.ask(f"{asked} ORDER BY night") == [(7, "no change"), (9, "suspected")]


def test_emulated_devices_are_never_judged(maker: BundleMaker) -> None:
    week_of(maker, 3, device__emulated=True)
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
    week_of(maker, 5)
    for number in range(8):
        maker.session(status="invalid", reason_code="thermal", reason="48 C", repetition=number, **fields_of(6))
    maker.load()
    assert maker.ask("SELECT verdict, sessions, invalid_sessions, time_ms FROM verdict WHERE night = '2026-11-06'") == [
        ("invalid environment", 0, 8, None)
    ]


def decided(kind: Kind, night: date | None, revokes: str | None = None, number: str = "0000000a") -> Decisions:
    """One decision about all series."""
    now = datetime.now(UTC)
    decision = Decision(
        id=number, kind=kind, reason="x", decided_at=now, decided_by="a@b", night=night, revokes=revokes
    )
    return Decisions((decision,))


@pytest.mark.parametrize(
    ("kind", "slow_days", "verdicts"),
    [
        # the nights since the reset are compared with each other only
        ("baseline_reset", (8, 9, 10), [("insufficient data", 0), ("no change", 1), ("no change", 2)]),
        # the excluded night is compared with nothing, and nothing with it
        ("night_exclusion", (8,), [("insufficient data", 0), ("no change", 7), ("no change", 8)]),
    ],
)
def test_a_users_decision_about_the_eighth_night_decides_what_is_compared(
    maker: BundleMaker, kind: Kind, slow_days: tuple[int, ...], verdicts: list[tuple[str, int]]
) -> None:
    # given a model that is 10 % slower in these nights
    for day in range(1, 11):
        night_of(maker, day, 1.1 if day in slow_days else 1.0, model__pte_sha256=f"p{day in slow_days}")
    maker.load()
    asked = "SELECT verdict, baseline_nights FROM verdict WHERE night >= '2026-11-08' ORDER BY night"
    assert maker.ask(asked)[0] == ("suspected", 7)
    # when the user decides
    store_decisions(maker.warehouse, decided(kind, date(2026, 11, 8)))
    # then
    assert maker.ask(asked) == verdicts


def test_a_note_and_its_revocation_leave_all_verdicts_as_they_were_judged(maker: BundleMaker) -> None:
    # given a judged series, whose mark a new judgement would remove
    for day in range(1, 9):
        night_of(maker, day, 1.0)
    maker.load()
    with writing(maker.warehouse) as connection:
        connection.execute("UPDATE series_verdict SET reason = 'as judged'")
    # when a note on a night is added, then its revocation
    note, revocation = decided("note", date(2026, 11, 8)), decided("revocation", None, "0000000a", "0000000b")
    both = Decisions(note.records + revocation.records)
    assert (store_decisions(maker.warehouse, note), store_decisions(maker.warehouse, both)) == (1, 1)
    # then nothing was judged again
    assert maker.ask("SELECT DISTINCT reason FROM series_verdict") == [("as judged",)]
    # but a decision that comes with a revoked note is obeyed
    excluded = decided("night_exclusion", date(2026, 11, 8), number="0000000c")
    store_decisions(maker.warehouse, Decisions(both.records + excluded.records))
    assert maker.ask("SELECT count(*) FROM series_verdict WHERE reason = 'as judged'") == [(0,)]
