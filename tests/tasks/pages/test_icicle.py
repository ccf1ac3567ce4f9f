"""The time of a cell as a drawing."""

from collections.abc import Sequence

import pytest

from tasks.pages.charts import Frame, Icicle
from tasks.pages.page import Paragraph
from tasks.pages.sections.icicle import icicle_blocks, two_icicles
from tasks.results.measurements.time_tree import TimePartRow
from tests.fixtures.time_parts import part


def draw(*cells: Sequence[TimePartRow]) -> Icicle:
    drawing = icicle_blocks(*cells)[0]
    assert isinstance(drawing, Icicle)
    return drawing


def frame(drawing: Icicle, name: str) -> Frame:
    (one,) = [each for each in drawing.frames if each.title.startswith(f"{name}: ")]
    return one


def test_frames_lie_inside_the_one_above_and_small_ones_are_one_frame_with_their_number() -> None:
    # given two modules, one with many short operators, and a delegate that reports more time than the run took
    short = [part("head", f"Op{number}", 0.01) for number in range(40)]
    rest = part("", "Method::execute", -0.5, place="unattributed", kind="method", category="Unattributed")
    drawing = draw([part("body", "Add", 6.0), part("body", "mean", 3.6, kind="portable"), *short, rest])
    # then each row fills what is above it, and all of the drawing is the whole time
    for row in range(3):
        assert sum(each.width for each in drawing.frames if each.row == row) == pytest.approx(1.0)
    body, mean = frame(drawing, "body"), frame(drawing, "body \u203a mean")
    assert [body.start, body.width, body.row] == pytest.approx([0.0, 0.96, 1])
    assert mean.start + mean.width == pytest.approx(body.width)
    assert (mean.is_hatched, frame(drawing, "body \u203a Add").is_hatched) == (True, False)
    # and what is too small to be drawn is counted
    assert [each.label for each in drawing.frames if each.row == 2][-1] == "40 operators under 0.5 %"
    assert len({each.title.split(": ")[0] for each in drawing.frames}) == len(drawing.frames)


def test_a_change_has_a_hue_and_a_sign_and_two_cells_have_one_scale() -> None:
    a = [part("body", "Add", 4.0), part("head", "Mul", 2.0)]
    b = [part("body", "Add", 6.0), part("head", "Mul", 1.8), part("head", "Convert", 0.2)]
    drawing = draw(b, a)
    hues = {name: frame(drawing, name).hue for name in ("body", "head", "head \u203a Mul", "head \u203a Convert")}
    assert hues == {
        "body": "worse-3",
        "head": "module",
        "head \u203a Mul": "better-2",
        "head \u203a Convert": "worse-3",
    }
    assert frame(drawing, "body").label == "\u25b2 +50 % body"
    assert (
        frame(drawing, "head \u203a Mul").title
        == "head \u203a Mul: 1.80 ms, 22.5 %, -10.0 % (before 2.00 ms), net.py:7"
    )
    left, right = two_icicles(a, b, ("yesterday", "today"))
    assert frame(left, "the model").width == pytest.approx(6 / 8)
    assert frame(left, "body").hue == "worse-3"
    assert (right.title, frame(right, "the model").width) == ("today: 8.00 ms", 1.0)


def test_a_cell_that_the_clock_cannot_resolve_is_not_drawn() -> None:
    block, *_ = icicle_blocks([part("a", "Add", 0.004, resolution_ms=0.001)])
    assert isinstance(block, Paragraph)
    assert "25.0 %" in block.text
