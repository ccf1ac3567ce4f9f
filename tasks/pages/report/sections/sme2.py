"""The report's section on SME2: the speed-up, how much of the work ran on SME2, and what proves it."""

from tasks.pages.report.page import Block, Heading, Paragraph, Points, Section
from tasks.pages.report.sections.sme2_coverage import coverage
from tasks.pages.report.sections.sme2_pairs import pairs
from tasks.pages.report.sections.sme2_speedup import speedups
from tasks.results.reader import Answers
from tasks.results.sme2 import ran_with_sme, sme2_in_words

_EVIDENCE = (
    "Evidence of speed: times with SME2 on and off, on the same device, with the same runner, model, "
    "precision and threads, in the same sweep. The unit of a 95 % interval is the session. It is exact and assumes "
    "only that both sides have the same noise: Hodges and Lehmann's, on logarithms.",
    "Evidence of use: data types in an operator's name (PF32, PF16, PQS8 are packed for SME) prove SME of either "
    "version. Only kernels prove SME2: those sampled while they ran (executed), or, for operators that ran, those in "
    "XNNPACK's log (selected). Without either, SME2 is not proven.",
    "Not evidence alone: a selected kernel. XNNPACK selects kernels when it initialises a family of them, whether or "
    "not the model runs them.",
    "Undecided: QP8 in a name (dynamic int8) reads the same with and without SME; only kernels decide it.",
    "Inference: the likely reasons why an operator did not use SME. They follow from the names and kernels of the same "
    "model and are not measured.",
)


def sme2(answers: Answers) -> Section:
    """SME2 on beside off: speed-up, coverage, operators that did not use it, and each pair of cells in detail."""
    title = "What SME2 did"
    summary = list(sme2_in_words(answers))
    if not ran_with_sme(answers):
        return Section("sme2", title, [Paragraph(summary[0])], summary)
    blocks: list[Block] = [*speedups(answers), *coverage(answers)]
    if folds := pairs(answers):
        blocks += [Heading("Model by model, SME2 off beside on"), *folds]
    blocks += [Heading("Evidence and inference"), Points(_EVIDENCE)]
    return Section("sme2", title, blocks, summary)
