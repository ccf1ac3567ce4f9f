"""Nights of a new model that were measured later: history for it, no alarm, and nothing to other series."""

from typing import Any

from tasks.results.changes import mean_of_changes
from tasks.results.night import night_comparison, night_gate
from tasks.results.reader import open_reader
from tasks.results.verdicts import failed_lines, failing_verdicts, read_night
from tests.fixtures.nights import failed_night_of, night_of, week_of
from tests.fixtures.warehouse import BundleMaker

OTHERS = "SELECT * EXCLUDE is_newest FROM metric_verdict WHERE model = 'toy' ORDER BY ALL"


def later(day: int, name: str = "nightly") -> dict[str, Any]:
    """Fields of a session of the model `new` that is measured on the 28th for a night."""
    night = f"2026-11-{day:02}"
    sweep = {"sweep_id": f"{name}-{night}.later", "name": name, "night": night, "measured_later": True}
    return {"sweep": sweep, "started_at": "2026-11-28T01:00:00+00:00", "model__name": "new"}


def test_what_is_measured_later_is_history_that_raises_no_alarm(maker: BundleMaker) -> None:
    # given a week of one model
    week_of(maker)
    maker.load()
    others = maker.ask(OTHERS)
    # when another is measured later for it, slower since the fifth night, and without a result in the last one
    for day in range(1, 7):
        changed: dict[str, Any] = {"runner__runner_sha256": "b" * 64} if day >= 5 else {}
        night_of(maker, day, 1.3 if day >= 5 else 1.0, **later(day), **changed)
    failed_night_of(maker, 7, **later(7))
    maker.load()
    # then no row of the first one changed
    assert maker.ask(OTHERS) == others
    # and those of the other are marked, from one place
    history = "SELECT verdict, measured_later::VARCHAR, reason FROM verdict WHERE model = 'new' ORDER BY night"
    verdicts, days, reasons = zip(*maker.ask(history), strict=True)
    assert (verdicts[0], verdicts[3:]) == ("new", ("no change", "suspected", "regression", "failed"))
    assert set(days) == {"2026-11-28"}
    assert all(reason.startswith("measured later (2026-11-28): ") for reason in reasons)
    # but there is no incident, and no verdict fails
    assert maker.ask("SELECT * FROM incident_series") == []
    with open_reader(maker.warehouse) as reader:
        rows = [row for day in (6, 7) for row in read_night(reader, f"2026-11-0{day}")[1]]
        assert (failing_verdicts(rows, "device"), failed_lines(rows)) == ([], [])
    # and the next night of its own is compared with them, and is an alarm
    for day, factor in ((8, 1.3), (9, 1.3), (10, 2.0), (11, 2.0)):
        night_of(maker, day, factor, model__name="new", runner__runner_sha256="b" * 64)
    maker.load()
    assert maker.ask("SELECT DISTINCT onset::VARCHAR FROM incident_series") == [("2026-11-10",)]
    # and the sweep of the newest night is the newest, although the others were measured after it
    with open_reader(maker.warehouse) as reader:
        assert next(iter(reader.tuples("compare_names", a="-", b="-")))[2] == "nightly-2026-11-11"


def test_headline_mean_and_gate_count_what_was_measured_later_apart(maker: BundleMaker) -> None:
    # given a week of two models, of which one was measured later and both became slower in the last two nights
    for day in range(1, 8):
        changed: dict[str, Any] = {"runner__runner_sha256": "b" * 64} if day >= 6 else {}
        night_of(maker, day, 1.3 if day >= 6 else 1.0, **changed)
        night_of(maker, day, 1.2 if day >= 6 else 1.0, **later(day), **changed)
    maker.load()
    with open_reader(maker.warehouse) as reader:
        night, rows = read_night(reader, "2026-11-07")
    # then one series is all that there is to count
    comparison = night_comparison(night, rows)
    assert comparison.headline.startswith("1 of 1 series slower: toy")
    assert "measured later: 1" in comparison.headline
    assert mean_of_changes(comparison.changes) is None
    assert night_gate(comparison, rows[0].night, rows, "regression").reasons == [
        "regression: 1 of 1 series; other figures worse: 1"
    ]
    # and nights that were compared as nights have no number of sessions
    assert [(each.a.sessions, each.b.sessions) for each in comparison.changes] == [(None, 8)] * 2


def test_a_failure_of_the_night_itself_is_an_alarm_also_beside_what_failed_later(maker: BundleMaker) -> None:
    # given a night that failed later in two sweeps, and one that failed itself, too
    week_of(maker, 2, model__name="new")
    for day, name in ((3, "nightly"), (3, "weekly"), (4, "nightly")):
        failed_night_of(maker, day, **later(day, name))
    failed_night_of(maker, 4, model__name="new")
    # when they are judged, then each night has one verdict, and the second one is no history
    maker.load()
    rows = maker.ask("SELECT day(night), verdict, measured_later IS NULL FROM verdict WHERE model = 'new' ORDER BY ALL")
    assert rows[2:] == [(3, "failed", False), (4, "failed", True)]
