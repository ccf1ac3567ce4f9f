"""Fixtures that several tests share."""

import gc
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

# Every worker of a test run, and other farms on this machine, use separate leases. Set before `devices` is imported.
_SHARED = tempfile.mkdtemp(prefix="etfarm-tests-")
os.environ["ETFARM_MACHINE_FOLDER"] = f"{_SHARED}/machine"

from tests.fixtures.waiting import SCALE  # noqa: E402  imports `devices`

_MAX_SEEN_CHARS = 300
_FIXTURES = (
    *("command", "devices", "examples", "prefect_server", "farm"),
    *("lab_farm", "runner", "s3", "stand_in_farm", "stored", "survival", "team_server"),
)
pytest_plugins = [f"tests.fixtures.{name}" for name in _FIXTURES]


class Failures:
    """Plugin of the process that prints: says at once what a failed test promised; pytest itself waits for the end."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Print the promise, what the test saw instead, and where to look."""
        crash = getattr(report.longrepr, "reprcrash", None)
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and crash and terminal:
            promise = report.nodeid.rpartition("::")[2].removeprefix("test_").replace("_", " ")
            seen = crash.message.partition("\n")[0][:_MAX_SEEN_CHARS]
            terminal.write_line(f"\nFAILED: {promise}\n  seen: {seen}\n  look at: {crash.path}:{crash.lineno}")


def pytest_configure(config: pytest.Config) -> None:
    """Let Ctrl-C and a hang-up end what the tests start, also where the tests themselves ignore them.

    A shell's background ignores the first, `nohup` the second, and children inherit that; a handler is not inherited.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda _number, _frame: None)
    if not hasattr(config, "workerinput"):  # of pytest-xdist: the tests run in its workers, and are printed here
        config.pluginmanager.register(Failures(config))


def pytest_unconfigure() -> None:
    shutil.rmtree(_SHARED, ignore_errors=True)


# These need the one virtual lab of the machine, one after the other, and take longest.
LAB_ROOMS = ("tests/survival/", "tests/lab/", "tests/skills/test_in_the_lab.py")
# These use one Prefect server (fixture `prefect_api`), which takes 8 s of CPU a worker.
_SERVED = {
    f"tests/flows/{name}.py"
    for name in (
        *("deployed/test_flows", "device/test_lease", "labs/test_deployment", "labs/test_labs", "server/test_logs"),
        *("server/test_shared_server", "test_certify", "test_finish_by", "test_prepare", "test_short_sweeps"),
        *("test_sweep", "test_sweep_result"),
    )
}
# These use torch and executorch, whose imports and first export take 7 s of CPU a worker.
_EXPORTS = "tests/tasks/export/"
_LONGEST = (
    "the lab",
    "the exports",
    "the server",
    "tests/tasks/runner/test_cross.py",
    "tests/tasks/runner/test_source.py",
    "tests/flows/server/test_server_lost.py",
)
# These say within half a minute whether something obvious is broken, and come before all others.
_QUICK = tuple(
    f"tests/{name}" for name in ("test_", "devices/test_", "tasks/bundle", "tasks/etdump", "tasks/measure/test_")
)
# Fixtures that need programs of the system which a newcomer does not have.
_PROGRAMS = {"adb_port", "adbd", "lab_packages", "lab_up", "qemu", "ssh_client", "sshd", "team_server"}


def _scope(nodeid: str) -> str:
    file = nodeid.partition("::")[0]
    if file.startswith(LAB_ROOMS):
        return "the lab"
    return "the server" if file in _SERVED else "the exports" if file.startswith(_EXPORTS) else file


def _position(scope: str) -> int:
    if scope.startswith(_QUICK):
        return -1
    return _LONGEST.index(scope) if scope in _LONGEST else len(_LONGEST)


def _needs_programs(item: pytest.Item) -> bool:
    fixtures = getattr(item, "fixturenames", ())
    return bool(_scope(item.nodeid) == "the lab" or item.get_closest_marker("lab") or _PROGRAMS.intersection(fixtures))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look through what the collection imports in no garbage collection, neither during it nor in any test.

    It is a million objects: without this, each test process spends seconds of CPU on them.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before the option -m selects
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Start with quick tests, then the longest: one worker is busy with the lab while others do the rest. Scale limits.

    Tests that need programs of the system are `thorough`, as if they were marked so; 0 is no limit.
    """
    items.sort(key=lambda item: _position(_scope(item.nodeid)))
    fuzzes = config.getoption("--hypothesis-profile", None) == "fuzz"
    for item in items:
        if _needs_programs(item):
            item.add_marker("thorough")
        marker = item.get_closest_marker("timeout")
        seconds = marker.args[0] if marker else float(item.config.getini("timeout"))
        item.add_marker(pytest.mark.timeout(0 if fuzzes else seconds * SCALE), append=False)


# pytest-xdist 3.8 does not honour `--dist loadgroup` and its marker xdist_group under pytest 9.
class ByFileOrLab(LoadScopeScheduling):  # type: ignore[misc]
    """A file's tests share a worker, and so do all that need the lab, a Prefect server or torch."""

    def _split_scope(self, nodeid: str) -> str:
        return _scope(nodeid)

    def remove_node(self, node: Any) -> str | None:
        """Hand out only what a worker that ended has left, without the test it ended in; return that test.

        pytest-xdist 3.8 hands out the test again, which ends the next worker, and waits for scopes that are done.
        """
        work = self.assigned_work[node]
        left = [(scope, test) for scope, tests in work.items() for test, is_done in tests.items() if not is_done]
        ended_in = left[0][1] if left else None
        for scope, test in left[:1]:
            work[scope][test] = True
        for scope in [scope for scope, tests in work.items() if all(tests.values())]:
            del work[scope]
        super().remove_node(node)
        return ended_in


def pytest_xdist_auto_num_workers() -> int:
    """Of pytest-xdist: two workers more than cores, since tests wait for devices and servers half of their time."""
    return (os.cpu_count() or 1) + 2


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
