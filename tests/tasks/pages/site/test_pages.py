"""The pages of the site: each answers first, its figures are those of SQL, and every link leads to a page."""

import json
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import replace
from datetime import date, datetime
from typing import Any

import duckdb
import pytest

from sql.warehouse import open_read_only
from tasks.pages.page import Histories
from tasks.pages.site import device, sme2
from tasks.pages.site.changes import list_published
from tasks.pages.site.page_keys import read_keys
from tasks.pages.site.site import Site
from tasks.results.addresses import change_file
from tasks.results.devices import DeviceRow
from tasks.results.glances.incident_cards import IncidentCard
from tasks.results.incidents import IncidentRow
from tasks.results.reader import Reader
from tasks.results.series import DecisionRow, SeriesIncidentRow, SeriesRow
from tests.fixtures.pages import Pages, read_page, target
from tests.fixtures.warehouse import BundleMaker
from tests.tasks.pages.conftest import plain_text
from tests.tasks.pages.rows import reader_of, row

NEWEST = "2026-11-20"


def ask(connection: duckdb.DuckDBPyConnection, columns: str, condition: str) -> list[tuple[Any, ...]]:
    return connection.execute(f"SELECT {columns} FROM verdict WHERE night = '{NEWEST}' AND {condition}").fetchall()


