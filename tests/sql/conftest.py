"""What tests of the warehouse share."""

from pathlib import Path

import pytest

from tests.fixtures.warehouse import BundleMaker


@pytest.fixture
def maker(tmp_path: Path) -> BundleMaker:
    """Writes bundles, loads them into an empty warehouse and asks it."""
    return BundleMaker(tmp_path)
