"""Which incidents are named of a series."""

from datetime import date, timedelta
from typing import Any

import pytest

from tasks.results.incidents import IncidentRow, find_accepted
from tests.tasks.pages.rows import row, verdict


@pytest.mark.parametrize(
    ("changes", "days", "is_named"),
    [
        ({}, 0, True),
        ({}, 21, True),
        ({}, 22, False),
        ({}, -1, False),
        ({"state": "fixed"}, 1, False),
        ({"devices": ["other"]}, 1, False),
        ({"precisions": ["fp16"]}, 1, False),
        ({"models": ["other"]}, 1, False),
    ],
)
def test_an_accepted_change_is_named_while_the_baseline_that_began_with_it_may_be_short(
    changes: dict[str, Any], days: int, is_named: bool
) -> None:
    closed_on = date(2026, 11, 8)
    scope = {
        "models": ["toy"],
        "devices": ["host"],
        "precisions": ["fp32"],
        "state": "accepted",
        "closed_on": closed_on,
    }
    accepted = row(IncidentRow, **scope | changes)
    found = find_accepted([accepted], verdict("no change"), closed_on + timedelta(days=days))
    assert (found is accepted) == is_named
