"""The matrix of a night, from verdicts."""

from tasks.pages.site.matrix import matrix
from tasks.results.text import plain_text
from tests.tasks.pages.rows import verdict


def test_a_series_that_cannot_be_judged_is_sorted_as_one_without_a_change() -> None:
    # given series on two devices: the first has too little data, the second a regression
    rows = [
        verdict("insufficient data", model="a", device="a-phone"),
        verdict("invalid environment", model="a", device="a-phone", threads=2),
        verdict("no change", model="b", device="b-phone"),
        verdict("regression", ratio=1.1, model="z", device="z-phone"),
    ]
    # then device and row of the regression come first
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
