"""What tests of bundles, stores, rows, loads and reports share."""

from pathlib import Path

import pytest

from tasks.store.store import BundleStore, open_store
from tasks.store.var import Var
from tests.fixtures.warehouse import BundleMaker


@pytest.fixture
def maker(tmp_path: Path) -> BundleMaker:
    """Writes bundles, loads them into an empty warehouse and asks it."""
    return BundleMaker(tmp_path)


@pytest.fixture(params=["folder", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> BundleStore:
    """An empty store: a folder, or a bucket."""
    location = None
    if request.param == "s3":
        location = f"s3://{request.getfixturevalue('bucket')}/farm/bundles/"
    return open_store(location, Var(tmp_path / "var"))
