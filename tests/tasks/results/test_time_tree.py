"""The time of a cell as a tree of modules and operators."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.results.measurements.time_tree import TimeNode, TimePartRow, build_time_tree, leaf_rows
from tests.fixtures.time_parts import part

CONVOLUTION, PACKED = "Convolution (NHWC, F32) IGEMM", "Convolution (NHWC, PF32) IGEMM"
PARTS = st.builds(
    part,
    st.sampled_from(["", "a", "a.0", "a.0.b", "c", "c.0"]),
    st.sampled_from(["Add", "Mul", CONVOLUTION]),
    st.floats(-0.1, 100),
    place=st.sampled_from(["module", "module", "inserted", "unattributed"]),
)
SIDES = st.lists(PARTS, max_size=9)


def nodes(node: TimeNode) -> list[TimeNode]:
    return [node, *(each for child in node.children.values() for each in nodes(child))]


@settings(max_examples=40)
@given(SIDES, SIDES)
def test_parts_add_up_on_both_sides_in_every_node(parts: list[TimePartRow], before: list[TimePartRow]) -> None:
    tree = build_time_tree(parts, before)
    assert tree.time_ms == pytest.approx(sum(each.time_ms for each in parts))
    assert tree.before_ms == pytest.approx(sum(each.time_ms for each in before))
    for node in nodes(tree):
        if node.children:
            children = node.children.values()
            assert node.time_ms == pytest.approx(sum(child.time_ms for child in children))
            assert node.before_ms == pytest.approx(sum(child.before_ms or 0.0 for child in children))


def named(tree: TimeNode, name: str) -> TimeNode:
    (node,) = [each for each in nodes(tree) if each.name == name]
    return node


def test_an_operator_under_another_name_is_the_same_part_where_a_module_has_it_once() -> None:
    once: dict[str, Any] = {"source_operator": "aten.convolution.default"}
    # given a module with one convolution, and one with two
    before = [part("one", PACKED, 2.0, **once), *(part("two", name, 1.0, **once) for name in (PACKED, "Convert"))]
    after = [part("one", CONVOLUTION, 3.0, **once), part("two", CONVOLUTION, 1.0, **once)]
    tree = build_time_tree(after, before)
    # then the first is compared, and of the second nothing
    assert named(tree, "one").children.popitem()[1].change == "+50.0 %"
    assert sorted(each.change for each in named(tree, "two").leaves) == ["gone", "gone", "new"]


def test_a_change_that_the_clock_cannot_resolve_is_unknown() -> None:
    tree = build_time_tree([part("a", "Add", 0.0008, resolution_ms=0.001)], [part("a", "Add", 0.0004)])
    assert tree.change == "unknown"


def test_a_module_with_one_module_inside_is_one_node_and_time_outside_of_modules_is_last() -> None:
    parts = [part("", "Method::execute", 1.0, place="unattributed"), part("layers.0.mlp", "Add", 2.0)]
    tree = build_time_tree(parts)
    assert [child.name for child in tree.children.values()] == ["layers.0.mlp", "Unattributed"]
    assert named(tree, "layers.0.mlp").path == "layers.0.mlp"


def test_a_row_outside_of_modules_states_what_it_is() -> None:
    parts = [part("", "Add", 3.0), *(part("", "Add", 1.0, place=place) for place in ("inserted", "unknown"))]
    names = [row.module for row in leaf_rows(build_time_tree(parts))]
    assert names == ["the model", "Inserted by the exporter", "Of unknown modules"]


def test_the_clock_may_hide_time_of_each_part_of_an_operator_before() -> None:
    # given an operator of two kinds of calls before, each of them as long as one step of the clock
    before = [part("a", "Add", 0.001, source_operator=name, resolution_ms=0.001) for name in ("x", "y")]
    assert build_time_tree([part("a", "Add", 1.0)], before).change == "unknown"
