"""The report's section on SME2: what it brought, how much really ran on it, and how anybody knows."""

from collections.abc import Iterator

from tasks.report.cells import PAIR, CellNames
from tasks.report.data import Answers, Row
from tasks.report.interval import LEAST_SESSIONS, speedup_interval
from tasks.report.page import Block, Cell, Code, Column, Heading, Paragraph, Points, Section, Table, Text
from tasks.report.sections.sme2_pairs import pairs
from tasks.report.text import NOTHING, TIMES, code, counted, joined, number, percent

INSUFFICIENT = "insufficient data"


def sme2(answers: Answers) -> Section:
    """SME2 on beside off: speed-up, coverage, what was left out, and each pair of cells in detail."""
    title = "What SME2 did"
    if not _was_on(answers):
        return Section("sme2", title, [Paragraph(_without(answers))])
    blocks: list[Block] = [*_speedups(answers), *_coverage(answers), *_left_out(answers), *_details(answers)]
    blocks += [Heading("Evidence and inference"), Points(_EVIDENCE)]
    return Section("sme2", title, blocks)


def sme2_sentence(answers: Answers) -> Iterator[Text]:
    """The section in one sentence, for the summary."""
    ratios = sorted(row["speedup"] for row in answers["sme2_speedup"] if row["speedup"] is not None)
    if not _was_on(answers):
        yield _without(answers)
    elif ratios:
        span = f"{ratios[0]:.2f}" if len(ratios) == 1 else f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
        yield f"With SME2 on, runs are {span} times as fast as with it off ({counted(len(ratios), 'comparison')})."


_EVIDENCE = (
    "Evidence of speed: session medians with SME2 on and off, on the same device, with the same runner, model, "
    "precision and threads, in the same sweep. An interval is a 95 % bootstrap over sessions.",
    "Evidence of use: data types in an operator's name (PF32, PF16, PQS8 are packed for SME2) and kernels whose code "
    "was sampled while it ran (executed).",
    "Not evidence of use: a kernel that XNNPACK's log names (selected). It is chosen when a family is initialised, "
    "whether or not the model runs it.",
    "Open: QP8 in a name (dynamic int8) reads alike with and without SME2; only executed kernels decide it.",
    "Inference: the likely reasons why an operator was left out. They follow from names and types, nothing measured "
    "them.",
)


def _was_on(answers: Answers) -> bool:
    """Whether any session with SME2 on succeeded."""
    timed = any(row["variant"] == "sme2_on" for row in answers["latency"])
    return timed or any(row["weight_on"] for row in answers["sme2_kernels"])


def _without(answers: Answers) -> str:
    """Why there is nothing to say, one sentence."""
    known = {row["sme2"] for row in answers["devices"]}
    if True in known:
        return "A device of this sweep has SME2, but no session with SME2 on succeeded, so nothing can be said of it."
    if known == {False}:
        return "No device of this sweep has SME2, so nothing was run with it and there is nothing to compare."
    return "No device of this sweep is known to have SME2, and none ran with it, so there is nothing to compare."


def _speedups(answers: Answers) -> list[Block]:
    rows = [row for row in answers["sme2_speedup"] if row["sessions_on"] and row["sessions_off"]]
    alone = [row for row in answers["sme2_speedup"] if row["sessions_on"] and not row["sessions_off"]]
    blocks: list[Block] = [Heading("Speed-up")]
    if rows:
        names = CellNames(rows, PAIR)
        blocks.append(Table([*names.columns(), *_SPEEDUP], [[*names.cells(row), *_speedup(row)] for row in rows]))
    else:
        blocks.append(Paragraph("Nothing was measured both with SME2 on and with SME2 off, so no speed-up is known."))
    if alone:
        said = f"{counted(len(alone), 'cell').capitalize()} ran with SME2 on and never with it off: no speed-up for it."
        blocks.append(Paragraph(said, tone="quiet"))
    return blocks


