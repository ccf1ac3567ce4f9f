"""The pages that compare, from rows."""

from datetime import date
from typing import Any

import pytest

from tasks.pages.html import as_html
from tasks.pages.markdown import table_markdown
from tasks.pages.page import Choice, Points
from tasks.pages.site import compare
from tasks.results.changes import Comparison, SeriesChange
from tasks.results.compare import TwoNightsRow
from tasks.results.series import NightRow, SeriesRow
from tasks.results.table import Table
from tasks.results.text import plain_text
from tests.tasks.pages.rows import reader_of, row

FIRST, SECOND = date(2026, 11, 1), date(2026, 11, 2)


def test_the_command_that_lists_hidden_rows_is_code() -> None:
    # given more series than a page lists
    rows = [row(TwoNightsRow, cell=str(number), ratio=1.0) for number in range(402)]
    page = compare.nights_page(reader_of(*rows), FIRST, SECOND)
    (table,) = page.sections[0].blocks
    assert isinstance(table, Table)
    # then the line below the table has no backticks in HTML, and a code span in Markdown
    command = "etfarm compare 2026-11-01 2026-11-02"
    assert f"2 more rows: <code>{command}</code> lists all, with intervals" in as_html(page)
    assert f"2 more rows: `{command}` lists all, with intervals" in table_markdown(table)


def test_variants_are_named_as_on_all_pages_and_commands_have_the_names_to_type() -> None:
    series = [row(SeriesRow, variant=variant) for variant in ("sme2_off", "sme2_on")]
    page = compare.list_page(reader_of(), series, [row(NightRow, night=SECOND), row(NightRow, night=FIRST)])
    choice, links = next(section.blocks for section in page.sections if section.anchor == "variant")
    assert isinstance(choice, Choice)
    assert isinstance(links, Points)
    assert choice.options == [("SME2 off", "sme2_off", "sme2_off"), ("SME2 on", "sme2_on", "sme2_on")]
    assert choice.command == "etfarm compare variant:{a} variant:{b}"
    assert [plain_text(item) for item in links.items] == ["SME2 off and SME2 on"]


def test_remarks_beyond_the_first_are_counted_as_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    # given 17 cells that a newer one replaces, and a change between two variants
    names: dict[str, Any] = {"model": "toy", "device": "host", "precision": "fp32", "threads": 1}
    change = SeriesChange(**names, variant="sme2_off -> sme2_on", word="slower")
    older = [SeriesChange(**names, variant="sme2_off", word="older cell of A")] * 17
    comparison = Comparison(a="a", b="b", changes=[change], headline="slower", uncompared=older)
    monkeypatch.setattr(compare, "compare_arms", lambda *_: comparison)
    page = compare.values_page(reader_of(), "variant", "sme2_off", "sme2_on")
    table, points = page.sections[0].blocks
    assert isinstance(table, Table)
    assert isinstance(points, Points)
    # then none of them is said to have no counterpart
    assert plain_text(points.items[0]) == "older cell of A: toy fp32 on host, SME2 off, one thread"
    assert plain_text(points.items[-1]) == "2 more: `etfarm compare variant:sme2_off variant:sme2_on` lists all"
    assert page.title == "SME2 off and SME2 on"
    assert [cell.text for cell in table.rows[0]][3] == "off -> on"
