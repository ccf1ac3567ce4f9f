"""Incidents in the warehouse: made at the load, with what changed at their onset."""

import json
import re
from datetime import date
from typing import Any

from tasks.results.incident_lookup import find_incident
from tasks.results.incidents import read_incidents
from tasks.results.reader import open_reader
from tasks.results.table import Cell
from tasks.results.text import plain_text
from tests.fixtures.nights import WHY, failed_night_of, fields_of, night_of, week_of
from tests.fixtures.warehouse import BundleMaker


def source(commits: str) -> dict[str, Any]:
    """The source of a sweep with these commits, a digit each, the newest first."""
    named = [{"id": each * 7, "author": f"Author {each}", "subject": f"Change {each}"} for each in commits]
    return {"commit": commits[0] * 40, "author": f"Author {commits[0]}", "is_dirty": False, "commits": named}


def test_an_incident_keeps_what_changed_at_its_onset(maker: BundleMaker) -> None:
    # given a week, a slower model of one author, and later commits of others
    week_of(maker, sessions=5, sweep__source=source("0"))
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


def test_a_device_whose_roof_fell_comes_before_its_models_and_these_name_it(maker: BundleMaker) -> None:
    # given a model and the roof, and a night in which both are slower: the model has another file, the roof has not
    roof: dict[str, Any] = {"model__name": "roof", "model__pte_sha256": "r1"}
    for day in range(2, 10):
        for model in (roof, {"model__pte_sha256": "p2" if day > 7 else "p1"}, {"model__name": "same"}):
            night_of(maker, day, 1.25 if day > 7 else 1.0, 8 if day > 7 else 5, **model)
    maker.load()
    with open_reader(maker.warehouse) as reader:
        of_device, of_model = read_incidents(reader)
    assert (of_device.kind, of_device.models, of_model.kind, of_model.models) == ("device", ["same"], "model", ["toy"])
    # then both state by how much less the device could do: its product takes 1.25 times as long
    for incident in (of_device, of_model):
        assert "roof fell by 20 %" in incident.line
        assert "roof fell by 20 %" in plain_text(incident.changed_cell(Cell("")).text)


def test_a_roof_that_another_runner_takes_longer_for_does_not_blame_the_device(maker: BundleMaker) -> None:
    for day in range(2, 11):
        for model in ("roof", "toy"):
            changes = {"model__name": model, "runner__runner_sha256": "r2" if day > 7 else "r1"}
            night_of(maker, day, 1.25 if day > 7 else 1.0, 8 if day > 7 else 5, **changes)
    maker.load()
    with open_reader(maker.warehouse) as reader:
        incidents = read_incidents(reader)
    assert [(each.kind, each.roof_ratio) for each in incidents] == [("model", None)]


def test_the_good_nights_of_an_incident_that_came_back_name_none(maker: BundleMaker) -> None:
    # given a regression that was reverted, and the revert reverted
    week_of(maker, sessions=5)
    slow, good = (8, 9, 13, 14), (10, 11, 12)
    for day in sorted((*slow, *good)):
        night_of(maker, day, 1.2 if day in slow else 1.0, model__pte_sha256="p2" if day in slow else "p1")
    maker.load()
    named = maker.ask("SELECT DISTINCT day(night) FROM _shown_verdict WHERE incident_id IS NOT NULL ORDER BY 1")
    assert [day for (day,) in named] == list(slow)
    # and a command that excludes its nights leaves them
    with open_reader(maker.warehouse) as reader:
        (incident,) = read_incidents(reader)
    assert (incident.reopened, [day for day in range(1, 15) if incident.is_bad(date(2026, 11, day))]) == (1, [*slow])


def test_an_id_finds_its_incident_after_a_late_bundle_changed_what_it_is_about(maker: BundleMaker) -> None:
    # given two commits since the last good night, so that it is about the model
    week_of(maker, sessions=5, sweep__source=source("0"))
    for day in (9, 10):
        night_of(maker, day, 1.1, model__pte_sha256="p2", sweep__source=source("ba0"))
    maker.load()
    with open_reader(maker.warehouse) as reader:
        (before,) = read_incidents(reader)
    # when the night between them comes late
    night_of(maker, 8, sessions=5, sweep__source=source("a0"))
    maker.load()
    with open_reader(maker.warehouse) as reader:
        rows = read_incidents(reader)
        assert read_incidents(reader) is rows  # read once, however many pages show them
    assert [row.subject for row in (before, *rows)] == ["toy", "commit bbbbbbb"]
    assert find_incident(rows, before.incident_id) == rows[0]


