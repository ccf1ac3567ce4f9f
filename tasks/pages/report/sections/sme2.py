"""The report's section on SME2: the speed-up, how much of the work ran on SME2, and what proves it."""

from tasks.pages.report.page import Block, Heading, Paragraph, Points, Section
from tasks.pages.report.sections.latency import LatencyRow
from tasks.pages.report.sections.provenance import DeviceRow
from tasks.pages.report.sections.sme2_coverage import coverage
from tasks.pages.report.sections.sme2_pairs import KernelRow, pairs
from tasks.pages.report.sections.sme2_speedup import speedup_sentence, speedups
from tasks.results.reader import Answers

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
    if not _was_on(answers):
        reason = _without(answers)
        return Section("sme2", title, [Paragraph(reason)], [reason])
    blocks: list[Block] = [*speedups(answers), *coverage(answers)]
    if folds := pairs(answers):
        blocks += [Heading("Model by model, SME2 off beside on"), *folds]
    blocks += [Heading("Evidence and inference"), Points(_EVIDENCE)]
    return Section("sme2", title, blocks, list(speedup_sentence(answers)))


def _was_on(answers: Answers) -> bool:
    """Whether any session with SME succeeded."""
    timed = any(row.variant in ("sme2_on", "sme1") for row in answers.rows(LatencyRow))
    return timed or any(row.weight_on or row.weight_sme1 for row in answers.rows(KernelRow))


def _without(answers: Answers) -> str:
    """Why there is nothing to compare, one sentence."""
    known = {row.sme2 for row in answers.rows(DeviceRow)}
    if True in known:
        return "A device here has SME2, but no session with SME2 on succeeded, so there is nothing to compare."
    if known == {False}:
        return "No device here has SME2, so there is nothing to compare."
    return "No device here is known to have SME2, and none ran with it, so there is nothing to compare."
