"""Verdicts in the first section of a report (did it get slower?) and in the matrix of a night."""

from datetime import date
from typing import Any

from tasks.pages.matrix import matrix
from tasks.pages.report import sweep_page
from tasks.pages.sections.verdicts import verdicts
from tasks.results.text import plain_text
from tasks.results.verdicts import VerdictRow
from tests.tasks.pages.conftest import Part
from tests.tasks.pages.rows import answers_of, verdict

SLOWER: dict[str, Any] = {"ratio": 1.1, "low": 1.08, "high": 1.12, "since": date(2026, 11, 8), "changed": ".pte file"}
SLOWER |= {"baseline_value": 9e6, "baseline_nights": 7}


def section_of(*rows: VerdictRow) -> Part:
    return Part.of(verdicts(answers_of(*rows)))


def test_a_regression_is_the_first_thing_that_a_reader_meets() -> None:
    # given one of two models that is 10 % slower since some night, from another .pte file
    rows = verdict("regression", cause="`conv` +1.000 ms", **SLOWER), verdict("no change", model="steady")
    part = section_of(*rows)
    # then the section names the model, the change, since when, what changed and why
    answer = "1 of 2 series slower: toy fp32 on host with SME2 off and one thread +10.0 % since 2026-11-08"
    assert part.words.startswith(f"{answer}; without a change: 1.")
    columns = {"Model": "toy", "Verdict": "regression", "Change": "+10.0", "Since": "2026-11-08"}
    columns |= {"What changed": ".pte file", "Cause": "conv +1.000 ms", "95 % interval": "+8.0 to +12.0"}
    assert {head: part.column(head) for head in columns} == {head: [text] for head, text in columns.items()}
    assert part.column("Model", table=1) == ["steady"]
    evidence = "(+10.0 %; eight sessions, 95 % interval +8.0 to +12.0 %)"
    assert part.summary == f"Slower: toy fp32 on host with SME2 off and one thread {evidence}."
    page = sweep_page(answers_of(*rows))
    assert (page.figures[0].value, page.figures[0].label) == ("1", "series slower")


def test_a_first_night_has_nothing_to_compare_with_and_counts_no_regressions() -> None:
    first = verdict("new", baseline_nights=0)
    part = section_of(first)
    assert part.words == "Nothing to compare with: one series without an earlier night that counts."
    assert part.tables == []
    assert "series slower" not in {figure.label for figure in sweep_page(answers_of(first)).figures}


def test_other_figures_that_changed_are_in_a_table_with_both_values() -> None:
    # given a model whose file and memory doubled overnight, and an unchanged latency
    changes = [
        verdict("regression", metric=name, value=value, baseline_value=value / 2, changed=".pte file")
        for name, value in (("peak memory", 96.8e6), (".pte size", 8e6))
    ]
    part = section_of(*changes, verdict("no change", baseline_nights=3))
    assert part.column("Figure") == ["peak memory", ".pte size"]
    assert (part.column("Before"), part.column("After")) == (["48.4 MB", "4 MB"], ["96.8 MB", "8 MB"])
    # then the figure of a file is that of no device, and the latency is counted apart
    assert part.summary.startswith("No series got slower. Worse: toy fp32 on host with SME2 off and one thread: ")
    assert "toy fp32: .pte size 4 MB -> 8 MB" in part.summary
    assert part.words.startswith("other figures worse: 2; 1 of 1 series without a change.")
    assert part.column("Verdict", table=1) == ["no change"]
    figures = sweep_page(answers_of(*changes, verdict("no change", baseline_nights=3))).figures
    assert [(each.value, each.label) for each in figures[:2]] == [("0", "series slower"), ("2", "other figures worse")]


def test_a_series_that_cannot_be_judged_is_sorted_as_one_without_a_change() -> None:
    # given series on two devices: the first has too little data, the second a regression
    rows = [
        verdict("insufficient data", model="a", device="a-phone"),
        verdict("invalid environment", model="a", device="a-phone", threads=2),
        verdict("no change", model="b", device="b-phone"),
        verdict("regression", ratio=1.1, model="z", device="z-phone"),
    ]
    table = matrix(rows)
    assert [column.title for column in table.columns[4:]] == ["z-phone", "a-phone", "b-phone"]
    assert [plain_text(line[0].text) for line in table.rows] == ["`z`", "`a`", "`a`", "`b`"]
    assert plain_text(table.rows[0][4].text) == "10.000 \u25b2 +10.0 %"


def test_devices_and_rows_beyond_the_first_are_counted() -> None:
    devices = [verdict("no change", device=f"d{number:02}") for number in range(21)]
    rows = [verdict("no change", device="d00", model=f"m{number:02}") for number in range(61)]
    where = ", those with the fewest changes: the pages of models and devices have them"
    assert matrix(devices[:20]).hidden == ""
    assert matrix(devices).hidden == f"1 more device{where}"
    assert matrix(rows[:60]).hidden == ""
    assert matrix([*devices, *rows]).hidden == f"1 more device and 2 more rows{where}"
