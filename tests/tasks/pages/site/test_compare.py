"""The pages that compare: every choice of the form leads to a page, and two cells add up to their times."""

import json
import re
import shlex
from typing import Any

import duckdb
import pytest

from tasks.pages.page import Command
from tasks.pages.site import compare
from tasks.pages.site.page_keys import read_keys
from tasks.results.compare import compare_arms
from tests.fixtures.pages import Pages


def choices(pages: Pages) -> dict[str, Any]:
    """The kinds that the form offers, by their titles."""
    (text,) = re.findall(r'<script type="application/json">(\{"kinds".*)</script>', pages.html("compare.html"))
    return {kind["title"]: kind for kind in json.loads(text)["kinds"]}


def test_every_kind_of_the_form_leads_to_a_page_with_a_result_or_the_sentence_of_the_terminal(pages: Pages) -> None:
    kinds = choices(pages)
    assert kinds.keys() >= {"Nights", "Sweeps", "Devices", "Models", "Precisions", "Numbers of threads"}
    for title, kind in kinds.items():
        (_, _, a), (_, _, b), *_ = kind["options"]
        page = pages.read(kind["address"].replace("{a}", a).replace("{b}", b))
        assert "series" in page.answer or "nothing to compare: no cell" in page.answer, title


def test_two_cells_state_what_differs_and_their_categories_add_up_to_their_times(
    pages: Pages, connection: duckdb.DuckDBPyConnection
) -> None:
    # given the published pair of a cell that changed with that of its last good night
    address = next(each for each in read_keys(pages.site) if each.startswith("comparisons/cells/"))
    cells = address.removeprefix("comparisons/cells/").removesuffix(".html").split("..")
    page = pages.read(address)
    assert page.column("differs", "What")[0] == "night"
    assert page.answer.count(" ms") >= 2
    # then each side of the table of categories is the time of its cell
    for side, cell in zip("AB", cells, strict=True):
        ((time_ms,),) = connection.execute("SELECT time_ms FROM series_latency WHERE cell = ?", [cell]).fetchall()
        assert sum(map(float, page.column("time", side))) == pytest.approx(time_ms, abs=0.002)
    # and the page of the cell leads here
    assert f"../{address}" in pages.read(f"cells/{cells[1]}.html").links


def test_a_shell_reads_a_foreign_name_in_the_command_of_a_comparison_as_one_word(
    small: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given the comparison of two devices, one of which is named after a command of a shell
    result = compare_arms(small.site.reader, "model:a..b", "model:c...d")
    monkeypatch.setattr(compare, "compare_arms", lambda *_: result)
    page = compare.values_page(small.site.reader, "device", "phone", "x; $(reboot)")
    (command,) = [block.text for block in page.sections[0].blocks if isinstance(block, Command)]
    assert shlex.split(command) == ["etfarm", "compare", "device:phone", "device:x; $(reboot)"]
