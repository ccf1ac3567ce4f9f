"""The pages of the site: each answers first, its figures are those of SQL, and every link leads to a page."""

import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from datetime import date, datetime
from pathlib import Path

import duckdb
import pytest

from sql.warehouse import insert_rows, open_read_only, writing
from tasks.pages.site.page_cache import read_origins
from tasks.pages.site.site import Site
from tasks.results.reader import Reader
from tests.fixtures.nights import night_of
from tests.fixtures.pages import Pages, target
from tests.fixtures.warehouse import BundleMaker

NEWEST = "2026-11-20"


def emulated_of(connection: duckdb.DuckDBPyConnection) -> str:
    """The emulated device of the farm."""
    ((name,),) = connection.execute("SELECT DISTINCT device FROM device_overview WHERE emulated").fetchall()
    return str(name)


def test_home_answers_first_and_its_counts_are_those_of_sql(
    pages: Pages, connection: duckdb.DuckDBPyConnection
) -> None:
    home = pages.read("index.html")
    verdicts = Counter(
        verdict for (verdict,) in connection.execute(f"SELECT verdict FROM verdict WHERE night = '{NEWEST}'").fetchall()
    )
    assert home.answer.startswith(f"{verdicts['regression']} of {verdicts.total()} series slower: worst ")
    assert f"without a change: {verdicts['no change']}" in home.answer
    counted = re.findall(r": (\d+)\b(?! ms)", home.answer.partition(";")[2])
    assert verdicts["regression"] + sum(map(int, counted)) == verdicts.total()


def test_home_lists_what_changed_with_the_largest_change_of_a_run_first(
    pages: Pages, connection: duckdb.DuckDBPyConnection
) -> None:
    home = pages.read("index.html")
    rows = connection.execute(
        "SELECT round(time_ms - time_ms / ratio, 3) FROM verdict "
        f"WHERE night = '{NEWEST}' AND verdict IN ('regression', 'suspected') ORDER BY 1 DESC"
    ).fetchall()
    assert [float(cell) for cell in home.column("changed", "Adds")] == [ms for (ms,) in rows]
    assert home.column("changed", "Verdict")[0] == "regression since 2026-11-20"
    assert "etfarm compare" in home.words["changed"]


def test_a_slow_device_is_apart_from_the_changes_of_models(pages: Pages, connection: duckdb.DuckDBPyConnection) -> None:
    home = pages.read("index.html")
    assert "phone-002: " in home.words["devices"]
    assert "Check the device, not the models." in home.words["devices"]
    changed = connection.execute(
        f"SELECT model FROM verdict WHERE night = '{NEWEST}' AND device = 'phone-002' AND verdict != 'device slower'"
        " AND verdict != 'no change'"
    ).fetchall()
    listed = [row.split()[0] for row in home.column("changed", "Series") if "phone-002" in row]
    assert sorted(listed) == sorted(model for (model,) in changed)


def test_the_matrix_has_the_time_of_every_judged_series_and_no_emulated_device(
    pages: Pages, connection: duckdb.DuckDBPyConnection
) -> None:
    heads, *rows = pages.read("index.html").tables["matrix"][0]
    assert emulated_of(connection) not in heads
    shown = [(row[0], device, cell) for row in rows for device, cell in zip(heads[4:], row[4:], strict=True)]
    asked = f"SELECT model, device, round(time_ms, 3) FROM verdict WHERE night = '{NEWEST}' AND verdict = 'no change'"
    expected = {(model, device, f"{time_ms:.3f}") for model, device, time_ms in connection.execute(asked).fetchall()}
    assert len(expected) > 1
    assert {row for row in shown if re.fullmatch(r"[\d.,]+", row[2])} == expected


@pytest.mark.thorough
def test_every_link_of_every_page_leads_to_a_page(pages: Pages) -> None:
    # given all pages that are published, and those of cells and sessions that they lead to
    waiting, seen = list(read_origins(pages.site)), set()
    while waiting:
        address = waiting.pop()
        if address in seen or not address.endswith(".html"):
            continue
        seen.add(address)
        page = pages.read(address)
        # then each link has a page, and nothing is loaded from elsewhere
        for link in [
            *page.links,
            *(value["href"] for chart in page.charts for value in chart["values"] if "href" in value),
        ]:
            if (to := target(address, link)) and to not in seen and not to.startswith(("sessions/", "cells/")):
                assert pages.html(to), f"{address} leads to {to}"
                waiting.append(to)
        assert all(target(address, loaded) for loaded in page.loaded if not loaded.startswith("data:"))
    assert {address.split("/")[0] for address in seen} >= {
        "nights",
        "models",
        "devices",
        "sweeps",
        "index.html",
    }


