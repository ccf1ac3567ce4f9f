"""Fixtures that several tests share."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest_plugins = ["device_fixtures", "emulator_fixtures", "farm_fixtures", "runner_fixtures", "survival_helpers"]


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups right after
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A file's tests share a worker, and so do all that need the one lab, which go first: they take longest."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.path.name))
    items.sort(key=lambda item: item.get_closest_marker("xdist_group").args != ("lab",))  # type: ignore[union-attr]


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB; only root can mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small file system to fill can only be mounted by root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
