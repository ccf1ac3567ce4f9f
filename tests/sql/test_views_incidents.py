"""Incidents in the warehouse: made at the load, with what changed at their onset."""

import re
from typing import Any

from tasks.results.incidents import find_incident, read_incidents
from tasks.results.reader import open_reader
from tasks.results.table import Cell
from tasks.results.text import plain_text
from tests.fixtures.nights import night_of, week_of
from tests.fixtures.warehouse import BundleMaker


def source(commits: str) -> dict[str, Any]:
    """The source of a sweep with these commits, a digit each, the newest first."""
    named = [{"id": each * 7, "author": f"Author {each}", "subject": f"Change {each}"} for each in commits]
    return {"commit": commits[0] * 40, "author": f"Author {commits[0]}", "is_dirty": False, "commits": named}


def test_an_incident_keeps_what_changed_at_its_onset(maker: BundleMaker) -> None:
    # given a week, a slower model of one author, and later commits of others
    week_of(maker, sweep__source=source("0"))
    for day, commit in ((8, "a"), (9, "b"), (10, "c")):
        night_of(maker, day, 1.1, model__pte_sha256="p2", sweep__source=source("0abc"["0abc".index(commit) :: -1]))
    maker.load()
    rows = maker.ask("SELECT kind, subject, state, onset::VARCHAR, last_good::VARCHAR, series, changed FROM incident")
    assert [row[:-1] for row in rows] == [("model", "commit aaaaaaa", "confirmed", "2026-11-08", "2026-11-07", 1)]
    assert [(each["fact"], each["after"]) for each in rows[0][-1]] == [(".pte file", "p2")]
    # and the page, the terminal and programs name the commit of the onset, and no later one
    with open_reader(maker.warehouse) as reader:
        (incident,) = read_incidents(reader)
    data = incident.data()
    assert [each["author"] for each in data["commits"]] == ["Author a"]
    assert (data["has_all_commits"], data["git_log"]) == (True, "git log 0000000..aaaaaaa")
    for text in (incident.line, plain_text(incident.changed_cell(Cell("")).text)):
        assert "Change a" in text
        assert not re.search("Author [bc]|Change [bc]", text)


def test_an_id_finds_its_incident_after_a_late_bundle_changed_what_it_is_about(maker: BundleMaker) -> None:
    # given two commits since the last good night, so that it is about the model
    week_of(maker, sweep__source=source("0"))
    for day in (9, 10):
        night_of(maker, day, 1.1, model__pte_sha256="p2", sweep__source=source("ba0"))
    maker.load()
    with open_reader(maker.warehouse) as reader:
        (before,) = read_incidents(reader)
    # when the night between them comes late
    night_of(maker, 8, sweep__source=source("a0"))
    maker.load()
    with open_reader(maker.warehouse) as reader:
        rows = read_incidents(reader)
    assert [row.subject for row in (before, *rows)] == ["toy", "commit bbbbbbb"]
    assert find_incident(rows, before.incident_id) == rows[0]
