"""The report names series whose level moved slowly, beside the verdicts and without failing anything."""

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Literal

import pytest

from tasks.judge.decisions import Decision, Decisions
from tasks.maintain.decisions import store_decisions
from tests.fixtures.nights import fields_of, night_of
from tests.fixtures.report import report_of
from tests.fixtures.warehouse import BundleMaker

pytest.importorskip("ruptures", reason="the drift extra is not installed")
TITLE = "Moved slowly over weeks"


@pytest.fixture
def maker(tmp_path: Path) -> BundleMaker:
    """Four weeks of two models, one of which becomes 0.15 % slower each night."""
    made = BundleMaker(tmp_path)
    for day in range(1, 29):
        fields = json.loads(json.dumps(fields_of(day)).replace("2026-11", "2026-10"))  # no night is in the future
        night_of(made, day, 1.0015**day, sessions=3, **fields)
        night_of(made, day, sessions=3, model__name="steady", **fields)
    return made


def test_a_slow_drift_is_named_with_its_extent_and_its_beginning(maker: BundleMaker) -> None:
    # when the report of the last night is written
    report = report_of(maker)
    # then the drift is a line of the first section, and neither model has another verdict for it
    words = report["verdicts"].words
    assert f"{TITLE}; this is information and fails no sweep:" in words
    line = words.partition("fails no sweep:")[2].strip()
    assert line.startswith("toy fp32 on host with SME2 off and one thread: +")
    change = float(line.partition("thread: +")[2].partition(" %")[0])
    assert 2 < change < 4.2
    assert "steady fp32 on host" not in line.partition("step")[0]
    assert "regression" not in words.partition(TITLE)[0]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "night", "is_named"),
    [
        pytest.param("baseline_reset", date(2026, 10, 20), False, id="nights before a reset are not looked at"),
        pytest.param("night_exclusion", date(2026, 10, 14), True, id="an excluded night ends nothing"),
    ],
)
def test_a_drift_is_looked_for_in_the_nights_that_count(
    maker: BundleMaker, kind: Literal["baseline_reset", "night_exclusion"], night: date, is_named: bool
) -> None:
    # given a decision of the user about a night
    maker.load()
    decision = Decision(id="0000000a", kind=kind, reason="x", decided_at=datetime.now(UTC), decided_by="a", night=night)
    store_decisions(maker.warehouse, Decisions((decision,)))
    # then only the nights after a reset count, and a night that is left out interrupts nothing
    assert (TITLE in report_of(maker)["verdicts"].words) is is_named
