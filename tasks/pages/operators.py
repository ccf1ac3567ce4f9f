"""The report's sections on where the time goes: categories, operators, modules, portable operators, advice."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby

from tasks.judge.advice import advice_text
from tasks.pages.page import (
    Block,
    Fold,
    Heading,
    Paragraph,
    Points,
    Section,
    Segment,
    StackChart,
    fold_of_each_cell,
    in_sight,
)
from tasks.results.advice import DATA_MOVEMENT_SHARE, other_advice, portable_advice
from tasks.results.cells import CellNames, by_cell
from tasks.results.latency import has_times
from tasks.results.operators import (
    CATEGORIES,
    FLAGGED_SHARE,
    NO_TIMES,
    OTHER,
    REST,
    CategoryRow,
    DelegateNoteRow,
    ModuleRow,
    OperatorRow,
    PortableOperatorRow,
    PortableRow,
    UnknownOperatorRow,
    heaviest,
    portable_in_words,
    time_in_words,
)
from tasks.results.reader import Answers
from tasks.results.table import (
    NOTHING,
    Cell,
    Column,
    Milliseconds,
    Percent,
    Table,
    at_most_percent,
    number,
    percent,
    table_of,
)
from tasks.results.text import Code, codes, counted, in_percent, joined, listed, ms_digits, rounded_percent

_MAX_UNCERTAINTY = 0.2
_LIGHT_SHARE = 0.01


def categories(answers: Answers) -> Section:
    """Return the shares of Method::execute by category, which add up to 100 % with the unattributed rest."""
    title = "Where the time goes"
    rows = answers.rows(CategoryRow)
    if not rows:
        return Section("time", title, [Paragraph(NO_TIMES)])
    cells = list(by_cell(rows).values())
    names = CellNames(rows)
    blocks: list[Block] = [
        Paragraph(
            f"Shares of Method::execute. {REST} is time that no operator accounts for: the runtime itself, and what a "
            "delegate does between its operators. A 1x1 convolution may run as Fully Connected and then counts as "
            "GEMM. A share with < is below the resolution of the delegate's clock, 1 \u00b5s per call. Emulated "
            "devices are left out."
        )
    ]
    for model, of_model in groupby(cells, key=lambda cell: cell[0].model):
        blocks += _chart(model, list(of_model), names)
    blocks.append(_shares(cells))
    return Section("time", title, [*blocks, *_delegates(answers), *_unknown(answers)], list(time_in_words(answers)))


def _by_category(cell: list[CategoryRow]) -> dict[str, CategoryRow]:
    """Return the row of each category in a cell; a category that no longer exists counts as Other."""
    return {row.category if row.category in CATEGORIES else OTHER: row for row in cell}


def _chart(model: str, cells: list[list[CategoryRow]], names: CellNames) -> Iterator[Block]:
    clear = [cell for cell in cells if _uncertainty(cell) <= _MAX_UNCERTAINTY]
    if len(clear) < len(cells):
        yield Paragraph(
            (
                f"Not drawn: {counted(len(cells) - len(clear), 'cell')} of ",
                Code(model),
                f", in which more than {rounded_percent(_MAX_UNCERTAINTY)} of the time is below the resolution of the "
                "delegate's clock, 1 \u00b5s per call.",
            ),
            tone="quiet",
        )
    bars = [(names.label(cell[0]), _segments({row.category: row.share for row in cell})) for cell in clear]
    if bars:
        yield in_sight(StackChart(f"{model}: shares of Method::execute", CATEGORIES, bars), model)


def _uncertainty(cell: list[CategoryRow]) -> float:
    """Return the share of a cell's time that the delegate's clock cannot assign to an operator."""
    return sum(row.resolution_ms for row in cell if row.category == REST) / (_time_ms(cell) or 1.0)


def _segments(shares: dict[str, float]) -> list[Segment]:
    """Return the shares end to end, scaled to a sum of 1; a negative one, where a delegate reports too much, is 0."""
    drawn = {category: max(0.0, shares.get(category, 0.0)) for category in CATEGORIES}
    total = sum(drawn.values()) or 1.0
    segments, start = [], 0.0
    for category, share in drawn.items():
        if share:
            segments.append(Segment(category, start, share / total))
        start += share / total
    return segments


def _shares(cells: list[list[CategoryRow]]) -> Table:
    columns = [
        *(Percent(category) for category in CATEGORIES),
        Percent("Sum", "of the shares before they are rounded"),
        Milliseconds("Time", "sum of the categories: the time of the cell"),
    ]
    digits = ms_digits(_time_ms(cell) for cell in cells)
    named = table_of([cell[0] for cell in cells])
    return named.with_columns(columns, [_numbers(cell, digits) for cell in cells])


def _numbers(cell: list[CategoryRow], digits: int) -> list[Cell]:
    rows, total_ms = _by_category(cell), _time_ms(cell)
    return [
        *(_share(rows.get(category), total_ms) for category in CATEGORIES),
        percent(sum(row.share for row in cell)),
        number(total_ms, digits),
    ]


def _share(row: CategoryRow | None, total_ms: float) -> Cell:
    if row is None:
        return percent(0.0)
    return percent(row.share) if row.is_resolved else at_most_percent(row.bounds_ms[1] / (total_ms or 1.0))


def _time_ms(cell: list[CategoryRow]) -> float:
    return sum(row.time_ms for row in cell)


def _unknown(answers: Answers) -> Iterator[Paragraph]:
    if unknown := answers.rows(UnknownOperatorRow):
        yield Paragraph(
            joined(
                "Counted as Other because they have no category: ",
                codes((row.name for row in unknown), most=len(unknown)),
                ". To give them one, add them to sql/seeds/operator_category.csv.",
            ),
            tone="flag",
        )


def _delegates(answers: Answers) -> Iterator[Paragraph]:
    for row in answers.rows(DelegateNoteRow):
        yield Paragraph(joined(codes([row.model]), f" {row.precision}: {row.note}."), tone="flag")


def operators(answers: Answers) -> Section:
    """Return the operators that take the most time, those over 5 % highlighted, one fold per cell."""
    title = "Operators that take the most time"
    rows = answers.rows(OperatorRow)
    if not rows:
        return Section("operators", title, [Paragraph(NO_TIMES)])
    blocks: list[Block] = [
        Paragraph(
            "The ten operators of each cell that take the most time, named as in the ETDump, and any others above "
            f"{rounded_percent(FLAGGED_SHARE)} of Method::execute. Those above it are highlighted: optimizing them "
            "changes the latency of the model noticeably."
        )
    ]
    return Section("operators", title, [*blocks, *fold_of_each_cell(rows, _operators)])


def _operators(cell: list[OperatorRow]) -> tuple[str, list[Block]]:
    """Return the two largest operators over 5 % in words, and the table of all."""
    over = [row for row in cell if row.share > FLAGGED_SHARE]
    digits = ms_digits(row.time_ms for row in over)
    longest = listed(f"{row.operator} {in_percent(row.share)}" for row in over[:2])
    table = table_of(cell, is_named=False, digits=digits)
    return longest or f"none over {rounded_percent(FLAGGED_SHARE)}", [table, *_unresolved(cell[0].unresolved)]


def _unresolved(count: int) -> Iterator[Paragraph]:
    if count:
        verb = "takes" if count == 1 else "take"
        yield Paragraph(
            f"{counted(count, 'more operator').capitalize()} {verb} less than 1 \u00b5s per call, the resolution of "
            "the delegate's clock, and cannot be ranked.",
            tone="quiet",
        )


def modules(answers: Answers) -> Section:
    """Return the modules with the largest shares, one fold per cell."""
    title = "Where in the model"
    rows = answers.rows(ModuleRow)
    if not rows:
        absent = "No session of this sweep was measured with an export that states where operators come from."
        return Section("modules", title, [Paragraph(absent)])
    blocks: list[Block] = [
        Paragraph(
            "The modules of each model that take at least 5 % of Method::execute. The rows after them are time that "
            "belongs to no module. The view operator_source lists each operator with its module and source line."
        )
    ]
    return Section("modules", title, [*blocks, *fold_of_each_cell(rows, _modules)])


def _modules(cell: list[ModuleRow]) -> tuple[str, list[Block]]:
    """Return the two modules whose own operators take most of the time in words, and the table of all."""
    digits = ms_digits(row.time_ms for row in cell if row.is_module)
    return heaviest(cell), [table_of(cell, is_named=False, digits=digits)]


def portable(answers: Answers) -> Section:
    """Return the weight of portable operators by cell, then each of them with the exporter's reason."""
    title = "Portable operators"
    weights, operators = answers.rows(PortableRow), answers.rows(PortableOperatorRow)
    blocks: list[Block] = [
        Paragraph(
            "A portable operator runs in ExecuTorch's portable kernels, outside the delegate. Weights are measured; "
            "counts and reasons come from the exporter."
        )
    ]
    if not weights and not operators:
        return Section("portable", title, [*blocks, Paragraph("No portable operators are known in this sweep.")])
    if weights:
        blocks.append(table_of(weights, digits=ms_digits(row.execute_ms for row in weights)))
    return Section("portable", title, [*blocks, *_by_model(operators)], list(portable_in_words(weights)))


