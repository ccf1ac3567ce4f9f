"""One thing has one name on every page, and a count of one is singular."""

import re
from datetime import date

import pytest

from tasks.pages.html import as_html
from tasks.pages.site.cell import Cells
from tasks.pages.site.night import page as night_page
from tasks.pages.site.session import Sessions
from tasks.results.devices import ConditionRow, DeviceNightRow
from tasks.results.naming import series_conditions, series_title, variant_condition
from tasks.results.provenance import CellFactsRow
from tasks.results.series import HistoryRow
from tasks.results.sessions import SessionConditionRow, SessionFactsRow, SessionKeyRow, SessionRow
from tasks.results.table import Table, list_columns
from tasks.results.text import counted, numbered, plain_text
from tests.tasks.pages.rows import answers_of, reader_of, row, verdict


@pytest.mark.parametrize(
    ("count", "figure", "word"),
    [(0, "0 cells", "no cell"), (1, "1 cell", "one cell"), (1200, "1,200 cells", "1,200 cells")],
)
def test_a_count_agrees_with_its_noun(count: int, figure: str, word: str) -> None:
    assert (numbered(count, "cell"), counted(count, "cell")) == (figure, word)


@pytest.mark.parametrize(
    ("variant", "threads", "conditions"),
    [
        ("sme2_on", 4, ["SME2 on", "four threads"]),
        ("sme1", 1, ["SME1", "one thread"]),
        ("unknown", None, []),
        # the sides of a change that differ
        ("sme2_off -> sme2_on", "1 -> 4", ["SME2 off -> SME2 on", "1 -> 4 threads"]),
        ("sme1 -> sme2_on", 2, ["SME1 -> SME2 on", "two threads"]),
    ],
)
def test_conditions_are_named_alike(variant: str, threads: int | str | None, conditions: list[str]) -> None:
    series = verdict("no change", variant=variant, threads=threads)
    assert series_conditions(series) == conditions
    assert series_title(series) == ", ".join(["toy fp32 on host", *conditions])


def test_a_run_that_the_farm_did_not_measure_has_an_unknown_variant() -> None:
    assert variant_condition("other") == "SME2 unknown"


def test_the_pages_of_cell_and_session_name_their_conditions_as_sentences_do() -> None:
    cell = row(CellFactsRow, mode="timing", variant="sme1")
    session = row(SessionFactsRow, session_id="a" * 16, status="succeeded", mode="timing", variant="sme1", attempt=1)
    reader = reader_of(cell, session, row(SessionKeyRow, session_key=1))
    of_cell = Cells(reader, ["c1"]).page(cell, answers_of())
    of_session = Sessions(reader, ["a" * 16]).page("a" * 16)
    assert of_session is not None
    assert "fp32 \u00b7 SME1 \u00b7 one thread" in plain_text(of_cell.subtitle)
    (origin,) = [block for section in of_session.sections if section.anchor == "origin" for block in section.blocks]
    assert isinstance(origin, Table)
    facts = {plain_text(name.text): plain_text(value.text) for name, value in origin.rows}
    assert facts["Measured as"] == "fp32, SME1, one thread, mode timing"


def test_temperatures_are_in_degrees_celsius() -> None:
    rows = (SessionConditionRow, SessionRow, DeviceNightRow, ConditionRow)
    units = {
        (row_class.__name__, name): column.unit
        for row_class in rows
        for name, column in list_columns(row_class).items()
        if "temperature" in name
    }
    assert len(units) == len(rows)
    assert set(units.values()) == {"\u00b0C"}


def test_a_night_without_a_time_is_a_gap_in_the_line_of_a_series() -> None:
    night = date(2026, 11, 20)
    history = row(HistoryRow, device="host", times_ms=[1.0, 2.0, None, 3.0])
    page = night_page(reader_of(history), night, [], [verdict("regression", ratio=1.1)])
    (line,) = re.findall(r'class="spark".*?d="([^"]*)"', as_html(page))
    assert re.sub(r"[\d. ]+", "", line) == "MLM"
