"""Which incidents are named of a series."""

from datetime import date, timedelta
from typing import Any

import pytest

from tasks.results.incidents import IncidentRow, find_accepted
from tests.tasks.pages.rows import row, verdict

CLOSED_ON = date(2026, 11, 8)
SCOPE: dict[str, Any] = {"models": ["toy"], "devices": ["host"], "precisions": ["fp32"], "state": "accepted"}
OTHERS = {"state": "fixed", "devices": ["other"], "precisions": ["fp16"], "models": ["other"]}


@pytest.mark.parametrize(
    ("changes", "days", "is_named"),
    [
        *(({}, days, is_named) for days, is_named in ((0, True), (21, True), (22, False), (-1, False))),
        *(({name: value}, 1, False) for name, value in OTHERS.items()),
    ],
)
def test_an_accepted_change_is_named_while_the_baseline_that_began_with_it_may_be_short(
    changes: dict[str, Any], days: int, is_named: bool
) -> None:
    accepted = row(IncidentRow, closed_on=CLOSED_ON, **SCOPE | changes)
    found = find_accepted([accepted], verdict("no change", night=CLOSED_ON + timedelta(days=days)))
    assert (found is accepted) == is_named
