"""What to do next, in the order in which it pays: each item with the figure that it rests on."""

from collections import defaultdict
from collections.abc import Iterable
from itertools import groupby

from tasks.report.cells import where
from tasks.report.data import Answers, Row
from tasks.report.page import Block, Code, Paragraph, Points, Section, Text
from tasks.report.sections.sme2_pairs import GAINED
from tasks.report.sections.time import FLAGGED_SHARE
from tasks.report.text import TIMES, codes, in_ms, in_percent, joined, whole_percent

DATA_MOVEMENT_SHARE = 0.10
_MOST_OPERATORS = 3


def advice(answers: Answers) -> Section:
    """Portable operators over 5 % first, then data movement over 10 %, then what SME2 did not speed up."""
    title = "What to do next"
    items = [*_delegate(answers), *_lay_out(answers), *_speed_up(answers)]
    if not answers.has_times:
        return Section("advice", title, [Paragraph("Without times of a real device there is nothing to advise on.")])
    blocks: list[Block] = [
        Paragraph(
            f"In this order: portable operators over {whole_percent(FLAGGED_SHARE)} of the time, then data movement "
            f"over {whole_percent(DATA_MOVEMENT_SHARE)}, then delegated operators that SME2 did not speed up. Each "
            "item names the cell where the figure is largest."
        )
    ]
    blocks.append(Points(items, ordered=True) if items else Paragraph("Nothing in this sweep is over these bounds."))
    return Section("advice", title, blocks)


def _delegate(answers: Answers) -> list[Text]:
    operators = defaultdict(list)
    for row in answers["portable_operators"]:
        operators[row["model"], row["precision"]].append(row)
    items = []
    for worst, over, cells in _worst(answers["portable"], FLAGGED_SHARE):
        of_model = operators[worst["model"], worst["precision"]]
        heavy = [row for row in of_model if row["share"]][:_MOST_OPERATORS]
        items.append(
            joined(
                "Delegate the portable operators of ",
                (Code(worst["model"]), f" {worst['precision']}: they take {in_percent(worst['share'])} of the time "),
                f"({in_ms(worst['portable_ms'])} of {in_ms(worst['execute_ms'])} {where(worst)}{_also(over, cells)}). ",
                joined("The heaviest: ", codes([row["operator"] for row in heavy]), ". ") if heavy else "",
                _reason(heavy),
            )
        )
    return items


def _reason(heavy: list[Row]) -> str:
    reasons = list(dict.fromkeys(row["reason"] for row in heavy if row["reason"]))
    return f"Why they stayed portable: {'; '.join(reasons)}." if reasons else ""


def _lay_out(answers: Answers) -> list[Text]:
    movement = [row for row in answers["categories"] if row["category"] == "Data Movement"]
    items = []
    for worst, over, cells in _worst(movement, DATA_MOVEMENT_SHARE):
        cell = [row for row in answers["operators"] if _same_cell(row, worst) and row["category"] == "Data Movement"]
        heavy = [row["operator"] for row in cell if row["share"] > 0][:_MOST_OPERATORS]
        items.append(
            joined(
                "Change the layout of ",
                (Code(worst["model"]), f" {worst['precision']}: data movement takes {in_percent(worst['share'])} "),
                f"({in_ms(worst['time_ms'])} {where(worst)}{_also(over, cells)}). ",
                joined("The heaviest: ", codes(heavy), ".") if heavy else "",
            )
        )
    return items


def _speed_up(answers: Answers) -> list[Text]:
    """For each model, precision and operator that SME2 could serve and left as slow: the cell where it weighs most."""
    slow = [
        row
        for row in answers["sme2_operators"]
        if row["is_eligible"] and (row["share_on"] or 0) > FLAGGED_SHARE and (row["speedup"] or GAINED) < GAINED
    ]
    by_weight = sorted(slow, key=lambda row: row["share_on"])
    worst = {(row["model"], row["precision"], row["operator"], row["microkernel"]): row for row in by_weight}
    return [_slow(row) for row in sorted(worst.values(), key=lambda row: -row["share_on"])]


def _slow(row: Row) -> Text:
    name = " ".join(part for part in (row["operator"], row["microkernel"]) if part)
    return joined(
        "Find out why ",
        (Code(name), " of ", Code(row["model"]), f" {row['precision']} is hardly faster with SME2: "),
        f"{row['speedup']:.2f}{TIMES}, and {in_percent(row['share_on'])} of the time with SME2 on ",
        f"({in_ms(row['time_on_ms'])} on {row['device']}). ",
        f"Likely: {row['likely_reason']}." if row["likely_reason"] else "",
    )


def _worst(rows: Iterable[Row], bound: float) -> list[tuple[Row, int, int]]:
    """For each model and precision over the bound: the row of the largest share, cells over the bound, cells."""
    found = []
    for _, group in groupby(sorted(rows, key=_model), key=_model):
        cells = list(group)
        worst = max(cells, key=lambda row: row["share"])
        if worst["share"] > bound:
            found.append((worst, sum(row["share"] > bound for row in cells), len(cells)))
    return sorted(found, key=lambda entry: -entry[0]["share"])


def _model(row: Row) -> tuple[str, str]:
    return row["model"], row["precision"]


def _same_cell(left: Row, right: Row) -> bool:
    return all(
        left[key] == right[key] for key in ("model", "device", "precision", "variant", "threads", "runner_source")
    )


def _also(over: int, cells: int) -> str:
    if cells == 1:
        return ""
    return f"; over the bound in {'all' if over == cells else f'{over} of'} {cells} cells"
