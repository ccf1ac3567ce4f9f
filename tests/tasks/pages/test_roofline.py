"""The section on the roof: sentences, the drawing and the table agree."""

from typing import Any

import pytest

from tasks.pages.charts import Scatter
from tasks.pages.page import Fold
from tasks.pages.sections.roofline import roofline
from tasks.results.measurements.roofline import ModelRooflineRow, RooflineRow
from tests.tasks.pages.conftest import Part, plain_text
from tests.tasks.pages.rows import answers_of, row

# The device multiplies 100 million times in 1 ms, and reads 100 MB of a cache or 10 MB of its memory.
MODEL: dict[str, Any] = {
    **{"time_ms": 4.0, "roof_ms": 1.0, "covered_share": 0.75, "winnable_ms": 2.0, "peak_gmac_per_s": 100.0},
    **{"compute_bound_ms": 2.0, "memory_bound_ms": 1.0, "overhead_ms": 0.0, "read_gb_per_s": [100.0, 10.0]},
}
GEMM: dict[str, Any] = {
    **{"operator": "Fully Connected", "bound": "compute", "time_ms": 2.0, "roof_ms": 0.5, "winnable_ms": 1.5},
    **{"share": 0.25, "gmac_per_s": 25.0, "gb_per_s": 0.25, "intensity": 100.0},
}
MOVED = GEMM | {"operator": "Transpose", "bound": "memory", "intensity": 0.0, "gmac_per_s": 0.0, "winnable_ms": 0.5}


def test_operators_that_multiply_are_drawn_under_the_roof_and_all_are_listed() -> None:
    rows = [row(RooflineRow, **each) for each in (GEMM, MOVED)]
    section = roofline(answers_of(*rows, row(ModelRooflineRow, **MODEL)))
    (fold,) = [block for block in section.blocks if isinstance(block, Fold)]
    assert "25.0 % of the roof, 2.00 ms could be won" in plain_text(fold.title)
    part = Part.of(section)
    assert "take 1.00 ms of 4.00 ms (25.0 %)" in part.words
    assert "computing 50.0 %, memory 25.0 %." in part.words
    assert part.column("Operator") == ["Fully Connected", "Transpose"]
    (scatter,) = [block for block in fold.blocks if isinstance(block, Scatter)]
    # then axes of 1 to 100 MAC/byte and of 10 to 100 GMAC/s, and a dot a quarter as high as the roof
    (dot,) = scatter.dots
    assert (dot.x, round(dot.y, 3)) == (1.0, round(0.398, 3))
    of_memory, of_cache = scatter.lines
    assert [point[1] for point in of_memory] == pytest.approx([0.0, 1.0, 1.0])
    assert of_memory[1] == pytest.approx((0.5, 1.0))
    assert of_cache[1] == pytest.approx((0.0, 1.0))


def test_cells_without_a_roof_say_how_to_measure_one() -> None:
    assert "`roof: true`" in Part.of(roofline(answers_of())).words
