"""Fixtures that several tests share."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

pytest_plugins = [f"tests.fixtures.{name}" for name in ("devices", "emulator", "farm", "runner", "survival")]


# These need the one virtual lab of the machine, one after the other, and take longest.
LAB_ROOMS = ("tests/survival/", "tests/lab/")


def _scope(nodeid: str) -> str:
    return "the lab" if nodeid.startswith(LAB_ROOMS) else nodeid.partition("::")[0]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest goes first, the lab before all: one worker is busy with it while the others do the rest."""
    longest = ("the lab", "tests/flows/test_sweep.py", "tests/tasks/session/test_sme2_emulated.py")
    items.sort(key=lambda item: longest.index(scope) if (scope := _scope(item.nodeid)) in longest else len(longest))


class ByFileOrLab(LoadScopeScheduling):  # type: ignore[misc]
    """A file's tests share a worker, and so do all that need the lab."""

    def _split_scope(self, nodeid: str) -> str:
        return _scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Of pytest-xdist: how tests are handed out."""
    return ByFileOrLab(config, log)


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
