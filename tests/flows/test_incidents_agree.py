"""Random histories of a farm: an incident has one onset and one cause, in whatever order its nights are loaded, and
every place that lists open incidents has the same ones, under the same name, in the same state."""

import json
import random
import re
import xml.etree.ElementTree as ElementTree
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from flows.cli.mcp_tools import Tools
from flows.sweep_result import SweepResult, build_message
from tasks.judge.decisions import Decision, Decisions, Selector
from tasks.judge.incident_parts import OPEN
from tasks.maintain.decisions import store_decisions
from tasks.pages.site.site import Site
from tasks.results.incidents import IncidentRow, open_incidents, read_incidents
from tasks.results.reader import open_answers, open_reader
from tasks.results.verdicts import VerdictRow
from tasks.store.workspace import Workspace
from tests.fixtures.command import Command
from tests.fixtures.nights import failed_night_of, fields_of, night_of
from tests.fixtures.pages import Pages
from tests.fixtures.warehouse import BundleMaker

BASELINE, NIGHTS = 4, 12
MODELS, DEVICE_PAGES = ("voice", "ranker"), ["devices/host.html"]
EVENTS = ("same", "same", "slower", "back", "device", "failed", "busy", "absent", "inaccurate")
THOROUGH, LONG = [pytest.mark.thorough], [pytest.mark.thorough, pytest.mark.long]
SEEDS = [0, *(pytest.param(seed, marks=THOROUGH if seed < 6 else LONG) for seed in range(1, 20))]
OUTPUT = {"output": 0, "reference": "eager", "max_abs_error": 0.5, "max_rel_error": 0.5, "nonfinite_mismatches": 0}
OUTPUT |= {"snr_db": 2.5, "min_snr_db": 10.0, "is_inaccurate": True}
Open = set[tuple[str, str, str]]
"""Id, state and name of each open incident."""


def write_history(maker: BundleMaker, chance: random.Random) -> None:
    """Write nights of two models, in which one event after another happens to one of them or to the device."""
    factors, content = dict.fromkeys(MODELS, 1.0), dict.fromkeys(MODELS, 1)
    device, failing = 1.0, set[str]()
    for day in range(1, NIGHTS + 1):
        model, event = chance.choice(MODELS), chance.choice(EVENTS) if day > BASELINE else "same"
        failing = failing - {model} | ({model} if event == "failed" else set())
        device = chance.choice([1.0, 1.4]) if event == "device" else device
        if event in ("slower", "back"):
            factors[model] = factors[model] * 1.2 if event == "slower" else 1.0
            content[model] += 1
        for name, factor in factors.items():
            fields: dict[str, Any] = {"model__name": name, **fields_of(day)}
            fields["sweep"]["source"] = {"commit": f"{day:040x}", "author": f"Author {day}"}
            if name in failing:
                failed_night_of(maker, day, 2, **fields)
            elif name != model or event not in ("absent", "busy", "inaccurate"):
                night_of(maker, day, factor * device, model__pte_sha256=f"{name}{content[name]}", **fields)
            elif event != "absent":
                bad = {"status": "invalid", "reason_code": "load", "reason": "load 5 above 1"}
                far = {"accuracy": [OUTPUT]}
                night_of(maker, day, 1.0, 5, **fields, **(bad if event == "busy" else far))


def decide(chance: random.Random) -> Decisions:
    """Return an excluded night of a model, and an accepted onset of the other."""
    excluded, onset = sorted(chance.sample(range(BASELINE + 1, NIGHTS + 1), 2))
    common: dict[str, Any] = {
        "reason": "x",
        "decided_by": "a@b",
        "decided_at": datetime(2026, 11, NIGHTS, 9, tzinfo=UTC),
    }
    night: dict[str, Any] = {
        "kind": "night_exclusion",
        "night": date(2026, 11, excluded),
        "series": Selector(model="voice"),
    }
    acceptance: dict[str, Any] = {
        "kind": "acceptance",
        "night": date(2026, 11, onset),
        "series": Selector(model="ranker"),
    }
    return Decisions((Decision(id="1" * 8, **night, **common), Decision(id="2" * 8, **acceptance, **common)))


@pytest.fixture(params=SEEDS)
def chance(request: pytest.FixtureRequest) -> random.Random:
    return random.Random(request.param)


@pytest.fixture
def decisions(chance: random.Random) -> Decisions:
    return decide(chance)


@pytest.fixture
def farm(chance: random.Random, decisions: Decisions, maker: BundleMaker) -> BundleMaker:
    """A history that was loaded at once, before the decisions on it."""
    write_history(maker, chance)
    maker.load()
    store_decisions(maker.warehouse, decisions)
    return maker


