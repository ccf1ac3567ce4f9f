"""The matrix of a night for Markdown: a row for each model and its conditions, a column for each device."""

from collections import defaultdict
from collections.abc import Sequence

from tasks.bundle.variant_word import variant_word
from tasks.results.addresses import device_page, series_page
from tasks.results.cells import model_link
from tasks.results.table import NOTHING, Cell, Column, Table
from tasks.results.text import Link, Tone, ms_digits, numbered, word_tone
from tasks.results.verdicts import MARKS, UNCHANGED, VerdictRow

_MAX_DEVICES, _MAX_ROWS = 20, 60
_NOT_JUDGED = "?"
KEY = (
    "Milliseconds of one run, and the change. \u25b2 slower, \u25b3 suspected slower, \u25b4 slower with its device, "
    "\u25bc and \u25be faster, \u25bd suspected improvement, \u2260 outputs inaccurate, \u2715 failed, ! device too "
    "busy or hot, ~ unclear, * new, ? too little data. Emulated devices have no times and are left out."
)


def matrix(rows: Sequence[VerdictRow]) -> Table:
    """Return verdicts on latency: at most 60 rows and 20 devices, those with changes first; the rest is counted."""
    cells: dict[tuple[str, str, str, int | None], dict[str, VerdictRow]] = defaultdict(dict)
    changes_on = dict.fromkeys((row.device for row in rows), 0)
    for row in rows:
        cells[row.model, row.precision, row.variant, row.threads][row.device] = row
        changes_on[row.device] += _is_changed(row)
    devices = sorted(changes_on, key=lambda device: (-changes_on[device], device))
    keys = sorted(cells, key=lambda key: (not any(map(_is_changed, cells[key].values())), *map(str, key)))
    columns = [
        Column("Model"),
        Column("Precision"),
        Column("Variant"),
        Column("Threads"),
        *(Column(name, numeric=True, to=device_page(name)) for name in devices[:_MAX_DEVICES]),
    ]
    lines = []
    for key in keys[:_MAX_ROWS]:
        model, precision, variant, threads = key
        texts = (precision, variant_word(variant), str(threads) if threads is not None else "unknown")
        head = [Cell((model_link(model),)), *map(Cell, texts)]
        lines.append([*head, *(_cell(cells[key].get(device)) for device in devices[:_MAX_DEVICES])])
    hidden = {"more device": len(devices) - _MAX_DEVICES, "more row": len(keys) - _MAX_ROWS}
    rest = " and ".join(numbered(count, what) for what, count in hidden.items() if count > 0)
    where = f"{rest}, those with the fewest changes: the pages of models and devices have them" if rest else ""
    return Table(columns, lines, hidden=where)


def _is_changed(row: VerdictRow) -> bool:
    """Return whether a verdict is a change; what cannot be judged is none."""
    return row.verdict not in UNCHANGED


def _cell(row: VerdictRow | None) -> Cell:
    """Return the time of a series and its change; only one that changed links to its history."""
    if row is None:
        return NOTHING
    mark = MARKS.get(row.verdict, _NOT_JUDGED)
    tone: Tone = "quiet" if mark == _NOT_JUDGED else word_tone(row.verdict)
    if row.value is None:
        return Cell(mark, tone=tone)
    time_ms = row.value / 1e6
    text = f"{time_ms:,.{ms_digits([time_ms])}f}"
    if row.verdict == "no change":
        return Cell(text, sort=time_ms)
    change = f" {mark} {row.change}".rstrip()
    return Cell((Link(text, series_page(row.series_id, row.device)), change), time_ms, tone)
