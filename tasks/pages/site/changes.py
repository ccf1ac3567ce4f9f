"""What changed in a night: models, each with history, cause and the next command, and devices."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date

from tasks.pages.page import Block, Paragraph, Points
from tasks.results.addresses import cell_page, device_page, model_page, series_page
from tasks.results.cells import conditions_of
from tasks.results.explanation import compare_command
from tasks.results.reader import Reader
from tasks.results.series import HistoryRow
from tasks.results.table import NOTHING, Cell, Column, Table, first_rows
from tasks.results.text import DASH, Code, CodeLink, Link, Text, change_of, joined, sentence, with_code
from tasks.results.verdicts import ONLY_OF_LATENCY, Verdict, failed_series, of_latency, of_other_figures, tone_of

MOST_ROWS = 50
HIDDEN = "the pages of models and devices list all series"
_MOST_STEPS = 5
_LEAST_DEVICES = 3  # with fewer, the rows of the table are as short
_CHANGES = ("regression", "inaccurate", "suspected", "improvement")
_WORDS = {"regression": "slower", "improvement": "faster"}
_COLUMNS = (
    Column("Series", wraps=True),
    Column("Verdict", wraps=True),
    Column("Time", "before, after"),
    Column("Change", "%, 95 % interval", numeric=True, wraps=True),
    Column("Adds", "ms per run", "after less before", numeric=True),
    Column("30 nights"),
    Column("Cause, and what changed", wraps=True),
)


def changes_of(reader: Reader, rows: Sequence[Verdict], night: date) -> Iterator[Block]:
    """Yield failed series, changes of latency (largest first, improvements last), and changes of other figures."""
    latency = [row for row in of_latency(rows) if row.verdict in _CHANGES]
    if failed := failed_series(rows):
        yield Paragraph("Failed, without a time:", tone="bad")
        yield Points([joined(named, ": ", with_code(f"{reason.rstrip('.')}.")) for named, reason in failed[:MOST_ROWS]])
    latency.sort(key=lambda row: (row.verdict == "improvement", -abs(row.impact_ms)))
    others = of_other_figures(rows)
    if not latency and not others and not failed:
        yield Paragraph("No model changed.")
    if lines := list(_models_on_many_devices(rows, latency)):
        yield Points(lines)
    if latency:
        yield _table(reader, latency, night)
        yield Paragraph("What to do first:")
        # Reversed, because the last of a key stays: the largest change.
        first_of_model = {(row.model, row.precision, row.verdict): row for row in reversed(latency)}
        worst = sorted(first_of_model.values(), key=latency.index)
        yield Points([_step(reader, row) for row in worst[:_MOST_STEPS]], ordered=True)
    if others:
        yield Paragraph("Other figures than latency that changed:")
        yield first_rows(others, MOST_ROWS, HIDDEN, without=ONLY_OF_LATENCY)


def _models_on_many_devices(rows: Sequence[Verdict], changed: Sequence[Verdict]) -> Iterator[Text]:
    """Yield a line for each model that changed alike on three devices or more: on how many of all, and by how much."""
    devices = defaultdict(set)
    for row in rows:
        devices[row.model, row.precision].add(row.device)
    alike = defaultdict(list)
    for row in changed:
        if row.verdict in _WORDS and row.ratio is not None:
            alike[row.model, row.precision, row.verdict].append(row)
    for (model, precision, verdict), moved in alike.items():
        on = {row.device for row in moved}
        if len(on) >= _LEAST_DEVICES:
            spread = _spread([row.ratio or 1.0 for row in moved])
            of_all = f"{len(on)} of {len(devices[model, precision])} devices {_WORDS[verdict]}, {spread}{_since(moved)}"
            yield joined((CodeLink(model, model_page(model)), f" {precision}: {of_all}."))


def _spread(ratios: Iterable[float]) -> str:
    low, high = change_of(min(ratios := list(ratios))), change_of(max(ratios))
    return f"{low} %" if low == high else f"{low} to {high} %"


def _since(rows: Sequence[Verdict]) -> str:
    """Return ` since <night>` if all rows agree, else an empty text."""
    nights = {row.since for row in rows}
    (night, *others) = nights
    return f" since {night}" if night and not others else ""


def _table(reader: Reader, rows: Sequence[Verdict], night: date) -> Table:
    parameters = {"night": night, "series": [row.series_id + row.device for row in rows[:MOST_ROWS]]}
    history = {(row.series_id, row.device): row.times_ms for row in reader.rows(HistoryRow, parameters)}
    lines = [_line(row, history.get((row.series_id, row.device), [])) for row in rows]
    return Table(_COLUMNS, lines, "Changes, the largest first").shortened(MOST_ROWS, HIDDEN)


def _line(row: Verdict, times_ms: Sequence[float | None]) -> list[Cell]:
    series = (
        CodeLink(row.model, model_page(row.model)),
        f" {row.precision} on ",
        Link(row.device, device_page(row.device)),
        "".join(f", {condition}" for condition in conditions_of(row)),
    )
    has_interval = row.low is not None and row.high is not None
    interval = f" ({change_of(row.low or 1.0)} to {change_of(row.high or 1.0)})" if has_interval else ""
    before, after = (row.figure(value) or DASH for value in (row.baseline_value, row.value))
    return [
        Cell(series),
        Cell((row.verdict, f" since {row.since}" if row.since else ""), tone=tone_of(row.verdict)),
        Cell((f"{before}, ", Link(after, cell_page(row.cell))), sort=row.value),
        Cell(f"{change_of(row.ratio)}{interval}", sort=row.ratio) if row.ratio is not None else NOTHING,
        Cell(f"{row.impact_ms:+,.3f}", sort=row.impact_ms),
        Cell((Link("history", series_page(row.series_id, row.device)),), line=tuple(times_ms)),
        Cell(_why(row)),
    ]


def _why(row: Verdict) -> Text:
    changed = f"Changed: {row.changed}." if row.changed else "Nothing else changed."
    return joined(with_code(f"{row.cause}. "), changed) if row.cause else changed


def _step(reader: Reader, row: Verdict) -> Text:
    """Return the reason of a change, and the command that compares its night with the last good one."""
    name = Link(f"{row.model} {row.precision} on {row.device}", series_page(row.series_id, row.device))
    return joined(
        (name, f": {sentence(row.reason)} Look closer: "),
        (Code(compare_command(reader, row, row.night, row.baseline_to)),),
    )


def devices_of(rows: Iterable[Verdict]) -> list[Text]:
    """Return a line for each device on which series moved although neither model nor runner changed."""
    moved, judged = defaultdict(list), Counter[str]()
    for row in rows:
        judged[row.device] += 1
        if row.verdict.startswith("device"):
            moved[row.device].append(row)
    return [
        joined((Link(device, device_page(device)), f": {_moved(of_device, judged[device])}"))
        for device, of_device in sorted(moved.items(), key=lambda item: -len(item[1]))
    ]


def _moved(found: Sequence[Verdict], judged: int) -> str:
    kinds = Counter(row.verdict.removeprefix("device ") for row in found)
    words = ", ".join(f"{count} of {judged} series {kind}" for kind, count in kinds.items())
    changed = sorted({row.changed for row in found if row.changed})
    what = f" What changed: {'; '.join(changed)}." if changed else ""
    spread = _spread([row.ratio or 1.0 for row in found])
    return f"{words}, {spread}; neither models nor runner changed.{what} Check the device, not the models."
