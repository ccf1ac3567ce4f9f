"""What tests of the warehouse share."""

import copy
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from sql.warehouse import open_read_only
from tests.fixtures.warehouse import BundleMaker


@pytest.fixture(scope="module")
def farm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BundleMaker]:
    """One warehouse for all questions of a module, with the sessions that its function `write_sessions` writes.

    It stays open for reading: opening it takes longer than most questions.
    """
    maker = BundleMaker(tmp_path_factory.mktemp("farm"))
    request.module.write_sessions(maker)
    assert maker.load().refused == []
    with open_read_only(maker.warehouse):
        yield maker


@pytest.fixture
def copied_farm(farm: BundleMaker, tmp_path: Path) -> BundleMaker:
    """The warehouse of the module as a copy, which a test may change."""
    maker = copy.copy(farm)
    maker.warehouse = Path(shutil.copy(farm.warehouse, tmp_path))
    return maker
