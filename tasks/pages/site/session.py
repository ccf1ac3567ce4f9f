"""The page of a session: how it ended, its runs, its conditions, and where it came from."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tasks.bundle.failure_kinds import remedy
from tasks.pages.page import Block, Command, Fold, Log, Page, Paragraph, Points, Section
from tasks.pages.sections.session_timeline import timeline
from tasks.results.addresses import (
    cell_page,
    device_page,
    night_page,
    series_page,
    sweep_page,
    trace_page,
)
from tasks.results.cells import emulation_tags, model_link
from tasks.results.reader import Reader
from tasks.results.sessions import (
    RunRow,
    SessionCategoryRow,
    SessionDetails,
    SessionFactsRow,
    failing_line,
    read_sessions,
)
from tasks.results.table import Cell, Column, Table, build_table, first_rows
from tasks.results.text import (
    Code,
    CodeLink,
    Link,
    Text,
    Tone,
    counted,
    duration,
    in_ms,
    joined,
    ms_digits,
    sentence,
    series_conditions,
    with_code,
)

_MAX_RUNS = 200


class Sessions:
    """Facts, runs and conditions of some sessions for their pages, read at once."""

    def __init__(self, reader: Reader, session_ids: Sequence[str]) -> None:
        self._names = reader.warehouse_names
        self._details = read_sessions(reader, session_ids)

    def page(self, session_id: str, *, is_live: bool) -> Page | None:
        """Return the page of a session; None if it was not read. Live pages link to its trace."""
        if (details := self._details.get(session_id)) is None:
            return None
        row = details.facts
        sections = [
            Section("timeline", "Runs and conditions", list(_timeline_blocks(details))),
            *_log(row),
            *_breakdown(details.categories),
            Section("closer", "Look closer", _closer(row, is_live=is_live)),
            Section("origin", "Where it comes from", [_origin(self._names.get(row.model, row.model), row)]),
        ]
        if row.status != "succeeded":
            sections.sort(key=lambda section: section.anchor != "log")
        is_judged = row.series_id is not None and row.mode == "timing" and row.without_times is None
        series = (Link("its series", series_page(row.series_id or "", row.device)), " · ") if is_judged else ()
        subtitle = (
            model_link(row.model),
            f" {' · '.join([row.precision, *series_conditions(row)])} on ",
            Link(row.device, device_page(row.device)),
            *emulation_tags(row.without_times),
            " · ",
            *series,
            Link(str(row.night), night_page(row.night)) if row.night else "no night",
        )
        tone: Tone = "" if row.status == "succeeded" else "bad"
        return Page(f"Session {session_id}", sections, subtitle, _answer(row, details.runs), tone)


def _timeline_blocks(details: SessionDetails) -> Iterator[Block]:
    """Yield the picture of a session and a fold with its numbers."""
    if (drawn := timeline(details)) is not None:
        yield drawn
    if not details.conditions:
        yield Paragraph("The device reported no conditions.", tone="quiet")
    tables: list[Block] = [build_table(details.conditions)] if details.conditions else []
    if details.runs:
        runs = first_rows(details.runs, _MAX_RUNS, "etfarm sql lists them in run_latency")
        tables.append(replace(runs, caption="Runs"))
    if tables:
        yield Fold("Table of its values", tables)


def _log(row: SessionFactsRow) -> list[Section]:
    """Return the end of the log, with the line that failed marked."""
    if not row.log_tail:
        return []
    marked = None if row.status == "succeeded" else failing_line(row.log_tail, row.reason)
    return [Section("log", "End of its log", [Log(row.log_tail, marked)])]


def _breakdown(categories: Sequence[SessionCategoryRow]) -> list[Section]:
    """Return where the time of a run of this session goes; empty without times."""
    if not categories:
        return []
    table = build_table(categories, digits=ms_digits(row.time_ms for row in categories))
    return [Section("breakdown", "Where the time of a run goes", [table])]


def _answer(row: SessionFactsRow, runs: Sequence[RunRow]) -> Text:
    """Return how a session ended: its runs and their duration, or the reason of a failure and what to do."""
    if row.status == "succeeded":
        measured = sum(not run.is_warmup for run in runs)
        took = f" in {duration(row.wall_s)}" if row.wall_s is not None and not row.without_times else ""
        typical = f", {_times(row.time_ms, runs)}" if row.time_ms is not None else ""
        loaded = f", after {in_ms(row.load_ms)} to load the model" if row.load_ms is not None else ""
        return (
            f"Succeeded{took}: {counted(measured, 'measured run')}{typical}{loaded}." if runs else f"Succeeded{took}."
        )
    step = remedy(row.reason_code) if row.reason_code else ""
    reason = sentence(row.reason or "no reason recorded")
    if reason.lower().startswith(row.device.lower()):
        reason = row.device + reason[len(row.device) :]  # names stay as they are written
    outcome = (f"{row.status.capitalize()}: ", Code(row.reason_code or "unknown"), ". ")
    return joined(outcome, with_code(f"{reason} "), with_code(step))


def _times(time_ms: float, runs: Sequence[RunRow]) -> str:
    """Return the time of a session, and the shortest and the longest of its measured runs."""
    times = [run.execute_ms for run in runs if not run.is_warmup]
    ends = f", from {in_ms(min(times))} to {in_ms(max(times))}" if len(times) > 1 else ""
    return f"{in_ms(time_ms)} in the interquartile mean{ends}"


def _origin(model: str, row: SessionFactsRow) -> Table:
    """Return what identifies a session and what it ran; `model` is the name in the warehouse."""
    facts: list[tuple[str, Text]] = [
        ("Sweep", (CodeLink(row.sweep_id, sweep_page(row.sweep_id)),)),
        ("Model", (Code(model),)),
        ("Measured as", ", ".join([row.precision, *series_conditions(row), f"mode {row.mode}"])),
        ("Executions", f"{row.executions}, of which {row.warmup_executions} warm-up; attempt {row.attempt}"),
        ("Started (UTC)", f"{row.started_at:%Y-%m-%d %H:%M:%S}" if row.started_at else "unknown"),
        ("Exit code", str(row.exit_code) if row.exit_code is not None else "none"),
        (".pte file", (Code(row.pte_sha256 or "none"),)),
        ("Runner", (Code(row.runner_sha256 or "none"),)),
        ("Device", f"serial {row.serial or 'unknown'}, build {row.build or 'unknown'}"),
        ("Cell", (CodeLink(row.cell, cell_page(row.cell)),)),
        ("Farm", row.farm_version or "unknown"),
    ]
    return Table([Column("What"), Column("Value", wraps=True)], [[Cell(name), Cell(value)] for name, value in facts])


def _closer(row: SessionFactsRow, *, is_live: bool) -> list[Block]:
    """Return how to see operators and trace of a session; without runs there is neither."""
    if row.status != "succeeded":
        query = f"etfarm sql \"FROM session_overview WHERE session_id = '{row.session_id}'\""
        return [Command(query, "All that the warehouse has of it")]
    operators = ("The operators of its cell, from all its sessions: ", CodeLink(row.cell, cell_page(row.cell)))
    opened: Text = ("Trace of its runs: ", Link("open it in Perfetto", trace_page(row.session_id)))
    return [
        Points([operators, *([opened] if is_live else [])]),
        Command(f"etfarm trace {row.session_id} -o trace.json --view", "Trace in Perfetto, without a network"),
    ]
