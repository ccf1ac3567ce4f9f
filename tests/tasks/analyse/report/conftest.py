"""What every test of the report needs."""

from pathlib import Path

import pytest

from tests.fixtures.warehouse import BundleMaker


@pytest.fixture
def maker(tmp_path: Path) -> BundleMaker:
    return BundleMaker(tmp_path)
