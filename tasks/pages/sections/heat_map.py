"""The heat map of a night: a row for each model, precision, variant and thread count, a column for each device."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import date
from typing import Any, TypeVar

from tasks.bundle.cell import ROOF
from tasks.bundle.model_names import case_title
from tasks.bundle.runtime import base_model
from tasks.bundle.variant_word import variant_word
from tasks.judge.figures import LATENCY, METRICS
from tasks.pages.charts import HeatCell, HeatMap, HeatRow
from tasks.results.addresses import device_page, series_page
from tasks.results.cells import model_link
from tasks.results.glances.judged_figures import BETTER, WORSE, FigureRow, read_judged_figures
from tasks.results.reader import Reader
from tasks.results.text import counted, numbered
from tasks.results.verdicts import MARKS, UNCHANGED, VerdictRow, latency_verdicts

_MAX_DEVICES, _MAX_ROWS = 20, 60
_MARKS = MARKS | {"no change": "\u00b7"}
_CODES = {verdict: chr(ord("a") + place) for place, verdict in enumerate(_MARKS)}
"""Of verdicts in the data of the script: a letter each, and a dash for none."""
_STEPS = (0.05, 0.10, 0.25)
"""Changes from which the colour is stronger."""
KEY = (
    "\u25b2 worse, \u25b3 suspected worse, \u25b4 worse with its device, \u25bc and \u25be better, \u25bd suspected "
    "better, \u2260 outputs inaccurate, \u2715 failed, ! device too busy or hot, ~ unclear, * new, ? too little data, "
    "\u00b7 no change. Colours: below 5 %, to 10 %, to 25 %, and more. Emulated devices have no times and are left out."
)
_Key = tuple[str, str, str, int | None]
NameT = TypeVar("NameT", bound=Hashable)


def heat_map(reader: Reader, night: date, rows: Sequence[VerdictRow]) -> HeatMap:
    """Return the verdicts of a night: at most 60 rows and 20 devices, the worst first; the rest is counted.

    `rows` are sorted as everywhere: by verdict, then by the size of the change.
    """
    cells: dict[_Key, dict[str, VerdictRow]] = defaultdict(dict)
    rows = [row for row in rows if base_model(row.model) != ROOF]
    for row in latency_verdicts(rows):
        cells[_key(row)].setdefault(row.device, row)  # of two contents, the worst: it comes first
    changes = [row for row in rows if row.verdict not in UNCHANGED]
    keys = _worst_first(cells, changes, _key)
    every_device = {row.device for line in cells.values() for row in line.values()}
    devices = _worst_first(every_device, changes, lambda row: row.device)
    shown_keys, shown_devices = keys[:_MAX_ROWS], devices[:_MAX_DEVICES]
    series = [cells[key].get(device) for key in shown_keys for device in shown_devices]
    figures = read_judged_figures(reader, night, [row for row in series if row])
    hidden = {"more device": len(devices) - _MAX_DEVICES, "more row": len(keys) - _MAX_ROWS}
    rest = " and ".join(numbered(count, what) for what, count in hidden.items() if count > 0)
    labels = _labels(keys)
    drawn = _draw(series, figures)
    return HeatMap(
        caption=f"Change of a figure against its baseline, in percent. {_common(keys)}".strip(),
        devices=[(device, device_page(device)) for device in shown_devices],
        rows=[
            HeatRow((model_link(key[0]),), labels[key], drawn[at : at + len(shown_devices)])
            for at, key in zip(range(0, len(series), len(shown_devices) or 1), shown_keys, strict=False)
        ],
        data=_data(series, figures, shown_keys) | {"night": night, "ids": _ids(series, rows)},
        key=KEY,
        hidden=f"{rest}, those with the smallest changes: the pages of models and devices have them." if rest else "",
    )


def _key(row: VerdictRow) -> _Key:
    return row.model, row.precision, row.variant, row.threads


def _worst_first(
    names: Iterable[NameT], changes: Sequence[VerdictRow], name_of: Callable[[VerdictRow], NameT]
) -> list[NameT]:
    """Return rows or devices by their worst change; those without one are last."""
    first: dict[NameT, int] = {}
    for at, row in enumerate(changes):
        first.setdefault(name_of(row), at)
    return sorted(names, key=lambda name: (first.get(name, len(changes)), str(name)))


def _words(key: _Key) -> tuple[str, str, str]:
    return key[1], variant_word(key[2]), "threads unknown" if key[3] is None else counted(key[3], "thread")


def _common(keys: Sequence[_Key]) -> str:
    """Return what is equal in all rows: `All: fp32, one thread.`"""
    common = [words[0] for words in zip(*map(_words, keys), strict=True) if len(set(words)) == 1]
    return f"All: {', '.join(common)}." if common else ""


def _labels(keys: Sequence[_Key]) -> dict[_Key, str]:
    """Return what distinguishes each row from the others of its model."""
    of_model: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for key in keys:
        of_model[key[0]].append(_words(key))
    several = {model: [len(set(words)) > 1 for words in zip(*rows, strict=True)] for model, rows in of_model.items()}
    return {
        key: ", ".join(word for word, is_several in zip(_words(key), several[key[0]], strict=True) if is_several)
        for key in keys
    }


def _draw(series: Sequence[VerdictRow | None], figures: Sequence[FigureRow]) -> list[HeatCell]:
    """Return the cells of the time."""
    times = {(row.series_id, row.device): row for row in figures if row.metric == LATENCY.name}
    drawn = []
    for row in series:
        figure = times.get((row.series_id, row.device)) if row else None
        if row is None or figure is None:
            drawn.append(HeatCell("", "", "none", ""))
            continue
        change, style = _change(figure)
        to = "" if figure.verdict in UNCHANGED else series_page(row.series_id, row.device)
        drawn.append(HeatCell(_MARKS.get(figure.verdict, "?"), change, style, to))
    return drawn


def _change(figure: FigureRow) -> tuple[str, str]:
    """Return the change of a figure as text, and its style: `worse-1` to `better-4`, `bad`, `quiet` or `same`."""
    if figure.verdict == "no change":
        return "", "same"
    if figure.verdict in UNCHANGED:
        return "", "quiet"
    if figure.verdict not in (*WORSE, *BETTER):
        return "", "bad"
    size = figure.size or 0.0
    step = 1 + sum(size >= each for each in _STEPS)
    return figure.change, f"{'worse' if figure.verdict in WORSE else 'better'}-{step}"


def _shortened(change: str, style: str) -> str:
    """Return a change and its style in few characters: `w3+12.3`, as a page has thousands."""
    return f"{style[0]}{style[-1]}{change}" if "-" in style else f"x0{change}"


def _run_lengths(codes: Iterable[str]) -> str:
    """Return codes with the length of each run after its letter: `a3b-2` for `aaab--`."""
    return re.sub(r"(.)\1+", lambda run: f"{run[1]}{len(run[0])}", "".join(codes))


def _ids(series: Sequence[VerdictRow | None], rows: Sequence[VerdictRow]) -> dict[int, str]:
    """Return the series that the script cannot name by its row, column and night: of two contents, the one shown."""
    contents = Counter((_key(row), row.device) for row in latency_verdicts(rows))
    return {at: row.series_id for at, row in enumerate(series) if row and contents[_key(row), row.device] > 1}


def _data(series: Sequence[VerdictRow | None], figures: Sequence[FigureRow], keys: Sequence[_Key]) -> dict[str, Any]:
    """Return what the script draws: of each figure a letter for each cell, and the changes by their places."""
    places = {(row.series_id, row.device): at for at, row in enumerate(series) if row}
    width = len(series) // len(keys) if keys else 0
    backends = [""] * len(keys)
    of_metric: dict[str, dict[int, FigureRow]] = defaultdict(dict)
    for figure in figures:
        place = places[figure.series_id, figure.device]
        of_metric[figure.metric][place] = figure
        backends[place // width] = figure.backend
    drawn = {}
    for metric in (name for name in METRICS if name in of_metric):
        rows = of_metric[metric]
        codes = _run_lengths(_CODES.get(rows[at].verdict, "?") if at in rows else "-" for at in range(len(series)))
        changes = {at: _shortened(*_change(row)) for at, row in rows.items() if row.verdict not in UNCHANGED}
        unit = "points" if METRICS[metric].is_share else "%"
        title = "time" if metric == LATENCY.name else metric
        drawn[metric] = {"title": title, "unit": unit, "codes": codes, "changes": changes}
    return {
        "figures": drawn,
        "marks": {code: [_MARKS[verdict], verdict] for verdict, code in _CODES.items()},
        "rows": [[*_words(key), backend] for key, backend in zip(keys, backends, strict=True)],
        # Names of series have that of the case, a row its title.
        "models": {line: key[0] for line, key in enumerate(keys) if case_title(key[0]) != key[0]},
        "times": [None if row is None or row.time_ms is None else float(f"{row.time_ms:.4g}") for row in series],
    }
