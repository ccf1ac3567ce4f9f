"""The report names series whose level moved slowly, beside the verdicts and without failing anything."""

import json
import shutil
from datetime import date
from importlib.util import find_spec
from pathlib import Path

import pytest

from tasks.judge.decisions import Decisions
from tasks.maintain.decisions import store_decisions
from tasks.pages.sections.verdicts import verdicts
from tasks.results.reader import open_answers
from tests.fixtures.nights import decision, fields_of, night_of
from tests.fixtures.warehouse import BundleMaker
from tests.tasks.pages.conftest import Part

pytestmark = pytest.mark.skipif(find_spec("ruptures") is None, reason="the drift extra is not installed")
TITLE = "Moved slowly over weeks; this is information and fails no sweep:"


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four weeks of two models, one of which becomes 0.15 % slower each night."""
    maker = BundleMaker(tmp_path_factory.mktemp("drift"))
    for day in range(1, 29):
        fields = json.loads(json.dumps(fields_of(day)).replace("2026-11", "2026-10"))  # no night is in the future
        night_of(maker, day, 1.0015**day, sessions=3, **fields)
        night_of(maker, day, sessions=1, model__name="steady", **fields)
    maker.load()
    return maker.warehouse


def words_of_newest(warehouse: Path) -> str:
    part = Part()
    with open_answers(warehouse, None) as answers:
        part.add(verdicts(answers).blocks)
    return part.words


def test_a_slow_drift_is_named_with_its_extent_and_its_beginning(warehouse: Path) -> None:
    before, _, line = words_of_newest(warehouse).partition(TITLE)
    assert line.strip().startswith("toy fp32 on host with SME2 off and one thread: +")
    change = float(line.partition("thread: +")[2].partition(" %")[0])
    assert 2 < change < 4.2
    # and neither model has another verdict for it
    assert "steady fp32 on host" not in line.partition("step")[0]
    assert "regression" not in before


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "night", "is_named"),
    [
        pytest.param("baseline_reset", date(2026, 10, 20), False, id="nights before a reset are not looked at"),
        pytest.param("night_exclusion", date(2026, 10, 14), True, id="an excluded night ends nothing"),
    ],
)
def test_a_drift_is_looked_for_in_the_nights_that_count(
    warehouse: Path, tmp_path: Path, kind: str, night: date, is_named: bool
) -> None:
    # given a decision of the user about a night
    decided = tmp_path / "warehouse.duckdb"
    shutil.copyfile(warehouse, decided)
    store_decisions(decided, Decisions((decision(kind=kind, night=night),)))
    # then only the nights after a reset count, and a night that is left out interrupts nothing
    assert (TITLE in words_of_newest(decided)) is is_named