def test_the_farm_has_slower_models_a_slow_device_and_an_emulated_one_that_is_not_judged(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    first, second = (
        ask(connection, "model, verdict, day(since)", f"device = 'phone-00{number}' ORDER BY model")
        for number in (1, 2)
    )
    assert [row for row in first if row[1] != "no change"] == [
        ("bert_03", "regression", 20),
        ("unet_04", "regression", 18),
    ]
    assert [(second[at][0], second[at][1]) for at in (1, 3)] == [
        ("resnet_01", "device slower"),
        ("vit_02", "device slower"),
    ]
    assert ask(connection, "DISTINCT device", "true ORDER BY 1") == [("phone-001",), ("phone-002",)]
    for view in ("session_latency", "operator_time", "module_time", "cell_overview", "session_overview"):
        series = f"SELECT count(DISTINCT (device, model)) FROM {view} WHERE night = DATE '{NEWEST}'"
        assert connection.execute(series).fetchall() == [(12,)], view


def test_home_answers_first_and_its_counts_are_those_of_sql(
    pages: Pages, connection: duckdb.DuckDBPyConnection
) -> None:
    home = pages.read("index.html")
    ((incidents,),) = connection.execute("SELECT count(*) FROM incident WHERE closed_on IS NULL").fetchall()
    assert len(home.cards) == incidents == 3
    _, counted, answer = home.answer.partition("hree open incidents. ")
    verdicts = Counter(verdict for (verdict,) in ask(connection, "verdict", "true"))
    assert counted
    assert answer.startswith(f"{verdicts['regression']} of {verdicts.total()} series slower;")
    assert f"without a change: {verdicts['no change']}" in answer
    counts = re.findall(r": (\d+)\b(?! ms)", answer.partition(";")[2])
    assert verdicts["regression"] + sum(map(int, counts)) == verdicts.total()


def test_a_night_lists_what_changed_with_the_largest_change_in_percent_first(
    pages: Pages, connection: duckdb.DuckDBPyConnection
) -> None:
    home = pages.read(f"nights/{NEWEST}.html")
    # where a comparison of the night decided, the times are those of its sides
    compared = f"SELECT device, model_b, time_b_ms FROM comparison WHERE purpose = 'same_night' AND night = '{NEWEST}'"
    times_ms = {(device, model): ms for device, model, ms in connection.execute(compared).fetchall()}
    columns = "device, model, time_ms, ratio, contains(reason, 'measured interleaved')"
    rows = [
        round((times_ms[device, model] if is_compared else ms) * (1 - 1 / ratio), 3)
        for device, model, ms, ratio, is_compared in ask(
            connection, columns, "verdict IN ('regression', 'suspected') ORDER BY verdict, ratio DESC"
        )
    ]
    assert [float(cell) for cell in home.column("changed", "Adds")] == rows
    assert home.column("changed", "Verdict")[0] == "regression since 2026-11-20"
    assert "etfarm compare" in home.words["changed"]
    # and a device that got slower is apart from the models
    assert "phone-002: " in home.words["devices"]
    assert "Check the device, not the models." in home.words["devices"]
    changed = ask(connection, "model", "device = 'phone-002' AND verdict NOT IN ('device slower', 'no change')")
    listed = [line.split()[0] for line in home.column("changed", "Series") if "phone-002" in line]
    assert sorted(listed) == sorted(model for (model,) in changed)


def test_the_heat_map_has_every_judged_series_and_no_emulated_device(
    pages: Pages, connection: duckdb.DuckDBPyConnection
) -> None:
    heads, *rows = pages.read("index.html").tables["matrix"][0]
    cells = {(line[0].split()[0], name): cell for line in rows for name, cell in zip(heads[1:], line[1:], strict=True)}
    expected = ask(connection, "model, device, verdict, 100 * (ratio - 1)", "true")
    assert {name for name, cell in cells.items() if cell} == {(model, device) for model, device, *_ in expected}
    # a change has its sign and its figure, and all else a dot
    for model, name, verdict, percent in expected:
        cell = cells[model, name]
        assert cell == "\u00b7" if verdict == "no change" else float(cell[1:]) == pytest.approx(percent, abs=0.6), cell
    ((emulated,),) = connection.execute("SELECT DISTINCT device FROM device_overview WHERE emulated").fetchall()
    assert emulated not in heads
    assert "emulated: its times mean nothing" in pages.read(f"devices/{emulated}.html").answer
    assert "series" not in pages.read(f"devices/{emulated}.html").tables


def test_published_pages_exist_and_lead_to_published_pages_only(small: Pages) -> None:
    published = set(small.site.published or ())
    for address in (each for each in published if each.endswith(".html")):
        page = small.read(address)
        assert {to for link in page.links if (to := target(address, link))} <= published, address
        assert {target(address, loaded) for loaded in page.loaded if not loaded.startswith("data:")} <= published
    folders = {address.partition("/")[0] for address in published}
    assert folders >= {"nights", "models", "devices", "sweeps", "cells", "sessions", "histories", "comparisons"}


def test_a_history_has_every_session_and_night_with_the_times_of_sql(
    pages: Pages, connection: duckdb.DuckDBPyConnection
) -> None:
    of_series = "model = 'bert_03' AND device = 'phone-001'"
    ((series_id,),) = ask(connection, "series_id", of_series)
    page = pages.read("devices/phone-001.html")
    assert page.histories["series"][series_id]["model"] == "bert_03"
    history = pages.history(page, series_id)
    # then they have each night once, with the time and verdict of SQL, and each session that counts
    asked = f"SELECT night::VARCHAR, verdict, time_ms FROM verdict WHERE {of_series} ORDER BY night"
    nights = [(*names, pytest.approx(time_ms, abs=1e-5)) for *names, time_ms in connection.execute(asked).fetchall()]
    assert [(each["night"], each["verdict"], each["time_ms"]) for each in history] == nights
    asked = f"SELECT session_id, median_ms FROM session_latency WHERE {of_series} AND runs > 0"
    sessions = {session: pytest.approx(ms, rel=0.1) for session, ms in connection.execute(asked).fetchall()}
    times = {text.split()[0]: float(text.split()[1]) for each in history for text in each["sessions"].split(",")}
    assert len(times) > max(5 * len(history), 20)
    assert {session: times[session] for session in sessions} == sessions
    # and the newest verdict is on the page of the device without any script
    assert "regression" in page.column("series", "Verdict")


def test_what_changed_in_a_series_has_its_operators_as_sql_has_them_the_largest_change_first(
    pages: Pages, connection: duckdb.DuckDBPyConnection
) -> None:
    of_series = "model = 'bert_03' AND device = 'phone-001'"
    ((series_id, since),) = ask(connection, "series_id, baseline_to", of_series)
    content = pages.html(change_file(series_id, "phone-001")).strip()
    why, where = json.loads(f"[{content.removeprefix('farmChange(').removesuffix(');')}]")
    of_night = f"FROM operator_verdict WHERE {of_series} AND night = '{NEWEST}' AND level = 'operator'"
    changes = f"SELECT operator {of_night} ORDER BY abs(time_ms - baseline_ms) DESC, operator"
    operators = [name for (name,) in connection.execute(changes).fetchall()]
    assert len(operators) > 2
    assert read_page(where).column("", "Operator") == operators
    # and it states the cause, and how to look closer
    assert "Cause" in read_page(why).column("", "What")
    assert f"etfarm compare {since} {NEWEST} --model bert_03 --device phone-001" in why


def test_the_change_of_a_series_is_published_if_the_newest_night_or_an_incident_states_one() -> None:
    night = date(2026, 11, 20)
    verdicts = {"slow": "regression", "memory": "no change", "quiet": "no change", "old": "regression"}
    series = [
        row(SeriesRow, series_id=name, device="host", verdict=verdict, night=night, rank=1, ratio=1.0)
        for name, verdict in verdicts.items()
    ]
    series[-1] = replace(series[-1], night=date(2026, 11, 19))
    incident = row(IncidentRow, state="confirmed", open_parts=["memoryhost"])
    assert [each.series_id for each in list_published(series, [incident])] == ["slow", "memory"]
    many = [replace(series[0], series_id=str(number)) for number in range(100)]
    assert len(list_published(many, [])) == 60


def test_the_sessions_of_a_night_are_in_the_order_in_which_they_started_in_one_file_a_week(small: Pages) -> None:
    page = small.read("devices/host.html")
    assert page.histories["files"] == ["histories/host/2026-11-02.js", "histories/host/2026-11-16.js"]
    (series_id,) = (each for each, facts in page.histories["series"].items() if facts["model"] == "ordered")
    ((night),) = small.history(page, series_id)
    assert [float(session.split()[1]) for session in night["sessions"].split(",")] == [1.0, 2.0, 3.0]


def test_notes_excluded_nights_and_open_incidents_are_on_the_page_of_their_series_alone() -> None:
    common: dict[str, Any] = {"model": "voice", "device": None, "precision": None, "variant": None}
    common |= {"decided_at": datetime(2026, 11, 4), "decided_by": "somebody"}
    decisions = [
        row(DecisionRow, kind="note", night=None, reason="known, ticket 12", **common),
        row(DecisionRow, kind="night_exclusion", night=date(2026, 11, 2), reason="hot", **common),
    ]
    series = [row(SeriesRow, model=model, series_id=model, nights=3, weeks=[]) for model in ("voice", "other")]
    onset = date(2026, 11, 3)
    named: dict[str, Any] = {"models": ["voice"], "devices": ["host"], "precisions": ["fp32"], "series": 1}
    named |= {"onset": onset, "incident_id": "1a2b3c4d", "subject": "voice", "worst_device": "host", "graph": []}
    named |= {"open_parts": ["voice" + series[0].device]}
    card = IncidentCard(row(IncidentRow, state="suspected", **named), None, ("", ""))
    of_voice: dict[str, Any] = {"series_id": "voice", "kind": "model", "metric": "latency", "onset": onset}
    parts = [
        row(SeriesIncidentRow, incident_id="1a2b3c4d", state="suspected", closed_on=None, **of_voice),
        row(SeriesIncidentRow, incident_id="5e6f7a8b", state="fixed", closed_on=date(2026, 11, 4), **of_voice),
    ]
    page = device.page(row(DeviceRow), [], series, decisions, ([card], parts), ([], []))
    (histories,) = [block for section in page.sections for block in section.blocks if isinstance(block, Histories)]
    is_open, closed = histories.series["voice"]["incidents"]
    assert (is_open["id"], is_open["night"], is_open["closed"]) == ("1a2b3c4d", onset, None)
    assert card.incident.scope in histories.incidents["1a2b3c4d"]
    assert (closed["id"], closed["closed"]) == ("5e6f7a8b", date(2026, 11, 4))
    note, exclusion = (histories.notes[at] for at in histories.series["voice"]["notes"])
    assert (note["night"], note["text"]) == (None, "Note: known, ticket 12 (somebody, 2026-11-04)")
    assert (exclusion["night"], exclusion["event"]) == (date(2026, 11, 2), "night exclusion")
    assert not {"notes", "incidents"} & histories.series["other"].keys()


def test_a_series_that_ended_with_its_build_and_the_next_one_lead_to_each_other() -> None:
    first, last = date(2026, 11, 18), date(2026, 11, 19)
    builds = [("old", "6.1.84", date(2026, 10, 22), first), ("new", "6.1.99", last, date(2026, 11, 20))]
    names: dict[str, Any] = {
        "model": "voice",
        "device": "host",
        "precision": "fp32",
        "variant": "sme2_off",
        "threads": 2,
    }
    series = [
        row(SeriesRow, series_id=name, os_build=build, first_night=start, night=end, nights=2, weeks=[], **names)
        for name, build, start, end in builds
    ]
    series.append(replace(series[0], series_id="other", precision="fp16"))
    page = device.page(row(DeviceRow), [], series, [], ([], []), ([], []))
    (histories,) = [block for section in page.sections for block in section.blocks if isinstance(block, Histories)]
    old, new, other = (histories.series[name] for name in ("old", "new", "other"))
    assert (old["build"], old["after"]) == ("6.1.84", {"id": "new", "build": "6.1.99", "night": last})
    assert (new["build"], new["before"]) == ("6.1.99", {"id": "old", "build": "6.1.84", "night": first})
    assert ("before" in old, "after" in new, "build" in other) == (False, False, False)


def test_names_from_outside_end_no_element_and_lead_nowhere_else(small: Pages) -> None:
    files = {address: small.html(address) for address in read_keys(small.site)}
    # no page contains them as such, no data of a script does, and no address leaves the folder
    acting = re.compile("[\u202e\x1b\x9b]|\\\\u(202e|001b|009b)|<script>alert")
    assert [address for address, text in files.items() if acting.search(text)] == []
    assert not any("../" in address for address in files)
    assert any("alert" in text for text in files.values())


def test_an_empty_warehouse_says_how_to_measure(maker: BundleMaker) -> None:
    with open_read_only(maker.warehouse) as connection:
        pages = Pages(Site(Reader(connection), "x"))
        assert "Start a sweep: etfarm sweep" in pages.read("index.html").answer
        for address in ("nights.html", "models.html", "devices.html", "sme2.html", "runners.html", "compare.html"):
            pages.read(address)


@pytest.mark.parametrize(
    ("variant", "has_sme2", "answer"),
    [
        ("sme2_off", False, "No real device of this farm is known to have SME2, and nothing ran with it."),
        ("sme2_on", True, "Real devices that are known to have SME2: 1 of 1. Series that ran with it on: 1, none "),
    ],
)
def test_the_page_of_sme2_says_where_it_is_and_was_used(variant: str, has_sme2: bool, answer: str) -> None:
    page = sme2.page(reader_of(row(DeviceRow, sme2=has_sme2)), [row(SeriesRow, variant=variant)], [])
    assert plain_text(page.answer).startswith(answer)


def test_the_feed_is_atom_with_an_entry_for_each_night_and_incident(pages: Pages) -> None:
    feed = ElementTree.fromstring(pages.html("feed.atom"))
    names = {"atom": "http://www.w3.org/2005/Atom"}
    entries = [
        (entry.findtext("atom:id", "", names), entry.findtext("atom:title", "", names))
        for entry in feed.findall("atom:entry", names)
    ]
    assert len({entry_id for entry_id, _ in entries}) == len(entries)
    night = pages.read(f"nights/{NEWEST}.html")
    assert next(title for entry_id, title in entries if entry_id.endswith(NEWEST)) == night.answer
    assert sum(" slower since " in title and ", incident " in title for _, title in entries) >= 2
