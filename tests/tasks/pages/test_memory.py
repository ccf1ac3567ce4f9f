"""The section on memory: owners as a picture and a table, plans, weights in memory twice, and the advice."""

from tasks.pages.charts import StackChart
from tasks.pages.sections.memory import memory
from tests.fixtures.memory import MAPPED, PLAN
from tests.tasks.pages.conftest import Sweep, with_sessions


def a_mapped_program(sweep: Sweep) -> None:
    sweep.session([10_000_000], model__memory=PLAN, stats=MAPPED)


@with_sessions(a_mapped_program)
def test_owners_add_up_at_each_moment_and_the_picture_is_on_one_scale(sweep: Sweep) -> None:
    part = sweep["memory"]
    owners, plans = part.tables
    assert owners[0][-7:] == [
        "Start-up and libraries MB", "Program file MB", "Planned arenas MB", "Packed weights MB", "First run MB",
        "Temporary MB", "Recording MB",
    ]  # fmt: skip
    assert part.column("Moment") == ["load", "first run", "peak", "end"]
    assert part.column("Total MB") == ["94.4", "100.7", "104.9", "103.8"]
    assert owners[3][-7:] == ["26.2", "29.4", "9.4", "29.4", "6.3", "4.2", "\u2013"]
    # the weights are there twice, and the plan is beside what was measured
    assert "in memory twice after the load: packed, and as the program has them (28.3 MB)" in part.words
    assert plans[1][2:4] == ["9.44", "8.39"]
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
