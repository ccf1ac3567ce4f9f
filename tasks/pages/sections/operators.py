"""The report's sections on where the time goes: categories, operators, modules, portable operators, advice, what if."""

from collections.abc import Iterator, Mapping
from itertools import groupby

from tasks.judge.operators.advice import HEAVY_SHARE, advice_text
from tasks.pages.charts import Segment, StackChart
from tasks.pages.page import Block, Explanation, Fold, Heading, Paragraph, Points, Section, cell_folds, fold_if_long
from tasks.pages.sections.icicle import brief_icicle
from tasks.results.cells import CellNames, by_cell_or_pair
from tasks.results.measurements.latency import has_times
from tasks.results.measurements.operators import (
    CATEGORIES,
    NO_TIMES,
    REST,
    CategoryRow,
    DelegateNoteRow,
    ModuleRow,
    OperatorRow,
    PortableOperatorRow,
    PortableRow,
    UnknownOperatorRow,
    heaviest_modules,
    portable_in_words,
    read_categories,
    time_in_words,
)
from tasks.results.measurements.sweep_advice import DATA_MOVEMENT_SHARE, other_advice, portable_advice
from tasks.results.measurements.time_tree import TimePartRow
from tasks.results.measurements.what_if import predictions_in_words, read_what_ifs, record_in_words
from tasks.results.reader import Answers
from tasks.results.table import (
    NOTHING,
    Cell,
    Column,
    Milliseconds,
    Percent,
    Table,
    at_most_percent,
    build_table,
    grouped,
    number,
    percent,
)
from tasks.results.text import Code, codes, counted, in_percent, joined, listed, ms_digits, rounded_percent

_WHAT_IF = (
    f"For operators over {rounded_percent(HEAVY_SHARE)} of the time. A portable operator is predicted from what the "
    "same rewrite gained where it was measured before and after, any other from the share of the roof that the others "
    "of its kind reach. The next night in which the operator has changed shows whether the prediction was right."
)
_MAX_UNCERTAINTY = 0.2
_LIGHT_SHARE = 0.01


def categories(answers: Answers) -> Section:
    """Return the shares of Method::execute by category, which add up to 100 % with the unattributed rest."""
    title = "Where the time goes"
    cells = read_categories(answers)
    if not cells:
        return Section("time", title, [Paragraph(NO_TIMES)])
    names = CellNames([cell[0] for cell in cells])
    blocks: list[Block] = [
        Explanation(
            f"Shares of Method::execute. {REST} is time that no operator accounts for: the runtime itself, and what a "
            "delegate does between its operators. A 1x1 convolution may run as Fully Connected and then counts as "
            "GEMM. A share with < is below the resolution of the delegate's clock, 1 \u00b5s per call. Emulated "
            "devices are left out."
        )
    ]
    for model, of_model in groupby(cells, key=lambda cell: cell[0].model):
        blocks += _category_chart(model, list(of_model), names)
    blocks.append(_category_table(cells))
    for note in answers.rows(DelegateNoteRow):
        blocks.append(Paragraph((Code(note.model), f" {note.precision}: {note.note}."), tone="flag"))
    if unknown := [row.name for row in answers.rows(UnknownOperatorRow)]:
        named = codes(unknown, most=len(unknown))
        step = ". To give them one, add them to sql/seeds/operator_category.csv."
        blocks.append(Paragraph(joined("Counted as Other because they have no category: ", named, step), tone="flag"))
    return Section("time", title, blocks, list(time_in_words(answers)))


