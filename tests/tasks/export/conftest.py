"""Exports that several tests of this package read, made once in a test run."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tasks.export.exported import Export
from tasks.export.recipes import RECIPES
from tests.fixtures.exports import export_model


@pytest.fixture(scope="session")
def shared_exports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the exports that all workers of a test run share; what is in it must not be changed."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared-exports"


@pytest.fixture(scope="session")
def linear(shared_exports: Path) -> Export:
    """The smallest model of the zoo."""
    return export_model("linear", "fp32", shared_exports)


@pytest.fixture(scope="session")
def toys(shared_exports: Path) -> dict[str, Export]:
    """toy_cnn in every precision, two exports at a time."""
    with ThreadPoolExecutor(2) as pool:
        exports = pool.map(lambda precision: export_model("toy_cnn", precision, shared_exports), RECIPES)
        return dict(zip(RECIPES, exports, strict=True))


def runs(pid: int) -> bool:
    """Return whether a process exists that has not ended."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(state.strip()) and not state.startswith("Z")
