"""Owners of memory: whatever a system reports, the parts of a moment add up to it, and none is negative."""

import random
from typing import Any

import pytest

from tasks.results.reader import open_reader
from tests.fixtures.warehouse import BundleMaker

MB = 1_000_000
MOMENTS = ("load", "first run", "peak", "end")
# A runner of 3 + 20 MB that loads a program of 30 MB with mmap: 10 MB of arenas, and weights packed beside the file.
MEASURED = {
    "start_anonymous_bytes": 3, "start_file_bytes": 20, "load_anonymous_bytes": 41, "load_file_bytes": 50,
    "load_swapped_bytes": 1, "model_anonymous_bytes": 47, "model_file_bytes": 52, "model_swapped_bytes": 1,
    "end_anonymous_bytes": 50, "end_file_bytes": 52, "end_swapped_bytes": 1, "model_peak_memory_bytes": 110,
}  # fmt: skip
PLAN: dict[str, Any] = {
    "arenas_bytes": [4 * MB, 6 * MB], "instructions": 8, "live_bytes": 9 * MB, "live_at": 3,
    "live_operator": "aten::mul.out", "constant_bytes": 2 * MB, "payload_bytes": {"XnnpackBackend": 28 * MB},
    "buffers": [
        {"bytes": 6 * MB, "producer": "aten::mul.out", "last_user": "aten::add.out", "first": 1, "last": 6},
        {"bytes": 3 * MB, "producer": "input", "last_user": "aten::mul.out", "first": 0, "last": 1},
    ],
}  # fmt: skip


def stats(figures: dict[str, int], **more: Any) -> dict[str, Any]:
    return {name: value * MB for name, value in figures.items()} | more


def write_sessions(maker: BundleMaker) -> None:
    """Write a mapped program, one that was read, one without a plan, and programs whose figures are random."""
    program = [{"name": "program", "resident_bytes": 30 * MB}, {"name": "heap", "resident_bytes": 40 * MB}]
    maker.session([10], model__name="mapped", model__memory=PLAN, stats=stats(MEASURED, mappings=program))
    maker.session([10], model__name="mapped", model__memory=PLAN, stats=stats(MEASURED), repetition=1)
    maker.session([10], model__name="read", model__memory=PLAN, stats=stats(MEASURED))
    maker.session([10], model__name="unlisted@load=mmap", model__memory=PLAN, stats=stats(MEASURED, load_mode="mmap"))
    maker.session([10], model__name="unread", stats=stats(MEASURED))
    maker.session([10], model__name="older", stats=stats({"model_anonymous_bytes": 40, "model_file_bytes": 20}))
    chance = random.Random(0)
    for number in range(40):
        plan = PLAN | {"arenas_bytes": [chance.randrange(90) * MB], "constant_bytes": chance.randrange(50) * MB}
        plan |= {"payload_bytes": chance.choice([{}, {"XnnpackBackend": chance.randrange(60) * MB}])}
        figures = {name: chance.randrange(100) for name in MEASURED}
        listed = [{"name": "program", "resident_bytes": chance.randrange(80) * MB}] * chance.randrange(2)
        maker.session(
            [10], model__name=f"random{number}", model__memory=plan, stats=stats(figures, mappings=listed or None)
        )


def owners(farm: BundleMaker, model: str, moment: str) -> dict[str, float]:
    """Return the owners of a moment that have memory, in MB."""
    of_moment = f"model = '{model}' AND moment = '{moment}' AND bytes <> 0"
    return dict(farm.ask(f"SELECT owner, bytes / 1e6 FROM memory_use WHERE {of_moment} ORDER BY owner_place"))


