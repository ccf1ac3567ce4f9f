"""The section on delegates: which one is the fastest that is accurate, and what the others cost."""

from collections.abc import Sequence
from dataclasses import replace

from tasks.pages.page import Explanation, Paragraph, Points, Section
from tasks.results.addresses import sweep_page
from tasks.results.measurements.delegates import DelegateRow, choose_delegates
from tasks.results.reader import Answers
from tasks.results.table import Table, build_table
from tasks.results.text import CodeLink, with_code

_TITLE = "Delegates"
_METHOD = (
    "Delegates of one model, precision and number of threads are interleaved and compared with the shortest time "
    "of those whose outputs are not inaccurate. Another is slower if the 95 % interval of the ratio of both times "
    "excludes 1 and reaches beyond the margin of a comparison. Otherwise both are not told apart. The shortest is "
    "the fastest if all others are slower. The only one measured is compared with nothing. A resumed sweep may measure "
    "one delegate after another: these are not interleaved, and drift of the device may be the difference."
)


def delegates(answers: Answers) -> Section:
    """Return the section; without blocks if the sweep states no delegate but XNNPACK, and so left out."""
    return section(answers.rows(DelegateRow)) or Section("delegates", _TITLE, [])


def section(rows: Sequence[DelegateRow], *, names_sweep: bool = False) -> Section | None:
    """Return the answers in sentences and the table of all rows; None without rows.

    A page that is not about one sweep names that of the rows.
    """
    if not rows:
        return None
    lines = [with_code(choice.line) for choice in choose_delegates(rows)]
    points = Points(lines) if lines else Paragraph("Emulated devices have no times: nothing is the fastest.")
    sweep_id = rows[0].sweep_id
    sweep = [Paragraph(("Measured in ", CodeLink(sweep_id, sweep_page(sweep_id)), "."))] if names_sweep else []
    return Section("delegates", _TITLE, [Explanation(_METHOD), *sweep, points, _table(rows)], lines[:1])


def _table(rows: Sequence[DelegateRow]) -> Table:
    """Return the table of all rows.

    What was skipped has neither threads nor a variant: it is listed under those of all that was measured, if these are
    equal, so that both are stated once above the table and its shares fit a window.
    """
    measured = {(row.threads, row.variant) for row in rows if row.outcome != "skipped"}
    if len(measured) != 1:
        return build_table(rows)
    [(threads, variant)] = measured
    return build_table([replace(row, threads=threads, variant=variant) for row in rows])