def test_incidents_are_the_same_in_any_order_of_loading_and_in_every_place(
    farm: BundleMaker, decisions: Decisions, chance: random.Random, tmp_path: Path, command: Command
) -> None:
    # when nights come late, in another order, and decisions between them
    late, nights = BundleMaker(tmp_path / "late"), sorted(farm.bundles.glob("nightly-*"))
    chance.shuffle(nights)
    first, second = sorted(chance.sample(range(1, len(nights)), 2))
    for number, batch in enumerate((nights[:first], nights[first:second], nights[second:])):
        late.load(*batch)
        if number:
            store_decisions(late.warehouse, decisions)
    assert late.ask("FROM incident ORDER BY ALL") == farm.ask("FROM incident ORDER BY ALL")
    assert_one_onset_and_one_cause(farm)
    # then every place lists those that are open, and no other
    with open_reader(farm.warehouse) as reader:
        rows = open_incidents(read_incidents(reader))
        pages = Pages(Site(reader, "x"))
        for places in (["index.html"], ["incidents.html"], [f"models/{name}.html" for name in MODELS], DEVICE_PAGES):
            assert set().union(*(open_on_page(pages, place) for place in places)) == expected(rows), places
        assert open_in_feed(pages.html("feed.atom")) == expected(rows)
    words = ("verdicts", "--warehouse", farm.warehouse)
    lines = command(*words).lines
    assert open_in_lines(lines) == expected(rows)
    documents = json.loads(command(*words, "--format", "json").out)["incidents"]
    tool = Tools(Workspace(tmp_path, farm.warehouse), tmp_path / "traces")
    answers = tool.verdicts()["open_incidents"]
    tool.end()
    assert {(each["incident"], each["state"], each["title"]) for each in documents} == expected(rows)
    tabled = [dict(zip(answers["columns"], row, strict=True)) for row in answers["foreign_text"]["rows"]]
    assert {(each["incident"], each["state"], each["title"]) for each in tabled} == expected(rows)
    # and the message names those of its sweep, then counts the others and names the first of them
    named, others, count = open_in_message(farm, tmp_path)
    assert (named | others <= expected(rows), named & others, len(named) + count) == (True, set(), len(rows))
    assert len(others) == min(count, 5)


def expected(rows: list[IncidentRow]) -> Open:
    return {(row.incident_id, row.state, row.title) for row in rows}


def assert_one_onset_and_one_cause(farm: BundleMaker) -> None:
    """One night can have caused every part of an incident, and its cause is what that night has."""
    asked = "count(DISTINCT incident_id), count(DISTINCT (kind, subject)), max(last_good) < min(onset)"
    parts = farm.ask(f"SELECT {asked} FROM incident_part GROUP BY incident_id")
    assert all(part[:2] == (1, 1) and part[2] in (True, None) for part in parts)
    parts = farm.ask("SELECT incident_id, series_id, device, metric FROM incident_part")
    assert len(set(parts)) == len(parts)
    bad = "SELECT incident_id, device, series_id, metric FROM _shown_verdict WHERE verdict != 'no change'"
    assert farm.ask(f"{bad} AND incident_id IS NOT NULL GROUP BY ALL HAVING count(DISTINCT changed) > 1") == []
    commits = farm.ask("SELECT day(onset), day(last_good), changed FROM incident WHERE kind = 'model'")
    for onset, last_good, changed in commits:
        (author,) = [each for each in changed if each["fact"] == "commit author"]
        assert [author[side].split()[-1] for side in ("before", "after")] == [str(last_good), str(onset)]


def open_on_page(pages: Pages, address: str) -> Open:
    cards = {name: text.rsplit(" ", 1) for name, text in pages.read(address).cards.items()}
    return {(name, state, title) for name, (title, state) in cards.items()}


def open_in_lines(lines: list[str]) -> Open:
    matches = [re.match(r"(.*?) since [^(]*\((\w+), incident (\w+)\)", line) for line in lines]
    return {(match[3], match[2], match[1]) for match in matches if match}


def open_in_feed(text: str) -> Open:
    atom = "{http://www.w3.org/2005/Atom}"
    entries = [
        (each.findtext(f"{atom}id", ""), each.findtext(f"{atom}title", "")) for each in ElementTree.fromstring(text)
    ]
    lines = [title for name, title in entries if "incident" in name]
    return {each for each in open_in_lines(lines) if each[1] in OPEN}


def open_in_message(farm: BundleMaker, tmp_path: Path) -> tuple[Open, Open, int]:
    """Return the incidents that the message of the newest sweep names as its own, those of others, and their number."""
    sweep_id = f"nightly-2026-11-{NIGHTS:02}"
    with open_answers(farm.warehouse, sweep_id) as answers:
        rows = answers.rows(VerdictRow)
    result = SweepResult(sweep_id, [], {}, "regression", verdicts=rows, report=tmp_path / "report.html")
    lines = build_message(result, Workspace(tmp_path, farm.warehouse)).body.splitlines()
    of_others = [line.partition(": ")[2] for line in lines if line.startswith("- ")]
    counts = [
        int(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("open incidents that this sweep did not")
    ]
    own = [line for line in lines if not line.startswith("- ")]
    return open_in_lines(own), open_in_lines(of_others), sum(counts)