def test_each_owner_has_what_is_planned_stored_or_measured_of_it(farm: BundleMaker) -> None:
    # a mapped program has its pages, and constants are among them
    loaded = {"start-up and libraries": 23, "program file": 30, "planned arenas": 10, "packed weights": 29}
    assert owners(farm, "mapped", "load") == loaded
    after = loaded | {"start-up and libraries": 25, "first run": 6}
    assert owners(farm, "mapped", "first run") == after
    assert owners(farm, "mapped", "peak") == after | {"temporary": 10}
    assert owners(farm, "mapped", "end") == after | {"recording": 3}
    # one that was read has its constants in memory of its own
    read = {"start-up and libraries": 53, "planned arenas": 10, "constants": 2, "packed weights": 27}
    assert owners(farm, "read", "load") == read
    # unless it was mapped, and no session listed its pages, such as on macOS
    unlisted = {"start-up and libraries": 53, "planned arenas": 10, "packed weights": 29}
    assert owners(farm, "unlisted@load=mmap", "load") == unlisted
    # and without a plan, what the load added has no owner
    assert owners(farm, "unread", "load") == {"start-up and libraries": 53, "unattributed": 39}
    # and an older runner, which did not report the memory before the load, is not listed
    assert farm.ask("SELECT count(*) FROM memory_use WHERE model = 'older'") == [(0,)]


def test_parts_add_up_to_what_the_system_reported_and_none_is_negative(farm: BundleMaker) -> None:
    sums = farm.ask(
        "SELECT model, moment, sum(bytes), any_value(total_bytes), min(bytes), sum(file_bytes), count(*) "
        "FROM memory_use GROUP BY model, moment"
    )
    assert len(sums) == len(MOMENTS) * 44
    reported = {
        (model, moment): figures
        for model, *figures in farm.ask(
            "SELECT model, load_anonymous_bytes + load_swapped_bytes + load_file_bytes, model_anonymous_bytes "
            "+ model_swapped_bytes + model_file_bytes, model_peak_memory_bytes, end_anonymous_bytes + end_swapped_bytes"
            " + end_file_bytes FROM session_latency WHERE start_file_bytes IS NOT NULL"
        )
        for moment in MOMENTS
    }
    for model, moment, parts, total, smallest, _, owner_count in sums:
        figures = reported[model, moment]
        expected = max(figures[1:3]) if moment == "peak" else figures[MOMENTS.index(moment)]
        assert parts == total == pytest.approx(expected), (model, moment)
        assert smallest >= 0, (model, moment)
        assert owner_count == 9


def test_means_that_are_rounded_leave_no_part_negative(maker: BundleMaker) -> None:
    # given three sessions with a mean of 5802.67 bytes of both parts, which are the peak together
    for one in (5120, 6144, 6144):
        figures = dict.fromkeys(MEASURED, 0) | {"model_anonymous_bytes": one, "model_file_bytes": one}
        maker.session([10], stats=figures | {"model_peak_memory_bytes": 2 * one})
    maker.load()
    of_peak = "FROM memory_use WHERE moment = 'peak'"
    assert maker.ask(f"SELECT min(bytes), sum(bytes) = any_value(total_bytes) {of_peak}") == [(0, True)]


def test_a_plan_that_contradicts_itself_is_not_advised_on(maker: BundleMaker) -> None:
    maker.session([10], model__memory=PLAN | {"live_bytes": 0})
    maker.load()
    with open_reader(maker.warehouse) as reader:
        assert reader.tuples("long_buffers", sweep_id="smoke-2026-11-20") == []


def test_the_buffers_of_the_largest_live_set_have_their_lives(farm: BundleMaker) -> None:
    columns = "bytes / 1e6, producer, last_user, first_instruction, last_instruction, instructions, life_share"
    rows = farm.ask(f"SELECT {columns}, live_bytes / 1e6 FROM live_buffer WHERE model = 'read' ORDER BY bytes DESC")
    assert rows == [
        (6.0, "aten::mul.out", "aten::add.out", 1, 6, 8, 0.75, 9.0),
        (3.0, "input", "aten::mul.out", 0, 1, 8, 0.25, 9.0),
    ]
    planned = "SELECT planned_bytes, live_bytes, needed_bytes, constant_bytes, delegate_bytes FROM model_overview"
    assert farm.ask(f"{planned} WHERE model = 'read'") == [(10 * MB, 9 * MB, None, 2 * MB, 28 * MB)]
