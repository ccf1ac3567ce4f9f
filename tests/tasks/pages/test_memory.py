"""The section on memory: owners as a picture and a table, plans, weights in memory twice, and the advice."""

from tasks.pages.memory import memory
from tasks.pages.page import StackChart
from tests.tasks.pages.conftest import Sweep, with_sessions

MIB = 1 << 20
STATS = {
    "start_anonymous_bytes": 3, "start_file_bytes": 20, "load_anonymous_bytes": 40, "load_file_bytes": 50,
    "load_swapped_bytes": 0, "model_anonymous_bytes": 46, "model_file_bytes": 50, "model_swapped_bytes": 0,
    "end_anonymous_bytes": 49, "end_file_bytes": 50, "end_swapped_bytes": 0, "model_peak_memory_bytes": 100,
}  # fmt: skip
PLAN = {
    "arenas_bytes": [9 * MIB], "instructions": 8, "live_bytes": 8 * MIB, "live_at": 3,
    "live_operator": "aten::mul.out", "payload_bytes": {"XnnpackBackend": 27 * MIB},
    "buffers": [
        {"bytes": 6 * MIB, "producer": "aten::mul.out", "last_user": "aten::add.out", "first": 1, "last": 6},
        {"bytes": 2 * MIB, "producer": "input", "last_user": "output", "first": 0, "last": 7},
    ],
}  # fmt: skip


def a_mapped_program(sweep: Sweep) -> None:
    stats = {name: size * MIB for name, size in STATS.items()}
    listed = {"mappings": [{"name": "program", "resident_bytes": 28 * MIB}]}
    sweep.session([10_000_000], model__memory=PLAN, stats=stats | listed)


@with_sessions(a_mapped_program)
def test_owners_add_up_at_each_moment_and_the_picture_is_on_one_scale(sweep: Sweep) -> None:
    part = sweep["memory"]
    owners, plans = part.tables
    assert owners[0][-7:] == [
        "Runner and libraries MiB", "Program file MiB", "Planned arenas MiB", "Packed weights MiB", "First run MiB",
        "Temporary MiB", "Recording MiB",
    ]  # fmt: skip
    assert part.column("Moment") == ["load", "first run", "peak", "end"]
    assert part.column("Total MiB") == ["90.0", "96.0", "100.0", "99.0"]
    assert owners[3][-7:] == ["25.0", "28.0", "9.0", "28.0", "6.0", "4.0", "\u2013"]
    # the weights are there twice, and the plan is beside what was measured
    assert "in memory twice, packed and in the mapped program (27.0 MiB)" in part.words
    assert plans[1][2:4] == ["9.00", "8.00"]
    assert "the largest peak is 104.9 MB" in part.summary
    # and the bars of the picture are as long as their parts of the peak
    [chart] = [block for block in memory(sweep.answers).blocks if isinstance(block, StackChart)]
    lengths = [round(sum(segment.share for segment in segments), 6) for _, segments in chart.bars]
    assert lengths == [0.90, 0.96, 1.0]


@with_sessions(a_mapped_program)
def test_a_buffer_that_lives_over_most_of_the_graph_is_advised_on(sweep: Sweep) -> None:
    words = sweep["advice"].words
    assert "a buffer of 6.29 MB lives over 6 of 8 instructions. It is 75.0 % of the 8.39 MB that are alive" in words
    assert "mul writes it (instruction 1), and add uses it last (instruction 6)" in words
