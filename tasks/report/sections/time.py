"""The report's sections on where the time goes: by category, and operator by operator."""

from itertools import groupby

from tasks.report.cells import CellNames, cell_of
from tasks.report.data import Answers, Row
from tasks.report.page import Block, Cell, Code, Column, Fold, Paragraph, Section, Segment, StackChart, Table
from tasks.report.text import code, counted, in_percent, listed, ms_digits, number, percent, whole_percent

CATEGORIES = ("Convolution", "GEMM", "Data Movement", "Elementwise", "Other", "Unattributed")
FLAGGED_SHARE = 0.05
_MOST_BARS_IN_SIGHT = 40
NO_TIMES = "No session on a device with times of its own succeeded, so there is nothing to divide."


def categories(answers: Answers) -> Section:
    """Shares of Method::execute by category, which add up to 100 % with the unattributed rest."""
    title = "Where the time goes"
    rows = answers["categories"]
    if not rows:
        return Section("time", title, [Paragraph(NO_TIMES)])
    cells = [list(group) for _, group in groupby(rows, key=cell_of)]
    names = CellNames(rows)
    blocks: list[Block] = [
        Paragraph(
            "Shares of Method::execute, end to end. Unattributed is what no operator accounts for: the runtime itself, "
            "and what a delegate does between its operators. A convolution of 1x1 may run as Fully Connected and then "
            "counts as GEMM. Emulated devices have no share in this."
        )
    ]
    for model, of_model in groupby(cells, key=lambda cell: cell[0]["model"]):
        blocks += _chart(model, list(of_model), names)
    digits = ms_digits(sum(row["time_ms"] for row in cell) for cell in cells)
    heads = [Column(category, "%", True) for category in CATEGORIES]
    table = Table(
        [
            *names.columns(),
            *heads,
            Column("Sum", "%", True),
            Column("Time", "ms", True, "Method::execute, mean of all runs"),
        ],
        [[*names.cells(cell[0]), *_shares(cell, digits)] for cell in cells],
    )
    blocks.append(table)
    if unknown := answers["unknown_operators"]:
        blocks.append(
            Paragraph(
                (
                    "Counted as Other because no rule knows them: ",
                    *_names_of(unknown),
                    ". A line in sql/seeds/operator_category.csv gives them a category.",
                ),
                tone="flag",
            )
        )
    return Section("time", title, blocks)


def shares_of(cell: list[Row]) -> dict[str, float]:
    """Each category's share in a cell, 0 for those that do not occur."""
    return dict.fromkeys(CATEGORIES, 0.0) | {row["category"]: row["share"] for row in cell}


def in_tenths(shares: dict[str, float]) -> dict[str, float]:
    """Round shares to tenths of a percent so that they still add up to exactly 1 (largest remainder)."""
    thousandths = {key: share * 1000 for key, share in shares.items()}
    rounded = {key: int(value // 1) for key, value in thousandths.items()}
    missing = round(sum(thousandths.values())) - sum(rounded.values())
    by_rest = sorted(thousandths, key=lambda key: rounded[key] - thousandths[key])
    for key in by_rest[:missing]:
        rounded[key] += 1
    return {key: value / 1000 for key, value in rounded.items()}


def _chart(model: str, cells: list[list[Row]], names: CellNames) -> list[Block]:
    bars = [(names.label(cell[0]), _segments(in_tenths(shares_of(cell)))) for cell in cells]
    chart = StackChart(f"{model}: shares of Method::execute", CATEGORIES, bars)
    return (
        [Fold((Code(model), f": chart of {counted(len(bars), 'cell')}"), [chart])]
        if len(bars) > _MOST_BARS_IN_SIGHT
        else [chart]
    )


def _segments(shares: dict[str, float]) -> list[Segment]:
    """Lay the shares end to end; less than nothing, where a delegate reports too much, is drawn as 0."""
    drawn = {category: max(0.0, share) for category, share in shares.items()}
    whole = sum(drawn.values()) or 1.0
    segments, start = [], 0.0
    for category, share in drawn.items():
        if share:
            segments.append(Segment(category, start, share / whole))
        start += share / whole
    return segments


def _shares(cell: list[Row], digits: int) -> list[Cell]:
    shares = in_tenths(shares_of(cell))
    return [
        *(percent(shares[category]) for category in CATEGORIES),
        percent(sum(shares.values())),
        number(sum(row["time_ms"] for row in cell), digits),
    ]


def operators(answers: Answers) -> Section:
    """The operators that take the most time, those over 5 % flagged, one fold a cell."""
    title = "Operators that take the most time"
    rows = answers["operators"]
    if not rows:
        return Section("operators", title, [Paragraph(NO_TIMES)])
    names = CellNames(rows)
    blocks: list[Block] = [
        Paragraph(
            f"The ten of each cell that take the most time, by their names in the ETDump. Those over "
            f"{whole_percent(FLAGGED_SHARE)} of Method::execute stand out: a change there shows end to end."
        )
    ]
    seen = set()
    for _, group in groupby(rows, key=cell_of):
        cell = list(group)
        model = cell[0]["model"]
        blocks.append(_fold(cell, names, is_open=model not in seen))
        seen.add(model)
    return Section("operators", title, blocks)


def _fold(cell: list[Row], names: CellNames, *, is_open: bool) -> Fold:
    over = [row for row in cell if row["share"] > FLAGGED_SHARE]
    heaviest = listed(f"{row['operator']} {in_percent(row['share'])}" for row in over[:2])
    title = (Code(cell[0]["model"]), f" · {names.label(cell[0])} — {heaviest or 'none over 5 %'}")
    columns = (
        Column("Operator"),
        Column("Kind"),
        Column("Category"),
        Column("Calls", "per run", True),
        Column("Time", "ms per run", True),
        Column("Share", "%", True),
    )
    return Fold(
        title,
        [Table(columns, [_operator(row, ms_digits(row["time_ms"] for row in over)) for row in cell])],
        is_open=is_open,
    )


def _operator(row: Row, digits: int) -> list[Cell]:
    tone = "flag" if row["share"] > FLAGGED_SHARE else ""
    whole_calls = float(row["calls_per_run"]).is_integer()
    return [
        code(row["operator"]),
        Cell(row["kind"], tone="flag" if row["kind"] == "portable" and tone else ""),
        Cell(row["category"]),
        number(row["calls_per_run"], 0 if whole_calls else 2),
        number(row["time_ms"], digits),
        percent(row["share"], tone="flag" if tone else "", bar=True),
    ]


def _names_of(unknown: list[Row]) -> list[str]:
    parts: list[str] = []
    for position, row in enumerate(unknown):
        parts += [", "] if position else []
        parts.append(Code(row["name"]))
    return parts
