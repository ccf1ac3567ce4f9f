"""The report names series whose level moved slowly, beside the verdicts and without failing anything."""

import json
from pathlib import Path

import pytest

from tasks.pages.verdicts import verdicts
from tasks.results.reader import open_answers
from tests.fixtures.nights import fields_of, night_of
from tests.fixtures.warehouse import BundleMaker
from tests.tasks.pages.conftest import Part

pytest.importorskip("ruptures", reason="the drift extra is not installed")
TITLE = "Moved slowly over weeks; this is information and fails no sweep:"


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four weeks of a model that becomes 0.15 % slower each night."""
    maker = BundleMaker(tmp_path_factory.mktemp("drift"))
    for day in range(1, 29):
        fields = json.loads(json.dumps(fields_of(day)).replace("2026-11", "2026-10"))  # no night is in the future
        night_of(maker, day, 1.0015**day, sessions=3, **fields)
    maker.load()
    return maker.warehouse


def test_a_slow_drift_is_named_with_its_extent_and_its_beginning(warehouse: Path) -> None:
    with open_answers(warehouse, None) as answers:
        before, _, line = Part.of(verdicts(answers)).words.partition(TITLE)
    assert line.strip().startswith("toy fp32 on host with SME2 off and one thread: +")
    change = float(line.partition("thread: +")[2].partition(" %")[0])
    assert 2 < change < 4.2
    assert "regression" not in before
