"""One fold a pair of cells, SME2 off beside on: where the time went, which operators gained, which kernels ran."""

from collections import defaultdict
from typing import Any

from tasks.report.cells import PAIR, CellNames, pair_of
from tasks.report.data import Answers, Row
from tasks.report.page import Block, Cell, Code, Column, Fold, Table, Tag
from tasks.report.text import TIMES, code, in_ms, number, percent, words

GAINED = 1.1
"""A speed-up below this counts as none: smaller ones are within what one sweep can tell."""


def pairs(answers: Answers) -> list[Block]:
    """A fold for each model, device, precision and thread count that has something to show, the first one open."""
    found: dict[tuple[Any, ...], Row] = {}
    parts: dict[str, dict[tuple[Any, ...], list[Row]]] = {}
    for query in ("sme2_shift", "sme2_operators", "sme2_kernels"):
        parts[query] = defaultdict(list)
        for row in answers[query]:
            parts[query][pair_of(row)].append(row)
            found.setdefault(pair_of(row), row)
    speedups = {pair_of(row): row for row in answers["sme2_speedup"]}
    names = CellNames(found.values(), PAIR)
    folds: list[Block] = []
    for pair, row in found.items():
        tables = [
            *_shift(parts["sme2_shift"][pair]),
            *_operators(parts["sme2_operators"][pair]),
            *_kernels(parts["sme2_kernels"][pair]),
        ]
        mark = (Tag("emulated"),) if row.get("emulated") else ()
        title = (Code(row["model"]), f" · {names.label(row)}", *mark, _gain(speedups.get(pair)))
        folds.append(Fold(title, tables, is_open=not folds))
    return folds


def _gain(speedup: Row | None) -> str:
    if speedup is None or speedup["speedup"] is None:
        return ""
    before, after = in_ms(speedup["median_off_ms"]), in_ms(speedup["median_on_ms"])
    return f" \u2014 {before} to {after}, {speedup['speedup']:.2f}{TIMES}"


def _shift(rows: list[Row]) -> list[Table]:
    columns = (
        Column("Category"),
        Column("SME2 off", "%", True),
        Column("SME2 on", "%", True),
        Column("Change", "points", True),
        Column("SME2 off", "ms", True),
        Column("SME2 on", "ms", True),
        Column("Change", "ms", True),
    )
    cells = [
        [
            Cell(row["category"]),
            percent(row["share_off"]),
            percent(row["share_on"]),
            _signed(row["change_points"], 1),
            number(row["time_off_ms"], 3),
            number(row["time_on_ms"], 3),
            _signed(row["change_ms"], 3),
        ]
        for row in rows
    ]
    return [Table(columns, cells, caption="Where the time went")] if cells else []


def _operators(rows: list[Row]) -> list[Table]:
    columns = (
        Column("Operator"),
        Column("Types off"),
        Column("Types on"),
        Column("Calls", "per run", True),
        Column("SME2 off", "ms", True),
        Column("SME2 on", "ms", True),
        Column("Speed-up", TIMES, True),
        Column("Saved", "ms", True),
    )
    cells = [
        [
            code(" ".join(part for part in (row["operator"], row["microkernel"]) if part)),
            words(row["data_types_off"]),
            words(row["data_types_on"]),
            number(row["calls_per_run"], 0 if float(row["calls_per_run"]).is_integer() else 1),
            number(row["time_off_ms"], 3),
            number(row["time_on_ms"], 3),
            number(row["speedup"], 2, tone="flag" if _did_not_gain(row) else ""),
            _signed(row["saved_ms"], 3),
        ]
        for row in rows
    ]
    return [Table(columns, cells, caption="Operators that SME2 could serve, and others over 5 %")] if cells else []


def _did_not_gain(row: Row) -> bool:
    return row["is_eligible"] and row["speedup"] is not None and row["speedup"] < GAINED


def _kernels(rows: list[Row]) -> list[Table]:
    units = {"executed": "samples", "selected": "lines of the log"}
    captions = {"executed": "Kernels that ran (executed)", "selected": "Kernels that XNNPACK selected, run or not"}
    tables = []
    for evidence, unit in units.items():
        columns = (Column("Kernel"), Column("Family"), Column("SME2 off", unit, True), Column("SME2 on", unit, True))
        cells = [
            [
                code(row["kernel"]),
                Cell(row["isa_family"]),
                number(row["weight_off"], 0),
                number(row["weight_on"], 0),
            ]
            for row in rows
            if row["evidence"] == evidence
        ]
        tables += [Table(columns, cells, caption=captions[evidence])] if cells else []
    return tables


def _signed(value: float | None, digits: int) -> Cell:
    """A number with its sign; one that rounds to nothing has none."""
    if value is None or round(value, digits) == 0:
        return number(None if value is None else 0.0, digits)
    return Cell(f"{value:+,.{digits}f}", sort=value)
