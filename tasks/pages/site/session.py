"""The page of a session: how it ended, its runs, its conditions, and where it came from."""

from collections.abc import Sequence
from typing import Any

from tasks.bundle.failure_kinds import remedy
from tasks.pages.page import Chart, Log, Page, Paragraph, Points, Section
from tasks.results.addresses import (
    cell_page,
    device_page,
    model_page,
    night_page,
    series_page,
    sweep_page,
)
from tasks.results.cells import emulation_tags
from tasks.results.reader import Reader
from tasks.results.sessions import RunRow, SessionFactsRow, read_sessions
from tasks.results.table import Cell, Column, Table, build_table, grouped
from tasks.results.text import (
    Code,
    CodeLink,
    Link,
    Text,
    Tone,
    counted,
    duration,
    joined,
    sentence,
    series_conditions,
    with_code,
)

_PERFETTO = "https://ui.perfetto.dev"


class Sessions:
    """Facts, runs and conditions of some sessions for their pages, read at once."""

    def __init__(self, reader: Reader, session_ids: Sequence[str]) -> None:
        self._names = reader.warehouse_names
        facts, runs, conditions = read_sessions(reader, session_ids)
        self._facts = {row.session_id: row for row in facts}
        self._runs = grouped(runs, lambda run: run.session_id)
        self._conditions = grouped(conditions, lambda moment: moment.session_id)

    def page(self, session_id: str) -> Page | None:
        """Return the page of a session; None if it was not read."""
        if (row := self._facts.get(session_id)) is None:
            return None
        runs = [] if row.without_times else self._runs.get(session_id, [])
        conditions = self._conditions.get(session_id, [])
        reported = build_table(conditions) if conditions else Paragraph("The device reported none.")
        sections = [
            *([Section("runs", "Runs", [_runs_chart(runs)])] if runs else []),
            Section("conditions", "Conditions", [reported]),
            *([Section("log", "End of its log", [Log(row.log_tail)])] if row.log_tail else []),
            Section("origin", "Where it comes from", [_origin(self._names.get(row.model, row.model), row)]),
            Section("closer", "Look closer", [Points(_commands(row))]),
        ]
        is_judged = row.series_id is not None and row.mode == "timing" and row.without_times is None
        series = (Link("its series", series_page(row.series_id or "", row.device)), " · ") if is_judged else ()
        subtitle = (
            CodeLink(row.model, model_page(row.model)),
            f" {row.precision} on ",
            Link(row.device, device_page(row.device)),
            *emulation_tags(row.without_times),
            " · ",
            *series,
            Link(str(row.night), night_page(row.night)) if row.night else "no night",
        )
        tone: Tone = "" if row.status == "succeeded" else "bad"
        return Page(f"Session {session_id}", sections, subtitle, _answer(row, runs), tone)


def _answer(row: SessionFactsRow, runs: Sequence[RunRow]) -> Text:
    """Return how a session ended: its runs and their duration, or the reason of a failure and what to do."""
    if row.status == "succeeded":
        measured = sum(not run.is_warmup for run in runs)
        took = f" in {duration(row.wall_s)}" if row.wall_s is not None and not row.without_times else ""
        return f"Succeeded: {counted(measured, 'measured run')}{took}." if runs else f"Succeeded{took}."
    step = remedy(row.reason_code) if row.reason_code else ""
    reason = sentence(row.reason or "no reason recorded")
    if reason.lower().startswith(row.device.lower()):
        reason = row.device + reason[len(row.device) :]  # names stay as they are written
    outcome = (f"{row.status.capitalize()}: ", Code(row.reason_code or "unknown"), f". {reason} ")
    return joined(outcome, with_code(step))


def _runs_chart(runs: Sequence[RunRow]) -> Chart:
    """Return the chart of all runs of a session, warm-up included and marked; in µs if all are below 0.1 ms."""
    scale, unit = (1000.0, "µs") if max(run.execute_ms for run in runs) < 0.1 else (1.0, "ms")
    values = [
        {"run": run.run_index, "time": round(run.execute_ms * scale, 6), "kind": "warm-up" if run.is_warmup else "run"}
        for run in runs
    ]
    kinds: dict[str, Any] = {"field": "kind", "title": None, "scale": {"domain": ["run", "warm-up"]}}
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": "container",
        "height": 220,
        "params": [{"name": "zoom", "select": "interval", "bind": "scales"}],
        "mark": {"type": "point", "filled": True, "size": 45, "opacity": 0.8},
        "encoding": {
            "x": {"field": "run", "type": "quantitative", "title": "run", "axis": {"tickMinStep": 1}},
            "y": {
                "field": "time",
                "type": "quantitative",
                "title": f"time ({unit})",
                "scale": {"zero": False, "padding": 8},
            },
            "color": {**kinds, "scale": {"domain": ["run", "warm-up"], "range": ["#0072b2", "#8a97a6"]}},
            "shape": {**kinds, "scale": {"domain": ["run", "warm-up"], "range": ["circle", "cross"]}},
            "tooltip": [{"field": "run"}, {"field": "time", "format": ".5~g"}, {"field": "kind"}],
        },
    }
    return Chart("Time of each run", spec, values, {"run": "Run", "kind": "Kind", "time": f"Time ({unit})"})


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
        ("Where its time goes", (CodeLink(row.cell, cell_page(row.cell)),)),
        ("Farm", row.farm_version or "unknown"),
    ]
    return Table([Column("What"), Column("Value", wraps=True)], [[Cell(name), Cell(value)] for name, value in facts])


def _commands(row: SessionFactsRow) -> list[Text]:
    """Return the commands that show operators and trace of a session."""
    return [
        ("Its operators: ", Code(f"etfarm sql \"FROM operator_time WHERE cell = '{row.cell}'\"")),
        (
            "Trace: ",
            Code(f"etfarm trace {row.session_id} -o trace.json"),
            ", then open the file in ",
            Link("Perfetto", _PERFETTO),
            "; ",
            Code("--view"),
            " opens it without a network.",
        ),
    ]
