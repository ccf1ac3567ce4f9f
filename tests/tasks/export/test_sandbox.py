"""How many exports run side by side and with how much memory, and how a long one is reported."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tasks.export.process import run
from tasks.export.process.sandbox import NEED_BYTES, ExportSlots, control_group_available_bytes
from tests.fixtures.waiting import wait_for


@pytest.mark.parametrize(
    ("cores", "available_bytes", "limit_bytes"),
    [
        (2, 100 * NEED_BYTES, 45 * NEED_BYTES),  # as many slots as cores
        (8, 4 * NEED_BYTES, 1.2 * NEED_BYTES),  # as memory allows
        (8, 10, 9),  # at least one
    ],
)
def test_the_slots_share_nine_tenths_of_the_memory(cores: int, available_bytes: int, limit_bytes: float) -> None:
    slots = ExportSlots(cores, available_bytes)
    with slots.one() as first_bytes:
        assert first_bytes == limit_bytes
    with slots.all() as all_bytes:
        assert all_bytes == available_bytes * 9 // 10


def test_an_export_that_needs_all_memory_waits_for_the_others_and_starts_before_new_ones() -> None:
    slots, order = ExportSlots(2, 100 * NEED_BYTES), list[str]()
    may_end = {"first": threading.Event(), "alone": threading.Event(), "next": threading.Event()}

    def hold(name: str) -> None:
        with slots.all() if name == "alone" else slots.one():
            order.append(name)
            may_end[name].wait()

    with ThreadPoolExecutor(3) as pool:
        # given a running export, one that waits for all memory, and another one after it
        pool.submit(hold, "first")
        wait_for(lambda: order == ["first"], "the first export")
        pool.submit(hold, "alone")
        wait_for(lambda: slots._waiting_for_all == 1, "the export that needs all memory to wait")
        pool.submit(hold, "next")
        # when the running ones end one after the other, then the other one runs last
        for name in ("first", "alone", "next"):
            wait_for(lambda name=name: name in order, "the export to start")  # type: ignore[misc]
            assert order[-1] == name
            may_end[name].set()


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


def test_a_long_step_is_reported_again_after_twice_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # given a process that reports one step and does not end, and a clock that only waiting moves
    process: Any = SimpleNamespace(recv=lambda: "lowering 7 operators")
    now_s, ready = [0.0], [[process]]

    def wait(_watched: list[Any], seconds: float) -> list[Any]:
        if ready:
            return ready.pop()
        now_s.append(now_s[-1] + seconds)
        return []

    monkeypatch.setattr(run, "wait", wait)
    monkeypatch.setattr(run, "time", SimpleNamespace(monotonic=lambda: now_s[-1]))
    steps: list[tuple[str, bool]] = []
    assert run.follow(0, process, 100, lambda *step: steps.append(step)) == ("lowering 7 operators", False)
    # then it is reported when it begins, and with the time of its limit
    long = [(f"lowering 7 operators, {seconds} s of at most 100 s", True) for seconds in (10, 20, 40, 80)]
    assert steps == [("lowering 7 operators", False), *long]
