"""Which incidents are named of a series."""

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from tasks.results.incident_lookup import find_accepted
from tasks.results.incidents import IncidentRow
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


def test_a_title_counts_models_where_a_runner_made_more_than_four_slower() -> None:
    names = [f"m{number}" for number in range(60)]
    slower = row(IncidentRow, kind="model", subject="runner 1a2b", models=names, devices=["host"])
    assert slower.title == "runner 1a2b: 60 models slower"
    assert replace(slower, models=names[:2]).title == "runner 1a2b: m0 and m1 slower"
