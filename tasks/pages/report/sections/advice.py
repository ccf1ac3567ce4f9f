"""What to do next, most rewarding first: each item with its figures and then the step."""

from tasks.pages.report.page import Block, Paragraph, Points, Section
from tasks.results.advice import DATA_MOVEMENT_SHARE, other_advice, portable_advice
from tasks.results.latency import has_times
from tasks.results.operators import FLAGGED_SHARE
from tasks.results.reader import Answers
from tasks.results.text import rounded_percent


def advice(answers: Answers) -> Section:
    """Portable operators over 5 % first, then data movement over 10 %, then what SME2 did not speed up."""
    title = "What to do next"
    if not has_times(answers):
        nothing = "No session on a real device succeeded, so there are no times to base advice on."
        return Section("advice", title, [Paragraph(nothing)])
    blocks: list[Block] = [
        Paragraph(
            f"In this order: portable operators over {rounded_percent(FLAGGED_SHARE)} of the time, data movement over "
            f"{rounded_percent(DATA_MOVEMENT_SHARE)}, and delegated operators that SME2 did not speed up. Each item "
            "gives the cell with the largest value."
        )
    ]
    items = [*portable_advice(answers), *other_advice(answers)]
    blocks.append(
        Points(items, ordered=True) if items else Paragraph("No operator of this sweep is over these bounds.")
    )
    return Section("advice", title, blocks)