@pytest.mark.thorough
def test_pages_of_a_publication_lead_to_published_pages_only(connection: duckdb.DuckDBPyConnection) -> None:
    site = Site(Reader(connection), "x")
    site.published = wanted = frozenset(read_origins(site))
    pages = Pages(site)
    for address in (each for each in wanted if each.endswith(".html")):
        page = pages.read(address)
        hrefs = [value["href"] for chart in page.charts for value in chart["values"] if "href" in value]
        reached = {to for link in [*page.links, *hrefs] if (to := target(address, link))}
        assert reached <= wanted


def test_a_series_shows_every_session_and_night_with_the_times_of_sql(
    pages: Pages, connection: duckdb.DuckDBPyConnection
) -> None:
    asked = "SELECT series_id FROM verdict WHERE is_newest AND model = 'bert_03' AND device = 'phone-001'"
    [(series_id,)] = connection.execute(asked).fetchall()
    # when the files are read that the page of its device names
    page = pages.read("devices/phone-001.html")
    assert page.histories["series"][series_id]["name"].startswith("bert_03 ")
    history = pages.history(page, series_id)
    # then they have each night once, with the time and verdict of SQL, and each session that counts
    nights = connection.execute(
        "SELECT night::VARCHAR, time_ms, verdict FROM verdict"
        f" WHERE series_id = '{series_id}' AND device = 'phone-001' ORDER BY night"
    ).fetchall()
    assert [(each["night"], each["time_ms"], each["verdict"]) for each in history] == [
        (night, pytest.approx(time_ms, abs=1e-5), verdict) for night, time_ms, verdict in nights
    ]
    sessions = connection.execute(
        "SELECT session_id, median_ms FROM session_latency"
        f" WHERE series_id = '{series_id}' AND device = 'phone-001' AND runs > 0"
        " AND session_id IN (SELECT session_id FROM session_overview WHERE purpose IS NULL)"
    ).fetchall()
    shown = {text.split()[0]: float(text.split()[1]) for each in history for text in each["sessions"].split(",")}
    assert len(shown) > 5 * len(history)
    of_sql = {session: pytest.approx(median_ms, rel=0.1) for session, median_ms in sessions}
    assert len(of_sql) > 20
    assert {session: shown.get(session) for session in of_sql} == of_sql  # of old nights, the view has no runs
    # and the newest verdict is on the page of the device without any script
    assert "regression" in page.column("series", "Verdict")


def test_notes_and_excluded_nights_are_on_the_page_of_their_series_alone(maker: BundleMaker) -> None:
    # given two models, a note on one of them and an excluded night of it
    for day in (1, 2, 3):
        night_of(maker, day, model__name="./voice.py:make")
        night_of(maker, day, model__name="other")
    maker.load()
    common = {"model": "./voice.py:make", "decided_at": datetime(2026, 11, 4), "decided_by": "somebody"}
    rows = [
        {"decision_id": "a", "kind": "note", "night": None, "reason": "known, ticket 12", **common},
        {"decision_id": "b", "kind": "night_exclusion", "night": date(2026, 11, 2), "reason": "hot", **common},
    ]
    with writing(maker.warehouse) as connection:
        insert_rows(connection, "decision", rows)
    # when the pages of both series are read
    with open_read_only(maker.warehouse) as connection:
        site = Site(Reader(connection), "x")
        (device,) = site.devices
        stated = Pages(site).read(f"devices/{device}.html").histories["series"]
    notes = {each["model"]: each.get("notes") for each in stated.values()}
    # then only the first one has them, and the excluded night its event
    assert notes == {
        "voice": [
            {"night": None, "event": "note", "text": "Note: known, ticket 12 (somebody, 2026-11-04)"},
            {
                "night": "2026-11-02",
                "event": "night exclusion",
                "text": "Night exclusion 2026-11-02: hot (somebody, 2026-11-04)",
            },
        ],
        "other": None,
    }


def test_times_of_an_emulated_device_are_on_no_page(pages: Pages, connection: duckdb.DuckDBPyConnection) -> None:
    device = pages.read(f"devices/{emulated_of(connection)}.html")
    assert "emulated: its times mean nothing" in device.answer
    assert "series" not in device.tables


def test_names_from_outside_end_no_element_and_lead_nowhere_else(maker: BundleMaker) -> None:
    # given names that would be HTML, a script, another folder, another direction of text or a command of a terminal
    evil = "</script><script>alert(1)</script>\u202e\x1b[2J"
    for day in (1, 2):
        night_of(maker, day, model__name=evil, device__name="../../x\u202e\x9b")
    maker.load()
    # when all pages are made
    with open_read_only(maker.warehouse) as connection:
        site = Site(Reader(connection), "x")
        files = {address: site.file(address) for address in read_origins(site)}
    html = {address: file for address, file in files.items() if address.endswith(".html")}
    # then no page contains them as such, no data of a script does, and no address leaves the folder
    acting = re.compile("[\u202e\x1b\x9b]|\\\\u(202e|001b|009b)")
    drawn = {address: file for address, file in files.items() if file and address != "assets/vega.js"}
    assert [address for address, file in drawn.items() if acting.search(file.content)] == []
    assert [address for address, file in html.items() if file is None or "<script>alert" in file.content] == []
    assert not any(".." in address.replace("..2026", "") for address in files)
    assert any("alert" in file.content for file in files.values() if file)


