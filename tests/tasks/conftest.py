"""What tests of bundles, stores, rows, loads and reports share."""

import importlib.util
from pathlib import Path

import pytest

from tasks.store.bundle_store import BundleStore
from tasks.store.workspace import Workspace


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs torch and executorch where the extra is not installed."""
    if item.get_closest_marker("torch") and importlib.util.find_spec("executorch") is None:
        pytest.skip("needs the export extra: pip install 'etfarm[export]'")


@pytest.fixture(params=["folder", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> BundleStore:
    """An empty store: a folder, or a bucket."""
    location = None
    if request.param == "s3":
        location = f"s3://{request.getfixturevalue('bucket')}/farm/bundles/"
    return Workspace(tmp_path / "var", bundles_location=location).store
