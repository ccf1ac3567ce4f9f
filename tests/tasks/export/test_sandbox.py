"""How many exports run side by side and with how much memory; what a model leaves running ends with its export."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tasks.export.process.sandbox import (
    NEED_BYTES,
    ExportSlots,
    available_memory_bytes,
    control_group_available_bytes,
    kill_descendants,
)
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


@pytest.mark.parametrize(
    ("cores", "available_bytes", "limit_bytes"),
    [
        (2, 100 * NEED_BYTES, 45 * NEED_BYTES),  # as many slots as cores
        (8, 4 * NEED_BYTES, 1.2 * NEED_BYTES),  # as memory allows
        (8, 10, 9),  # at least one
    ],
)
def test_the_slots_share_nine_tenths_of_the_memory_and_one_export_may_have_all_of_it(
    cores: int, available_bytes: int, limit_bytes: float
) -> None:
    slots = ExportSlots(cores, available_bytes)
    with slots.one() as first_bytes:
        assert first_bytes == limit_bytes
    with slots.all() as all_bytes:
        assert all_bytes == available_bytes * 9 // 10


def test_an_export_waits_for_a_slot() -> None:
    slots = ExportSlots(2, 100 * NEED_BYTES)

    def take() -> int:
        with slots.one() as limit_bytes:
            return limit_bytes

    with ThreadPoolExecutor(1) as pool:
        with slots.one(), slots.one():
            third = pool.submit(take)
            with pytest.raises(TimeoutError):
                third.result(timeout=0.05)
        assert third.result() == 45 * NEED_BYTES


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


def test_this_machine_has_memory() -> None:
    assert available_memory_bytes() > 10_000_000


def test_memory_is_limited_by_the_control_group_and_those_above_it(tmp_path: Path) -> None:
    def write(group: str, limit: str, used_bytes: int) -> None:
        (tmp_path / group).mkdir(parents=True, exist_ok=True)
        (tmp_path / group / "memory.max").write_text(f"{limit}\n")
        (tmp_path / group / "memory.current").write_text(f"{used_bytes}\n")

    # given a service without a limit in a slice with one, below a root that has no files of memory
    write("farm.slice", "1000", 300)
    write("farm.slice/etfarm.service", "max", 200)
    write("other.slice", "10", 10)
    own = "1:name=systemd:/other.slice\n0::/farm.slice/etfarm.service\n"
    # then what the slice leaves is available
    assert control_group_available_bytes(tmp_path, own) == 700
    # and of two limits, what the narrower leaves, at least nothing
    write("farm.slice/etfarm.service", "500", 200)
    assert control_group_available_bytes(tmp_path, own) == 300
    write("farm.slice", "250", 300)
    assert control_group_available_bytes(tmp_path, own) == 0
    # and without a group of version 2, or a limit, it is unlimited
    for text in ("1:name=systemd:/farm.slice\n", "0::/\n", "0::/../outside\n", ""):
        assert control_group_available_bytes(tmp_path, text) is None
    # and a limit of the root, as in a container, counts
    write(".", "40", 30)
    assert control_group_available_bytes(tmp_path, own) == 0
    assert control_group_available_bytes(tmp_path, "0::/\n") == 10
    # and so does one of version 1
    (tmp_path / "memory" / "docker").mkdir(parents=True)
    (tmp_path / "memory" / "docker" / "memory.limit_in_bytes").write_text("9\n")
    (tmp_path / "memory" / "docker" / "memory.usage_in_bytes").write_text("2\n")
    assert control_group_available_bytes(tmp_path, "4:memory:/docker/job\n3:cpu:/\n") == 7


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no process can adopt orphans")
def test_all_descendants_of_a_process_are_killed_but_those_that_are_spared(
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
            kill_descendants(parent.pid, {spared})
            # then only the spared one and the process itself are left
            assert [runs(pid) for pid in (parent.pid, spared, *others)] == [True, True, False, False, False]
            kill_descendants(parent.pid)
            assert not runs(spared)
        finally:
            parent.kill()
