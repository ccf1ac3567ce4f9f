"""How much of the work that SME2 could do ran on it, and which operators did not use it."""

from collections.abc import Iterator

from tasks.pages.report.page import Block, Heading, Paragraph, Points
from tasks.results.reader import Answers
from tasks.results.sme2 import CoverageRow, Fp16Row, LeftOutRow, plain_fp16_in_words
from tasks.results.table import table_of


def coverage(answers: Answers) -> Iterator[Block]:
    """Coverage by cell, what the names of fp16 models show, and the operators that did not use SME2."""
    if rows := answers.rows(CoverageRow):
        yield Heading("How much ran on SME2")
        yield Paragraph(
            "Share of the eligible work (matrix products and convolutions other than depthwise) that ran on SME, by "
            "variant. A runner with SME2 support does not prove that a model uses SME2."
        )
        yield table_of(rows)
        if fp16 := answers.rows(Fp16Row):
            yield Points([plain_fp16_in_words(row) for row in fp16])
    if left_out := answers.rows(LeftOutRow):
        yield Heading("Eligible operators that did not run on SME")
        yield table_of(left_out)
