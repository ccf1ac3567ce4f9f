"""The matrix of a night: a row for each model, precision, variant and thread count, a column for each device."""

from collections import defaultdict
from collections.abc import Sequence

from tasks.results.addresses import device_page, model_page, series_page
from tasks.results.cells import variant_word
from tasks.results.table import NOTHING, Cell, Column, Table
from tasks.results.text import CodeLink, Link, Tone, change_of, ms_digits
from tasks.results.verdicts import Verdict, tone_of

_MOST_DEVICES, _MOST_ROWS = 20, 60
_MARKS = {
    "regression": "\u25b2",
    "suspected": "\u25b3",
    "device slower": "\u25b4",
    "improvement": "\u25bc",
    "device faster": "\u25be",
    "inaccurate": "\u2260",
    "failed": "\u2715",
    "insufficient data": "?",
    "invalid environment": "?",
}
KEY = (
    "Milliseconds of one run, and the change. \u25b2 slower, \u25b3 suspected, \u25b4 slower with its device, \u25bc "
    "and \u25be faster, \u2260 outputs inaccurate, \u2715 failed, ? cannot be judged. Emulated devices have no times "
    "and are left out."
)
_Key = tuple[str, str, str, int | None]


def matrix(rows: Sequence[Verdict]) -> Table:
    """Return verdicts on latency: at most 60 rows and 20 devices, those with changes first; the rest is counted."""
    cells: dict[_Key, dict[str, Verdict]] = defaultdict(dict)
    changed_of_device: dict[str, int] = defaultdict(int)
    for row in rows:
        cells[row.model, row.precision, row.variant, row.threads][row.device] = row
        changed_of_device[row.device] += row.verdict != "no change"
    devices = sorted(changed_of_device, key=lambda name: (-changed_of_device[name], name))
    keys = sorted(
        cells, key=lambda key: (not any(row.verdict != "no change" for row in cells[key].values()), *map(str, key))
    )
    shown = devices[:_MOST_DEVICES]
    columns = [
        Column("Model"),
        Column("Precision"),
        Column("SME2"),
        Column("Threads"),
        *(Column(name, numeric=True, to=device_page(name)) for name in shown),
    ]
    lines = [[*_head(key), *(_cell(cells[key].get(name)) for name in shown)] for key in keys[:_MOST_ROWS]]
    return Table(columns, lines, "", _hidden(len(keys), len(devices)), ("Precision", "SME2", "Threads"))


def _hidden(rows: int, devices: int) -> str:
    parts = []
    if devices > _MOST_DEVICES:
        parts.append(f"{devices - _MOST_DEVICES:,} more devices")
    if rows > _MOST_ROWS:
        parts.append(f"{rows - _MOST_ROWS:,} more rows")
    return (
        f"{' and '.join(parts)}, those with the fewest changes: the pages of models and devices have them"
        if parts
        else ""
    )


def _head(key: _Key) -> list[Cell]:
    model, precision, variant, threads = key
    name = Cell((CodeLink(model, model_page(model)),))
    return [
        name,
        Cell(precision),
        Cell(variant_word(variant)),
        Cell(str(threads) if threads is not None else "unknown"),
    ]


def _cell(row: Verdict | None) -> Cell:
    """Return the time of a series and its change; only one that changed links to its history."""
    if row is None or row.value is None:
        return NOTHING if row is None else Cell(_MARKS.get(row.verdict, "?"), tone=_tone(row.verdict))
    time_ms = row.value / 1e6
    text = f"{time_ms:,.{ms_digits([time_ms])}f}"
    if row.verdict == "no change":
        return Cell(text, sort=time_ms)
    mark = _MARKS.get(row.verdict, "")
    change = f" {mark} {change_of(row.ratio)} %" if row.ratio is not None else f" {mark}"
    return Cell((Link(text, series_page(row.series_id, row.device)), change), time_ms, _tone(row.verdict))


def _tone(verdict: str) -> Tone:
    return "quiet" if _MARKS.get(verdict, "?") == "?" else tone_of(verdict)
