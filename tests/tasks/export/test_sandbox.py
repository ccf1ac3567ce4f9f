"""How many exports run side by side, and with how much memory."""

import threading
from concurrent.futures import ThreadPoolExecutor

from tasks.export.process.sandbox import NEED_BYTES, ExportSlots, available_memory_bytes, usable_cores
from tests.fixtures.waiting import wait_for


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
