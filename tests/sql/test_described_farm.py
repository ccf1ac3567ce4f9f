"""Public views are a promise: what they show of one described farm changes only where somebody means it."""

import csv

import pytest

from sql.warehouse import query
from tests.fixtures.described_farm import DescribedFarm, write_farm
from tests.sql.figures import FILE, HEAD, figures_of


@pytest.fixture(scope="module")
def maker(tmp_path_factory: pytest.TempPathFactory) -> DescribedFarm:
    described = DescribedFarm(tmp_path_factory.mktemp("described"))
    write_farm(described)
    return described


def test_every_view_shows_the_same_of_the_described_farm(maker: DescribedFarm) -> None:
    with FILE.open(newline="", encoding="utf-8") as stream:
        expected = {tuple(line) for line in csv.reader(stream)}
    shown = {HEAD, *figures_of(maker.warehouse)}
    # Where a view was changed: `python -m tests.sql.figures`, then review the difference of figures.csv.
    assert sorted(expected ^ shown) == []
    # and each view has rows of it
    assert [view for view, column, rows, *_ in shown if column == "" and rows == "0"] == []


def test_every_session_of_the_described_farm_is_loaded(maker: DescribedFarm) -> None:
    bundles = list(maker.bundles.glob("*/*/session.json"))
    assert query(maker.warehouse, "SELECT count(*) FROM session")[1] == [(len(bundles),)]