def _category_chart(model: str, cells: list[list[CategoryRow]], names: CellNames) -> Iterator[Block]:
    """Yield the chart of a model's cells without those that the delegate's clock cannot resolve, and their number."""
    bars = []
    for cell in cells:
        uncertain_ms = sum(row.resolution_ms for row in cell if row.category == REST)
        if uncertain_ms / (_time_ms(cell) or 1.0) <= _MAX_UNCERTAINTY:
            # A negative share, where a delegate reports too much, is drawn as 0; the sum is drawn as 1.
            shares = {row.category: max(0.0, row.share) for row in cell}
            total, start, segments = sum(shares.values()) or 1.0, 0.0, []
            for category in CATEGORIES:
                share = shares.get(category, 0.0) / total
                if share:
                    segments.append(Segment(category, start, share))
                start += share
            bars.append((names.label(cell[0]), segments))
    if len(bars) < len(cells):
        why = (
            f", in which more than {rounded_percent(_MAX_UNCERTAINTY)} of the time is below the resolution of the "
            "delegate's clock, 1 \u00b5s per call."
        )
        yield Paragraph((f"Not drawn: {counted(len(cells) - len(bars), 'cell')} of ", Code(model), why), tone="quiet")
    if bars:
        yield fold_if_long(StackChart(f"{model}: shares of Method::execute", CATEGORIES, bars), model)


def _category_table(cells: list[list[CategoryRow]]) -> Table:
    """Return a line for each cell: its categories in percent, their sum, and its time."""
    digits = ms_digits(_time_ms(cell) for cell in cells)
    lines = []
    for cell in cells:
        total_ms, line = _time_ms(cell), dict.fromkeys(CATEGORIES, percent(0.0))
        for row in cell:
            upper_share = row.bounds_ms[1] / (total_ms or 1.0)
            line[row.category] = percent(row.share) if row.is_resolved else at_most_percent(upper_share)
        lines.append([*line.values(), percent(sum(row.share for row in cell)), number(total_ms, digits)])
    columns = [
        *(Percent(category) for category in CATEGORIES),
        Percent("Sum", "of the shares before they are rounded"),
        Milliseconds("Time", "sum of the categories: the time of the cell"),
    ]
    return build_table([cell[0] for cell in cells]).with_columns(columns, lines)


def _time_ms(cell: list[CategoryRow]) -> float:
    return sum(row.time_ms for row in cell)


def operators(answers: Answers) -> Section:
    """Return the operators that take the most time, those over 5 % highlighted, one fold per cell."""
    title = "Operators that take the most time"
    rows = answers.rows(OperatorRow)
    if not rows:
        return Section("operators", title, [Paragraph(NO_TIMES)])
    explained = (
        "The ten operators of each cell that take the most time, named as in the ETDump, and any others above "
        f"{rounded_percent(HEAVY_SHARE)} of Method::execute. Those above it are highlighted: optimizing them "
        "changes the latency of the model noticeably."
    )
    blocks: list[Block] = [Explanation(explained)]
    for cell, fold in cell_folds(rows):
        over = [row for row in cell if row.share > HEAVY_SHARE]
        longest = listed(f"{row.operator} {in_percent(row.share)}" for row in over[:2])
        inner: list[Block] = [build_table(cell, is_named=False, digits=ms_digits(row.time_ms for row in over))]
        if unresolved := cell[0].unresolved:
            verb = "takes" if unresolved == 1 else "take"
            note = (
                f"{counted(unresolved, 'more operator').capitalize()} {verb} less than 1 \u00b5s per call, the "
                "resolution of the delegate's clock, and cannot be ranked."
            )
            inner.append(Paragraph(note, tone="quiet"))
        blocks.append(fold.filled(longest or f"none over {rounded_percent(HEAVY_SHARE)}", inner))
    return Section("operators", title, blocks)


def modules(answers: Answers) -> Section:
    """Return the modules with the largest shares, one fold per cell; the first one of a model has a drawing."""
    title = "Where in the model"
    rows = answers.rows(ModuleRow)
    if not rows:
        absent = "No session of this sweep was measured with an export that states where operators come from."
        return Section("modules", title, [Paragraph(absent)])
    explained = (
        "The modules of each model that take at least 5 % of Method::execute. The rows after them are time that "
        "belongs to no module. The view operator_source lists each operator with its module and source line."
    )
    blocks: list[Block] = [Explanation(explained)]
    parts = by_cell_or_pair(answers.rows(TimePartRow))
    for cell, fold in cell_folds(rows):
        digits = ms_digits(row.time_ms for row in cell if row.is_module)
        drawing = brief_icicle(parts[cell[0].cell]) if fold.is_open else []
        table = build_table(cell, is_named=False, digits=digits)
        blocks.append(fold.filled(heaviest_modules(cell), [*drawing, table]))
    return Section("modules", title, blocks)


