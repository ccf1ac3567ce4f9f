"""What every test of the report needs."""

from pathlib import Path

import pytest

from tests.fixtures.warehouse import Farm


@pytest.fixture
def farm(tmp_path: Path) -> Farm:
    return Farm(tmp_path)
