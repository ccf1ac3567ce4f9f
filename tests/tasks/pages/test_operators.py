"""The sections on where the time goes, from rows."""

from tasks.pages.operators import categories
from tasks.pages.page import StackChart
from tasks.results.operators import CATEGORIES, OTHER, REST, CategoryRow
from tasks.results.table import Table
from tasks.results.text import plain_text
from tests.tasks.pages.rows import answers_of, row


def test_categories_that_no_longer_exist_add_up_to_other_in_table_and_chart() -> None:
    # given a cell of a warehouse with a category that was removed, beside Other
    shares = {"Convolution": 0.5, "Removed": 0.2, OTHER: 0.1, "Removed too": 0.15, REST: 0.05}
    rows = [
        row(CategoryRow, category=name, time_ms=10 * share, share=share, resolution_ms=0.0)
        for name, share in shares.items()
    ]
    # when the section is written
    section = categories(answers_of(*rows))
    (chart,) = [block for block in section.blocks if isinstance(block, StackChart)]
    (table,) = [block for block in section.blocks if isinstance(block, Table)]
    # then Other has the time of all three
    cells = {column.title: plain_text(cell.text) for column, cell in zip(table.columns, table.rows[0], strict=True)}
    assert (cells["Other"], cells["Sum"], cells["Time"]) == ("45.0", "100.0", "10.000")
    drawn = {segment.category: round(segment.share, 3) for segment in chart.bars[0][1]}
    assert drawn == {"Convolution": 0.5, OTHER: 0.45, REST: 0.05}
    assert set(drawn) <= set(CATEGORIES)
