"""How many exports run side by side and with how much memory; what a model leaves running ends with its export."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tasks.export.process.sandbox import NEED_BYTES, ExportSlots, available_memory_bytes, end_below, usable_cores
from tests.fixtures.paths import ROOT
from tests.fixtures.waiting import wait_for
from tests.tasks.export.conftest import runs

# Each process states its pid; the last one is a daemon: its parent has ended, and it is in another session.
PARENT = """
import os, subprocess, sys, time
from pathlib import Path
from tasks.export.process.sandbox import adopt_orphans

adopt_orphans()
sleeper = [sys.executable, "-c", "import time; time.sleep(300)"]
pids = [subprocess.Popen(sleeper).pid for _ in range(2)]
pids.append(subprocess.Popen(sleeper, start_new_session=True).pid)
if os.fork() == 0:
    os.setsid()
    if (daemon := os.fork()) == 0:
        os.execv(sys.executable, sleeper)
    Path("daemon").write_text(str(daemon))
    os._exit(0)
os.wait()
Path("pids-").write_text("\\n".join([*map(str, pids), Path("daemon").read_text()]))
Path("pids-").rename("pids")
time.sleep(300)
"""


def test_places_are_as_many_as_cores_or_as_memory_allows_and_at_least_one() -> None:
    for cores, available_bytes, wanted in ((2, 100 * NEED_BYTES, 2), (8, 4 * NEED_BYTES, 3), (8, 10, 1)):
        assert _side_by_side(ExportSlots(cores, available_bytes)) == wanted


def test_the_exports_side_by_side_share_what_is_available() -> None:
    slots = ExportSlots(2, 100 * NEED_BYTES)
    with slots.one() as first, slots.one() as second:
        assert first == second == 45 * NEED_BYTES
    with slots.all() as alone:
        assert alone == 90 * NEED_BYTES


def test_an_export_that_needs_all_memory_waits_for_the_others_and_starts_before_new_ones() -> None:
    slots, order = ExportSlots(2, 100 * NEED_BYTES), list[str]()
    first_may_end, alone_may_end = threading.Event(), threading.Event()

    def first() -> None:
        with slots.one():
            order.append("first")
            first_may_end.wait()

    def alone() -> None:
        with slots.all():
            order.append("alone")
            alone_may_end.wait()

    def next_one() -> None:
        with slots.one():
            order.append("next")

    with ThreadPoolExecutor(3) as pool:
        # given a running export, one that waits for all memory, and another one after it
        pool.submit(first)
        wait_for(lambda: order == ["first"], "the first export")
        pool.submit(alone)
        wait_for(lambda: slots._waiting_for_all == 1, "the export that needs all memory to wait")
        pool.submit(next_one)
        # when the running ones end
        first_may_end.set()
        wait_for(lambda: "alone" in order, "the export that needs all memory")
        assert order == ["first", "alone"]
        alone_may_end.set()
    # then the other one runs last
    assert order == ["first", "alone", "next"]


def test_this_machine_has_memory_and_cores() -> None:
    assert available_memory_bytes() > 10_000_000
    assert usable_cores() >= 1


def _side_by_side(slots: ExportSlots) -> int:
    """Return how many of ten exports have a place at once."""
    running, may_end = list[int](), threading.Event()

    def export() -> None:
        with slots.one():
            running.append(1)
            may_end.wait()

    with ThreadPoolExecutor(10) as pool:
        for _ in range(10):
            pool.submit(export)
        wait_for(lambda: len(running) == slots._count and slots._running == slots._count, "all slots to be taken")
        count = len(running)
        may_end.set()
    return count


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no process can adopt orphans")
def test_everything_below_a_process_is_ended_but_what_is_spared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([os.fspath(ROOT), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.chdir(tmp_path)
    # given a process with children, one in another session, and a daemon
    with subprocess.Popen([sys.executable, "-c", PARENT]) as parent:
        try:
            wait_for(Path("pids").exists, "the processes to start")
            spared, *others = map(int, Path("pids").read_text().split())
            # when what is below it is ended
            end_below(parent.pid, {spared})
            # then only the spared one and the process itself are left
            assert [runs(pid) for pid in (parent.pid, spared, *others)] == [True, True, False, False, False]
            end_below(parent.pid)
            assert not runs(spared)
        finally:
            parent.kill()