_SPEEDUP = (
    Column("SME2 off", "ms", True, "median of session medians, as is SME2 on"),
    Column("SME2 on", "ms", True),
    Column("Speed-up", TIMES, True, "off over on: above 1, SME2 is faster"),
    Column("95 % interval", TIMES, True, f"needs {LEAST_SESSIONS} sessions on each side"),
    Column("Sessions off", "", True),
    Column("Sessions on", "", True),
)


def _speedup(row: Row) -> list[Cell]:
    ratio = row["speedup"]
    return [
        number(row["median_off_ms"], 3),
        number(row["median_on_ms"], 3),
        number(ratio, 2, tone="flag" if ratio is not None and ratio < 1 else ""),
        NOTHING if ratio is None else _interval(row),
        number(row["sessions_off"], 0),
        number(row["sessions_on"], 0),
    ]


def _interval(row: Row) -> Cell:
    interval = speedup_interval(row["medians_off_ms"], row["medians_on_ms"])
    if interval is None:
        return Cell(INSUFFICIENT, tone="quiet")
    return Cell(f"{interval[0]:.2f} to {interval[1]:.2f}", sort=interval[0])


def _coverage(answers: Answers) -> list[Block]:
    rows = answers["sme2_coverage"]
    if not rows:
        return []
    names = CellNames(rows, PAIR)
    said = (
        "Of the work that SME2 could serve (matrix products, and convolutions but depthwise ones), with SME2 on: how "
        "much ran on it. A runner that has SME2 is no proof that a model uses it."
    )
    table = Table([*names.columns(), *_COVERAGE], [[*names.cells(row), *_covered(row)] for row in rows])
    return [Heading("How much ran on SME2"), Paragraph(said), table, *_fp16(answers)]


_COVERAGE = (
    Column("Eligible", "calls per run", True),
    Column("On SME2", "calls per run", True, "by the operators' names"),
    Column("Share by name", "% of time", True, "a lower bound while names leave something open"),
    Column("Share proven", "% of time", True, "with executed kernels deciding what names leave open; else a dash"),
    Column("SME2 kernels", "% of samples", True, "of everything that ran, sampled in sessions of their own"),
    Column("Samples", "", True),
)


def _covered(row: Row) -> list[Cell]:
    samples, on_sme2 = row["executed_samples"], row["executed_sme2_samples"]
    share = on_sme2 / samples if samples and not row["emulated"] else None
    return [
        _calls(row["eligible_calls"]),
        _calls(row["sme2_calls"]),
        percent(row["name_share"]),
        percent(row["proven_share"]),
        percent(share),
        number(samples, 0),
    ]


def _calls(calls: float) -> Cell:
    return number(calls, 0 if float(calls).is_integer() else 1)


def _fp16(answers: Answers) -> list[Block]:
    """What the names of fp16 models show: a 1x1 convolution runs as Fully Connected, and stays off SME2."""
    items = [
        joined(
            f"{row['plain_calls']:.0f} of {row['calls']:.0f} Fully Connected calls of ",
            (Code(row["model"]),),
            " stay F16 in fp16 with SME2 on. These are its 1x1 convolutions, which XNNPACK runs as Fully Connected and "
            "keeps off SME2 in fp16 (inference: the names show F16, not the shape).",
        )
        for row in answers["sme2_fp16"]
    ]
    return [Points(items)] if items else []


def _left_out(answers: Answers) -> list[Block]:
    rows = answers["sme2_left_out"]
    if not rows:
        return []
    columns = (
        Column("Model"),
        Column("Precision"),
        Column("Operator"),
        Column("Calls", "per run", True),
        Column("Share", "%", True, "of the time of all that SME2 could serve, on the device where it is largest"),
        Column("Likely reason (inference)", wraps=True),
    )
    table = Table(
        columns,
        [
            [
                code(row["model"]),
                Cell(row["precision"]),
                code(row["operator"]),
                _calls(row["calls_per_run"]),
                percent(row["share"], bar=True),
                Cell(row["likely_reason"]),
            ]
            for row in rows
        ],
    )
    return [Heading("What should have run on SME2 and did not"), table]


def _details(answers: Answers) -> list[Block]:
    folds = pairs(answers)
    return [Heading("Model by model, SME2 off beside on"), *folds] if folds else []