def portable(answers: Answers) -> Section:
    """Return portable operators by cell, then each with the exporter's reason, those below 1 % in a fold."""
    title = "Portable operators"
    weights, operators = answers.rows(PortableRow), answers.rows(PortableOperatorRow)
    blocks: list[Block] = [
        Explanation(
            "A portable operator runs in ExecuTorch's portable kernels, outside the delegate. Weights are measured; "
            "counts and reasons come from the exporter."
        )
    ]
    if not weights and not operators:
        return Section("portable", title, [*blocks, Paragraph("No portable operators are known in this sweep.")])
    if weights:
        blocks.append(build_table(weights, digits=ms_digits(row.execute_ms for row in weights)))
    if not operators:
        blocks.append(Paragraph("Every operator of every model was delegated."))
        return Section("portable", title, blocks, list(portable_in_words(weights)))
    names = grouped(operators, lambda row: (row.model, row.precision))
    portable_names = {export: [row.operator for row in rows] for export, rows in names.items()}
    light = [row for row in operators if (row.share or 0.0) < _LIGHT_SHARE]
    heavy = [row for row in operators if (row.share or 0.0) >= _LIGHT_SHARE]
    blocks.append(Heading("Which operators, and why"))
    if heavy:
        blocks.append(_reason_table(heavy, portable_names))
    if light:
        count = counted(len(light), "operator").capitalize()
        light_title = f"{count} below {rounded_percent(_LIGHT_SHARE)} or not seen in any run"
        blocks.append(Fold(light_title, [_reason_table(light, portable_names)], is_open=not heavy))
    return Section("portable", title, blocks, list(portable_in_words(weights)))


def _reason_table(rows: list[PortableOperatorRow], portable_names: Mapping[tuple[str, str], list[str]]) -> Table:
    """Return the operators, with what to do about those over 5 %; `portable_names` are all of each export."""
    step = Column("What to do", "", f"for an operator over {rounded_percent(HEAVY_SHARE)}", wraps=True)
    steps = [
        [Cell(advice_text(row.operator, row.reason, portable_names[row.model, row.precision]))]
        if (row.share or 0.0) > HEAVY_SHARE
        else [NOTHING]
        for row in rows
    ]
    return build_table(rows).with_columns([step], steps)


def advice(answers: Answers) -> Section:
    """Return advice on portable operators, data movement, what SME2 did not speed up, and long-lived buffers."""
    title = "What to do next"
    if not has_times(answers):
        nothing = "No session on a real device succeeded, so there are no times to base advice on."
        return Section("advice", title, [Paragraph(nothing)])
    explained = (
        f"In this order: portable operators over {rounded_percent(HEAVY_SHARE)} of the time, data movement over "
        f"{rounded_percent(DATA_MOVEMENT_SHARE)}, delegated operators that SME2 did not speed up, and planned "
        "buffers that live over most of a graph. Each item gives the cell with the largest value."
    )
    items = [*portable_advice(answers), *other_advice(answers)]
    last = Points(items, ordered=True) if items else Paragraph("No operator of this sweep is over these bounds.")
    return Section("advice", title, [Explanation(explained), last])


def what_if(answers: Answers) -> Section:
    """Return the predictions about the cells of a sweep, those that its cells came after, and the farm's record."""
    title = "What if"
    predictions, compared = read_what_ifs(answers)
    record = record_in_words(answers)
    if not predictions and not compared:
        nothing = "No operator over 5 % of the time has a measured pair, or peers with a known roof."
        return Section("what-if", title, [Paragraph(text) for text in (nothing, record) if text])
    blocks: list[Block] = [Explanation(_WHAT_IF)]
    if predictions:
        blocks.append(build_table(predictions, digits=ms_digits(row.predicted_ms for row in predictions)))
    if compared:
        digits = ms_digits(row.predicted_ms for row in compared)
        blocks += [Heading("Predicted and measured"), build_table(compared, digits=digits)]
    blocks += [Paragraph(record)] if record else []
    return Section("what-if", title, blocks, list(predictions_in_words(predictions[:1])))