def test_the_page_of_a_model_has_the_figures_of_its_outputs(maker: BundleMaker) -> None:
    # given two modes of one content, of which each compared its outputs
    compared = [{"output": 0, "max_abs_error": 1e-6, "max_rel_error": 1e-3, "nonfinite_mismatches": 0}]
    night_of(maker, 1, accuracy=compared)
    maker.load()
    with open_read_only(maker.warehouse) as connection:
        page = Pages(Site(Reader(connection), "x")).read("models/toy.html")
        sweep = Pages(Site(Reader(connection), "x")).read("sweeps/nightly-2026-11-01.html")
    # then the page of the model and that of the sweep have the same table of them
    assert page.tables["accuracy"] == sweep.tables["accuracy"] != []


def test_an_empty_warehouse_says_how_to_measure(maker: BundleMaker) -> None:
    with open_read_only(maker.warehouse) as connection:
        pages = Pages(Site(Reader(connection), "x"))
        assert "Start a sweep: etfarm sweep" in pages.read("index.html").answer
        for address in ("nights.html", "models.html", "devices.html", "sme2.html", "runners.html"):
            pages.read(address)


def test_the_page_of_sme2_counts_a_pair_only_if_both_sides_were_measured(
    pages: Pages, connection: duckdb.DuckDBPyConnection
) -> None:
    # given a farm whose sweeps ran each model with SME2 on or off, not both
    both = "SELECT count(*) FROM sme2_speedup WHERE sessions_on > 0 AND sessions_off > 0"
    assert connection.execute(both).fetchall() == [(0,)]
    # then there is no pair to count
    assert "pair" not in pages.read("sme2.html").answer


@pytest.mark.parametrize(
    ("variant", "facts", "answer"),
    [
        ("sme2_off", {"sme2": False}, "No real device of this farm is known to have SME2, and nothing ran with it."),
        (
            "sme2_on",
            {"sme2": True},
            "Real devices that are known to have SME2: 1 of 1. Series that ran with it on: 1, none of them also with "
            "it off, so its gain is unknown. Add both variants to the sweep file: "
            "variants: [sme2_on, sme2_off].",
        ),
    ],
)
def test_the_page_of_sme2_says_where_it_is_and_was_used(
    maker: BundleMaker, variant: str, facts: dict[str, bool], answer: str
) -> None:
    night_of(maker, 1, variant=variant, device__facts=facts)
    maker.load()
    with open_read_only(maker.warehouse) as connection:
        assert Pages(Site(Reader(connection), "x")).read("sme2.html").answer == answer


def test_the_page_of_sme2_says_of_the_newest_sweep_what_its_report_says(pages: Pages) -> None:
    page = pages.read("sme2.html")
    of_sweep = [name for name in page.words if name.startswith("sme2-")]
    assert of_sweep == [f"sme2-nightly-{NEWEST}"]
    # the same words and figures as on the page of the sweep, under a title with its name
    expected = pages.read(f"sweeps/nightly-{NEWEST}.html").words["sme2"]
    words = page.words[of_sweep[0]].partition(NEWEST)[2].split()
    expected_words = expected.partition("What SME2 did")[2].split()
    assert len(expected_words) > 50
    assert words[: len(expected_words)] == expected_words


def test_the_feed_is_atom_with_an_entry_for_each_night_and_regression(pages: Pages) -> None:
    feed = ElementTree.fromstring(pages.html("feed.atom"))
    names = {"atom": "http://www.w3.org/2005/Atom"}
    entries = feed.findall("atom:entry", names)
    ids = [entry.findtext("atom:id", "", names) for entry in entries]
    assert len(set(ids)) == len(ids)
    newest = next(entry for entry in entries if entry.findtext("atom:id", "", names).endswith(NEWEST))
    assert newest.findtext("atom:title", "", names) == pages.read("index.html").answer
    assert sum("regression" in (entry.findtext("atom:title", "", names)) for entry in entries) >= 2


@pytest.mark.parametrize(
    "address",
    [
        "nothing.html",
        "nights/2026-02-30.html",
        "models/none.html",
        "histories/phone-001/2026-11-17.js",
        "histories/none/2026-11-16.js",
        "../x",
    ],
)
def test_there_is_no_page_where_there_is_nothing(pages: Pages, address: str) -> None:
    assert pages.site.file(address) is None


def test_the_warehouse_is_not_needed_by_a_page_that_was_read(pages: Pages, warehouse: Path) -> None:
    assert str(warehouse.parent) not in pages.html("index.html")
