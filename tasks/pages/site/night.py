"""The pages of a night and of all nights. A night: what changed, the next command, devices that moved, its sweeps."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date

from tasks.bundle.model_names import case_title
from tasks.judge.figures import signed_interval, signed_percent
from tasks.pages.page import MAX_LISTED, Block, Page, Paragraph, Points, Section
from tasks.pages.sections import incidents
from tasks.pages.sections.heat_map import heat_map
from tasks.results import addresses
from tasks.results.addresses import cell_page, device_page, series_page
from tasks.results.cells import model_link
from tasks.results.devices import read_devices
from tasks.results.explanation import closer_command
from tasks.results.glances.histories import read_histories
from tasks.results.glances.incident_cards import read_night_cards
from tasks.results.night import headline_parts, night_headline
from tasks.results.reader import Reader, SweepRow
from tasks.results.series import NightRow
from tasks.results.sessions import NightFailureRow
from tasks.results.table import NOTHING, Cell, Column, Table, build_table, first_rows, grouped
from tasks.results.text import (
    DASH,
    Code,
    Link,
    Text,
    Tone,
    counted,
    joined,
    sentence,
    separated,
    series_conditions,
    with_code,
    word_tone,
)
from tasks.results.verdicts import (
    ONLY_OF_LATENCY,
    VerdictRow,
    failed_series,
    has_answer,
    latency_verdicts,
    other_verdicts,
)

_MAX_CHANGES = 50
_MAX_STEPS = 5
_MIN_DEVICES = 3
"""With fewer, the rows of the table are as short as the line that sums them up."""
_ELSEWHERE = "the pages of models and devices list all series"
_WORSE = ("regression", "inaccurate", "suspected")
_BETTER = ("improvement", "suspected improvement")
_SECTIONS = {
    "failed": "failed",
    **dict.fromkeys(_BETTER, "faster"),
    "device slower": "devices",
    **dict.fromkeys(_WORSE, "changed"),
}
"""Where a page lists the series of a verdict; all others are in its matrix."""
_LOUD = ("regression", "inaccurate", "failed", "suspected", "device slower")
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


def list_page(rows: Sequence[NightRow], every_sweep: Iterable[SweepRow]) -> Page:
    """Return the page of all nights and their sweeps; sweeps without a night (loose ETDumps) are left out."""
    sweeps = [sweep for sweep in every_sweep if sweep.night]
    blocks: list[Block] = [
        first_rows(rows, MAX_LISTED, "etfarm sql lists all: verdict"),
        Paragraph("Sweeps of these nights:"),
        first_rows(sweeps, MAX_LISTED, "etfarm sql lists all: sweep_overview"),
    ]
    answer = f"{counted(len(rows), 'night').capitalize()}, {counted(len(sweeps), 'sweep')}."
    return Page("Nights", [Section("all", "All", blocks)], answer=answer)


def page(reader: Reader, night: date, nights: Sequence[NightRow], rows: Sequence[VerdictRow]) -> Page:
    """Return the page of a night from its verdicts; `nights` are all nights, the newest first."""
    latency = latency_verdicts(rows)
    sections = incidents.section(read_night_cards(reader, [night])[night], "Incidents of this night")
    if latency:
        sections.append(Section("matrix", "Models and devices", [heat_map(reader, night, rows)]))
    sections += _changes(reader, rows, night) if rows else []
    if moved := _moved_devices(latency):
        sections.append(Section("devices", "Devices that moved", [Points(moved)]))
    sections.append(Section("sessions", "How it ran", list(_sweep_blocks(reader, night))))
    answer = answer_of_night(rows)
    answer = answer if rows else joined(answer, " ", step_without_verdicts(reader, "#sessions"))
    subtitle: list[str] = [f"{night:%A}, {night}"]
    if earlier := next((row.night for row in nights if row.night < night), None):
        subtitle += [" · ", Link(f"night before: {earlier}", addresses.night_page(earlier))]
        subtitle += [" · ", Link("compare with it", addresses.comparison_page(earlier, night))]
    if later := next((row.night for row in reversed(nights) if row.night > night), None):
        subtitle += [" · ", Link(f"night after: {later}", addresses.night_page(later))]
    return Page(f"Night of {night}", sections, tuple(subtitle), answer, answer_tone(rows))


def answer_of_night(rows: Sequence[VerdictRow], page: str = "") -> Text:
    """Return the headline of a night; each count leads to the section of the night's page that lists its series.

    `page` is the address of that page; on it, it is empty, and the worst series is named.
    """
    if not has_answer(rows):
        return night_headline(rows)
    parts: list[Text] = []
    for part in headline_parts(rows):
        anchor = _SECTIONS.get(part.verdicts[0], "matrix") if part.verdicts else "others"
        if anchor == "faster" and not any(row.verdict in _BETTER for row in rows):
            anchor = "devices"  # all that is faster is so with its device
        text, worst = (part.short, "") if page else (part.count, part.worst)
        parts.append((Link(text, f"{page}#{anchor}"), worst))
    return joined(separated(parts, "; "), ".")


def answer_tone(rows: Sequence[VerdictRow]) -> Tone:
    """Return the tone of the headline: that of the worst verdict that is no mere note."""
    alarms = {row.verdict for row in rows if row.measured_later is None}
    return next((word_tone(verdict) for verdict in _LOUD if verdict in alarms), "")


def step_without_verdicts(reader: Reader, sessions: str) -> Text:
    """Return where to look in a night without a verdict, or how to get times if the farm has no real device.

    `sessions` is the address of how its sweeps ran.
    """
    if any(row.without_times is None for row in read_devices(reader)):
        return (Link("How its sweeps ran", sessions), ".")
    return (
        "Emulated and simulated devices have no times; ",
        Link("SME2", "sme2.html"),
        " shows which kernels they ran. For times, add a real device to the inventory and check it: ",
        Code("etfarm devices --inventory FILE"),
        ".",
    )


def _sweep_blocks(reader: Reader, night: date) -> Iterator[Block]:
    """Yield the sweeps of a night, and what failed in them."""
    sweeps = [row for row in reader.rows(SweepRow) if row.night == night]
    yield build_table(sweeps, without=("name", "night"))
    failed = [row for row in reader.rows(NightFailureRow) if row.night == night]
    if failed:
        count = sum(row.sessions for row in failed)
        yield Paragraph(f"{counted(count, 'session').capitalize()} failed or invalid:", tone="flag")
        yield first_rows(failed, _MAX_CHANGES, "etfarm sql lists them in the view failed_session")
    else:
        yield Paragraph("Every session has a result.")


def _changes(reader: Reader, rows: Sequence[VerdictRow], night: date) -> Iterator[Section]:
    """Yield what failed, what got worse, what got faster, and other figures that changed, as `rows` are sorted."""
    latency = latency_verdicts(rows)
    worse, faster = ([row for row in latency if row.verdict in kinds] for kinds in (_WORSE, _BETTER))
    failed, others = failed_series(rows), other_verdicts(rows)
    if failed:
        points = [joined(names, ": ", with_code(f"{reason.rstrip('.')}.")) for names, reason in failed[:_MAX_CHANGES]]
        yield Section("failed", "Failed, without a time", [Points(points)])
    if worse:
        changes = _table_of_changes(reader, rows, worse, night)
        steps: list[Block] = [Paragraph("What to do first:"), Points(_first_steps(reader, worse), ordered=True)]
        yield Section("changed", "What changed", [*changes, *steps])
    if faster:
        yield Section("faster", "What got faster", _table_of_changes(reader, rows, faster, night))
    if others:
        table = first_rows(others, _MAX_CHANGES, _ELSEWHERE, without=ONLY_OF_LATENCY)
        yield Section("others", "Other figures than latency that changed", [table])
    if not (failed or worse or faster or others):
        yield Section("changed", "What changed", [Paragraph("No model changed.")])


def _table_of_changes(
    reader: Reader, rows: Sequence[VerdictRow], changes: Sequence[VerdictRow], night: date
) -> list[Block]:
    """Return changes of latency as a table, and the models that changed alike on many devices before it."""
    lines = list(_models_on_many_devices(rows, changes))
    return [*([Points(lines)] if lines else []), _changes_table(reader, changes, night)]


def _first_steps(reader: Reader, changes: Sequence[VerdictRow]) -> list[Text]:
    """Return the first change of each model, precision and verdict, at most five, with the command that shows more."""
    first_of_model = {(row.model, row.precision, row.verdict): row for row in reversed(changes)}
    steps: list[Text] = []
    for row in sorted(first_of_model.values(), key=changes.index)[:_MAX_STEPS]:
        name = Link(f"{case_title(row.model)} {row.precision} on {row.device}", series_page(row.series_id, row.device))
        model = reader.warehouse_names.get(row.model, row.model)
        command = Code(closer_command(model, row.device, row.precision, (row.baseline_to, row.night)))
        steps.append((name, f": {sentence(row.reason)} Look closer: ", command))
    return steps


def _models_on_many_devices(rows: Sequence[VerdictRow], changed: Sequence[VerdictRow]) -> Iterator[Text]:
    """Yield a line for each model that changed alike on three devices or more: on how many of all, and by how much."""
    of_model = grouped(rows, lambda row: (row.model, row.precision))
    alike = [row for row in changed if row.verdict in _WORDS and row.ratio is not None]
    for (model, precision, verdict), moved in grouped(
        alike, lambda row: (row.model, row.precision, row.verdict)
    ).items():
        count = len({row.device for row in moved})
        if count >= _MIN_DEVICES:
            every = len({row.device for row in of_model[model, precision]})
            nights = {row.since for row in moved}
            since = f" since {moved[0].since}" if moved[0].since and len(nights) == 1 else ""
            change = f"{count} of {every} devices {_WORDS[verdict]}, {_spread(moved)}{since}"
            yield joined((model_link(model), f" {precision}: {change}."))


def _spread(rows: Iterable[VerdictRow]) -> str:
    """Return the changes of series, from the smallest ratio to the largest: `+3.1 to +12.0 %`."""
    ratios = [row.ratio or 1.0 for row in rows]
    low, high = signed_percent(min(ratios)), signed_percent(max(ratios))
    return f"{low} %" if low == high else f"{low} to {high} %"


def _changes_table(reader: Reader, rows: Sequence[VerdictRow], night: date) -> Table:
    """Return changes of latency with their history and cause, a line each."""
    figures = [(row.series_id, row.device, row.metric) for row in rows[:_MAX_CHANGES]]
    histories = {figure: row for (figure, _), row in read_histories(reader, figures, [night]).items()}
    lines = []
    for row in rows:
        series = (
            model_link(row.model),
            f" {row.precision} on ",
            Link(row.device, device_page(row.device)),
            "".join(f", {condition}" for condition in series_conditions(row)),
        )
        interval = f" ({signed_interval(row.low, row.high)})" if row.low is not None and row.high is not None else ""
        before, after = (row.figure(value) or DASH for value in (row.baseline_value, row.value))
        history = histories.get((row.series_id, row.device, row.metric))
        nothing = "" if row.baseline_value is None else "Nothing else changed."
        changed = f"Changed: {row.changed}." if row.changed else nothing
        line = [
            Cell(series),
            Cell((row.verdict, f" since {row.since}" if row.since else ""), tone=word_tone(row.verdict)),
            Cell((f"{before}, ", Link(after, cell_page(row.cell))), sort=row.value),
            Cell(f"{row.change.removesuffix(' %')}{interval}", sort=row.ratio) if row.ratio is not None else NOTHING,
            NOTHING if row.baseline_value is None else Cell(f"{row.impact_ms:+,.3f}", sort=row.impact_ms),
            Cell(
                (Link("history", series_page(row.series_id, row.device)),),
                line=tuple(history.figures) if history else (),
            ),
            Cell(joined(with_code(f"{row.cause}. "), changed) if row.cause else changed),
        ]
        lines.append(line)
    return Table(_COLUMNS, lines, "Changes, the worst first").shortened(_MAX_CHANGES, _ELSEWHERE)


def _moved_devices(rows: Iterable[VerdictRow]) -> list[Text]:
    """Return a line for each device on which series moved although neither model nor runner changed, most first."""
    lines: list[tuple[int, Text]] = []
    for device, judged in grouped(rows, lambda row: row.device).items():
        moved = [row for row in judged if row.verdict.startswith("device")]
        if not moved:
            continue
        kinds = Counter(row.verdict.removeprefix("device ") for row in moved)
        counts = ", ".join(f"{count} of {len(judged)} series {kind}" for kind, count in kinds.items())
        changed = "; ".join(sorted({row.changed for row in moved if row.changed}))
        cause = f" What changed: {changed}." if changed else ""
        line = f": {counts}, {_spread(moved)}; neither models nor runner changed.{cause}"
        is_one = len(moved) == 1  # other series would have moved with the device
        step = " One series alone: wait for the next night." if is_one else " Check the device, not the models."
        lines.append((len(moved), (Link(device, device_page(device)), line + step)))
    return [line for _, line in sorted(lines, key=lambda entry: -entry[0])]
