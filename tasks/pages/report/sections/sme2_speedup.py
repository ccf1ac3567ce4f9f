"""Speed-up by SME2: each pair of cells, SME2 off beside on, with its interval."""

from collections.abc import Iterator

from tasks.pages.report.page import Block, Heading, Paragraph
from tasks.results.reader import Answers
from tasks.results.sme2 import SpeedupRow
from tasks.results.table import table_of
from tasks.results.text import counted


def speedups(answers: Answers) -> Iterator[Block]:
    """The speed-up of each pair; cells that ran only with SME2 are counted."""
    rows = answers.rows(SpeedupRow)
    pairs = [row for row in rows if row.sessions_on and row.sessions_off]
    alone = [row for row in rows if row.sessions_on and not row.sessions_off]
    yield Heading("Speed-up")
    if pairs:
        yield table_of(pairs)
    else:
        yield Paragraph("No cell was measured both with SME2 on and with SME2 off, so the speed-up is not known.")
    if alone:
        count = counted(len(alone), "cell").capitalize()
        yield Paragraph(f"{count} ran only with SME2 on and not with it off: no speed-up known.", tone="quiet")
