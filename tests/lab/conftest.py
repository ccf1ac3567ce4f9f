"""Fixtures of the virtual lab; tests/fixtures/devices.py has those of its single daemons."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures.lab import Lab, exclusive_lab


@pytest.fixture
def lab_down(tmp_path: Path) -> Iterator[Lab]:
    """A lab that is down, and will be down again after the test."""
    with exclusive_lab(tmp_path / "var") as lab:
        yield lab


@pytest.fixture
def lab(lab_down: Lab) -> Lab:
    lab_down.up()
    return lab_down
