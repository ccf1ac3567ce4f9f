"""One thing has one name on every page, and a count of one is singular."""

import re
from xml.sax.saxutils import escape

import pytest

from tasks.pages import comparison
from tasks.pages.matrix import matrix
from tasks.pages.sparkline import sparkline
from tasks.results.night import night_comparison
from tasks.results.table import build_table
from tasks.results.text import counted, numbered, series_conditions, series_title
from tests.tasks.pages.rows import verdict


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
    # and in the matrix of a night, in a table of cells, and in a JUnit file
    cells = [matrix([series]).rows[0][2]]
    cells += [build_table([series]).rows[0][3]] if isinstance(threads, int) else []
    assert {str(cell.text) for cell in cells} == {conditions[0] if conditions else "SME2 unknown"}
    junit = comparison.WRITERS[".xml"](night_comparison("2026-11-20", [series]))
    assert f'name="{escape(", ".join(["toy fp32", *conditions]))}"' in junit


def test_a_night_without_a_time_is_a_gap_in_the_line_of_a_series() -> None:
    (line,) = re.findall(r'd="([^"]*)"', sparkline([1.0, 2.0, None, 3.0, None, 4.0, 4.0]))
    # and a night between two gaps is a dot
    assert re.sub(r"[\d. ]+", " ", line) == "M L M h M L "


def test_a_sparkline_marks_the_onset_of_a_change_and_draws_what_follows_again() -> None:
    drawn = sparkline([1.0, 1.0, 2.0, 2.0], onset=2, size=(64, 20))
    assert 'class="onset" d="M32.0 0V20"' in drawn
    assert 'class="after" d="M42.0 2.0L62.0 2.0"' in drawn
    assert sparkline([1.0, None], onset=0) == ""
