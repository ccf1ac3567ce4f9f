"""A data folder that the tests of a module share: `fill` of the module writes its bundles, and each test has a copy."""

import shutil
from pathlib import Path

import pytest

from flows.warehouse.publish import load_store
from tests.fixtures.command import DataFolder


@pytest.fixture(scope="module")
def loaded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The loaded data folder, which no test changes. It was moved: the paths in its ledger do not exist."""
    folder: Path = tmp_path_factory.mktemp("loaded")
    data = DataFolder(folder / "var")
    request.module.fill(data)
    load_store(data.workspace)
    return (folder / "var").rename(folder / "loaded")


@pytest.fixture
def data_folder(loaded: Path, data: DataFolder) -> DataFolder:
    shutil.copytree(loaded, data.workspace.root, dirs_exist_ok=True)
    data.sessions = len(list(data.bundles.glob("*/*/session.json")))
    return data
