"""Incidents in the warehouse: made at the load, with what changed at their onset."""

from tests.fixtures.nights import night_of, week_of
from tests.fixtures.warehouse import BundleMaker


def test_an_incident_keeps_what_changed_at_its_onset(maker: BundleMaker) -> None:
    # given a week, a slower model of one author, and later commits of others
    week_of(maker)
    for day, commit in ((8, "a"), (9, "b"), (10, "c")):
        source = {"commit": commit * 40, "author": f"Author {commit}"}
        night_of(maker, day, 1.1, model__pte_sha256="p2", sweep__source=source)
    maker.load()
    rows = maker.ask("SELECT kind, subject, state, onset::VARCHAR, last_good::VARCHAR, series, changed FROM incident")
    assert [row[:-1] for row in rows] == [("model", "toy", "confirmed", "2026-11-08", "2026-11-07", 1)]
    assert [(each["fact"], each["after"]) for each in rows[0][-1]] == [(".pte file", "p2")]