def _by_model(rows: list[PortableOperatorRow]) -> Iterator[Block]:
    """Yield the operators of 1 % or more in a table, the others in a fold."""
    if not rows:
        yield Paragraph("Every operator of every model was delegated.")
        return
    heavy = [row for row in rows if (row.share or 0) >= _LIGHT_SHARE]
    light = [row for row in rows if (row.share or 0) < _LIGHT_SHARE]
    portable_of: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in rows:
        portable_of[row.model, row.precision].append(row.operator)
    yield Heading("Which operators, and why")
    if heavy:
        yield _reasons(heavy, portable_of)
    if light:
        count = counted(len(light), "operator").capitalize()
        title = f"{count} below {rounded_percent(_LIGHT_SHARE)} or not seen in any run"
        yield Fold(title, [_reasons(light, portable_of)], is_open=not heavy)


def _reasons(rows: list[PortableOperatorRow], portable_of: dict[tuple[str, str], list[str]]) -> Table:
    """Return the operators, with what to do about those over 5 %."""
    step = Column("What to do", "", f"for an operator over {rounded_percent(FLAGGED_SHARE)}", wraps=True)
    return table_of(rows).with_columns([step], [[_step(row, portable_of)] for row in rows])


def _step(row: PortableOperatorRow, portable_of: dict[tuple[str, str], list[str]]) -> Cell:
    if (row.share or 0.0) <= FLAGGED_SHARE:
        return NOTHING
    return Cell(advice_text(row.operator, row.reason, portable_of[row.model, row.precision]))


def advice(answers: Answers) -> Section:
    """Return advice on portable operators over 5 %, on data movement over 10 %, and on what SME2 did not speed up."""
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
