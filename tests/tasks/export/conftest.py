"""Exports that several tests of this package read, kept by their content from one test run to the next."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tasks.export.exported import Export
from tasks.export.process.child import avoid_repeated_work
from tasks.export.recipes import RECIPES
from tests.fixtures.exports import export_model
from tests.fixtures.paths import KEPT


@pytest.fixture(scope="session", autouse=True)
def export_process() -> None:
    """Exports of this process are as quick as those of a process of an export."""
    if "torch" in sys.modules:
        avoid_repeated_work()


@pytest.fixture(scope="session")
def linear() -> Export:
    """The smallest model of the zoo; its files must not be changed."""
    return export_model("linear", "fp32", KEPT / "exports")


def toy(precision: str) -> Export:
    """Export toy_cnn once; its files must not be changed."""
    return export_model("toy_cnn", precision, KEPT / "exports")


@pytest.fixture(scope="session")
def toys() -> dict[str, Export]:
    """toy_cnn in every precision, exported two at a time."""
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(RECIPES, pool.map(toy, RECIPES), strict=True))


@pytest.fixture
def exports(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The exports folder of a working directory, whose name needs quotes, with the module's MODELS as model.py."""
    folder = tmp_path / "it's here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    Path("model.py").write_text(request.module.MODELS, encoding="utf-8")
    return folder / "exports"


def runs(pid: int) -> bool:
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(state.strip()) and not state.startswith("Z")