def test_the_farm_is_measured_each_week_where_nothing_changed(maker: BundleMaker) -> None:
    # given a model without a change for two weeks, one night of which is slow; another whose new file is slower for one
    # night and then not; and one with as slow a file to the end
    names = {"quiet": {12: 1.2}, "back": {11: 1.2}, "slower": dict.fromkeys(range(11, 15), 1.2)}
    for model, factors in names.items():
        for day in range(2, 15):
            changed: dict[str, Any] = {"model__pte_sha256": "p2"} if model != "quiet" and day >= 11 else {}
            night_of(maker, day, factors.get(day, 1.0), 8 if day > 10 else 5, model__name=model, **changed)
    # and a device that compares one content with itself, and loses two nights to its conditions
    for day, factor in ((9, 1.0), (10, 1.0), (11, 1.1)):
        for number in range(16):
            arm = {"purpose": "noise", "comparison": f"{day:016x}", "side": "ab"[number % 2]}
            time_ns = round(1_000_000 * (1 + 0.001 * (number // 2 % 4)) * (factor if number % 2 else 1))
            maker.session([time_ns] * 3, repetition=number // 2, arm=arm, **fields_of(day))
    hot: dict[str, Any] = {"status": "invalid", "reason_code": "thermal", "reason": "hot", "device__name": "warm"}
    for day in (3, 4, 10):
        maker.session([1_000_000] * 3, **hot, **fields_of(day))
    maker.load()
    assert maker.ask("FROM farm_honesty ORDER BY week") == [
        # the first night of each model is compared with none
        (date(2026, 11, 2), 7, 3 * 6, 0, 0.0, 1.0, 0, None, 0, 0, ["warm"]),
        # all of `quiet`, 9 and 10 of the others, and the last two of `back`, whose baseline has the new file
        (date(2026, 11, 9), 6, 12, 1, 100 / 12, 11 / 12, 3, 2 / 3, 1, 1, []),
    ]


def test_a_model_that_fails_names_the_commits_since_the_last_night_that_had_a_result(maker: BundleMaker) -> None:
    week_of(maker, 2, sessions=5, sweep__source=source("0"))
    for threads in (1, 4):
        failed_night_of(maker, 3, threads=threads, sweep__source=source("a0"))
    maker.load()
    with open_reader(maker.warehouse) as reader:
        (incident,) = read_incidents(reader)
    assert (incident.kind, incident.subject) == ("failure", "toy")
    # and states the sessions of all its series, as its reason has those of one
    assert (incident.series, incident.failed_sessions, incident.reason[:8]) == (2, 16, "8 of 8 s")
    assert [each["author"] for each in incident.commits or []] == ["Author a"]
    # and the table of incidents has the reason
    changed = plain_text(incident.changed_cell(Cell("")).text)
    assert WHY in changed
    assert "Change a" in changed


def test_a_bisection_reads_the_commits_of_the_last_night_with_the_good_content(maker: BundleMaker) -> None:
    for day, commits in enumerate(("0", "a0", "ba0"), 5):
        night_of(maker, day, sessions=1, model__pte_sha256="p2" if day == 7 else "p1", sweep__source=source(commits))
    maker.load()
    [(series_id, device, runner)] = maker.ask("SELECT DISTINCT series_id, device, runner_sha256 FROM _session")
    names = {"series_id": series_id, "device": device, "bad": "2026-11-07"}
    with open_reader(maker.warehouse) as reader:
        rows = reader.tuples("bisect_commits", **names, pte_sha256="p1", runner_sha256=runner)
    commits_of = {str(night): [each["id"][0] for each in json.loads(commits)] for night, commits in rows}
    assert commits_of == {"2026-11-07": ["b", "a", "0"], "2026-11-06": ["a", "0"]}
