"""The page of a series on a device: its history, every session of it, and what was decided and changed meanwhile."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import Any

from tasks.analyse.explanation import Explanation
from tasks.analyse.report.addresses import device_page, model_page, night_page, series_page, session_page
from tasks.analyse.report.cells import conditions_of
from tasks.analyse.report.columns import table_of
from tasks.analyse.report.data import Reader
from tasks.analyse.report.page import Block, Chart, CodeLink, Link, Page, Paragraph, Section, Text
from tasks.analyse.report.text import counted
from tasks.analyse.site.rows import DecisionRow, SeriesNightRow, SeriesRow, SeriesSessionRow

_MOST_NIGHTS = 14
_MOST_LABELS = 15


class Histories:
    """The nights and sessions of all series of some devices, and every decision, read at once."""

    def __init__(self, reader: Reader, devices: Collection[str]) -> None:
        self.devices = devices
        self._decisions = reader.rows(DecisionRow)
        self._nights: dict[tuple[str, str], list[SeriesNightRow]] = defaultdict(list)
        self._sessions: dict[tuple[str, str], list[SeriesSessionRow]] = defaultdict(list)
        for night in reader.rows(SeriesNightRow, {"devices": list(devices)}):
            self._nights[night.series_id, night.device].append(night)
        for session in reader.rows(SeriesSessionRow, {"devices": list(devices)}):
            self._sessions[session.series_id, session.device].append(session)

    def of(self, row: SeriesRow) -> tuple[list[SeriesNightRow], list[SeriesSessionRow]]:
        """Return the nights of a series on a device, the newest first, and its sessions."""
        return self._nights[row.series_id, row.device], self._sessions[row.series_id, row.device]

    def decisions_on(self, row: SeriesRow) -> list[DecisionRow]:
        """Return the decisions and notes that are about a series."""
        about = {"model": row.model, "device": row.device, "precision": row.precision, "variant": row.variant}
        return [
            decision
            for decision in self._decisions
            if all(getattr(decision, name) in (None, value) for name, value in about.items())
        ]


def series_page_of(row: SeriesRow, histories: Histories, explained: Explanation, footer: str) -> Page:
    """Return the page of a series; `row` is its newest verdict, and `explained` what is known about it."""
    nights, sessions = histories.of(row)
    decisions = histories.decisions_on(row)
    has_times = any(night.time_ms is not None for night in nights)
    blocks: list[Block] = [history_chart(nights, sessions, decisions)] if has_times else []
    blocks += [Paragraph(_words(decision), tone="flag") for decision in decisions]
    newest = nights[0]
    sections = [
        explained.section(),
        Section("history", "History", blocks),
        Section("nights", "Nights", [table_of(nights[:_MOST_NIGHTS], without=("device",)), *_earlier(nights)]),
    ]
    return Page(
        title=f"{row.model} {row.precision} on {row.device}",
        subtitle=_subtitle(row),
        figures=(),
        summary=(),
        sections=sections,
        footer=footer,
        address=series_page(row.series_id, row.device),
        answer=explained.answer,
        tone="bad" if newest.verdict in ("regression", "inaccurate") else "",
    )


def _earlier(nights: Sequence[SeriesNightRow]) -> Iterator[Block]:
    hidden = len(nights) - _MOST_NIGHTS
    if hidden > 0:
        yield Paragraph(f"{counted(hidden, 'earlier night').capitalize()}: in the table below the chart.", "quiet")


def _subtitle(row: SeriesRow) -> Text:
    conditions = "".join(f" · {each}" for each in conditions_of(row))
    return (
        CodeLink(row.model, model_page(row.model)),
        f" · {row.precision} · ",
        Link(row.device, device_page(row.device)),
        f"{conditions} · {counted(row.nights, 'night')}",
    )


def history_chart(
    nights: Sequence[SeriesNightRow], sessions: Sequence[SeriesSessionRow], decisions: Sequence[DecisionRow]
) -> Chart:
    """Return the chart of a series: a point for each session, the time of each night with its interval, and events.

    Times below 0.1 ms are in microseconds.
    """
    times = [night.time_ms for night in nights if night.time_ms is not None]
    scale, unit = (1000.0, "µs") if max(times) < 0.1 else (1.0, "ms")
    values: list[dict[str, Any]] = [
        {
            "kind": "session",
            "night": str(each.night),
            "time": round(each.time_ms * scale, 6),
            "name": each.session_id,
            "verdict": "counts" if each.is_typical else "left out of the night",
            "to": session_page(each.session_id),
        }
        for each in sessions
    ]
    values += [_point(night, scale) for night in nights if night.time_ms is not None]
    events = [{"kind": "event", "night": each, "name": text} for each, text in _events(nights, decisions)]
    values += events
    columns = {"night": "Night", "kind": "Point of", "name": "Name", "time": f"Time ({unit})", "low": "Interval from"}
    columns |= {"high": "to", "verdict": "Verdict"}
    spec = _history_spec(unit, max(1, len(times) // _MOST_LABELS), bool(events))
    return Chart("Time of each night and of every session", spec, values, columns)


def _point(night: SeriesNightRow, scale: float) -> dict[str, Any]:
    """The time of a night; its interval is that of its change, applied to its baseline."""
    assert night.time_ms is not None
    point: dict[str, Any] = {
        "kind": "night",
        "night": str(night.night),
        "time": round(night.time_ms * scale, 6),
        "name": str(night.night),
        "verdict": night.verdict,
        "to": night_page(night.night),
    }
    if night.ratio and night.low is not None and night.high is not None:
        baseline = night.time_ms * scale / night.ratio
        point |= {"low": round(baseline * night.low, 6), "high": round(baseline * night.high, 6)}
    return point


def _events(nights: Sequence[SeriesNightRow], decisions: Sequence[DecisionRow]) -> Iterator[tuple[str, str]]:
    """What happened in nights: another ExecuTorch, another build of the operating system, a decision of a user."""
    for decision in decisions:
        if decision.night in {night.night for night in nights}:
            yield str(decision.night), decision.kind.replace("_", " ")
    for later, earlier in pairwise(nights):
        for name, before, after in (
            ("ExecuTorch", earlier.executorch_version, later.executorch_version),
            ("OS build", earlier.build, later.build),
        ):
            if before and after and before != after:
                yield str(later.night), f"{name} {before} -> {after}"


def _event_layers(x: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A line with its name for each event."""
    only = [{"filter": "datum.kind == 'event'"}]
    name = {"field": "name"}
    line = {"type": "rule", "strokeDash": [4, 3], "color": "#8a97a6"}
    yield {"transform": only, "mark": line, "encoding": {"x": x, "tooltip": name}}
    text = {"type": "text", "align": "left", "dx": 4, "y": 8, "fontSize": 11}
    yield {"transform": only, "mark": text, "encoding": {"x": x, "text": name}}


def _history_spec(unit: str, step: int, has_events: bool) -> dict[str, Any]:
    """A specification of Vega-Lite; `step` is the number of days from one label to the next."""
    x = {
        "field": "night",
        "type": "temporal",
        "title": None,
        "axis": {"format": "%b %d", "labelOverlap": True, "tickCount": {"interval": "day", "step": step}},
        "scale": {"padding": 14},
    }
    y = {
        "field": "time",
        "type": "quantitative",
        "title": f"time of one run ({unit})",
        "scale": {"zero": False, "padding": 8},
    }
    told = [{"field": name, "type": "nominal"} for name in ("name", "verdict")] + [{"field": "time", "format": ".5~g"}]
    link = {"field": "href"}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": "container",
        "height": 300,
        "layer": [
            *(_event_layers(x) if has_events else ()),
            {
                "transform": [{"filter": "datum.kind == 'session'"}],
                "params": [{"name": "zoom", "select": "interval", "bind": "scales"}],
                "mark": {"type": "point", "filled": True, "size": 22, "opacity": 0.45, "color": "#56b4e9"},
                "encoding": {"x": x, "y": y, "href": link, "tooltip": told},
            },
            {
                "transform": [{"filter": "datum.kind == 'night' && isValid(datum.low)"}],
                "mark": {"type": "rule", "color": "#0072b2", "strokeWidth": 2},
                "encoding": {"x": x, "y": {"field": "low", "type": "quantitative"}, "y2": {"field": "high"}},
            },
            {
                "transform": [{"filter": "datum.kind == 'night'"}],
                "mark": {"type": "line", "color": "#0072b2", "strokeWidth": 1.5},
                "encoding": {"x": x, "y": y},
            },
            {
                "transform": [{"filter": "datum.kind == 'night'"}],
                "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
                "encoding": {
                    "x": x,
                    "y": y,
                    "href": link,
                    "tooltip": told,
                    "shape": _scale(["circle", "triangle-up", "triangle-up", "triangle-down", "diamond"]),
                    "color": _scale(["#0072b2", "#d55e00", "#e69f00", "#009e73", "#8a97a6"]),
                },
            },
        ],
    }


def _scale(range_: list[str]) -> dict[str, Any]:
    """Colour or shape by verdict; every other verdict looks like the last one."""
    verdicts = ["no change", "regression", "suspected", "improvement"]
    return {
        "condition": [
            {"test": f"datum.verdict == '{verdict}'", "value": value}
            for verdict, value in zip(verdicts, range_, strict=False)
        ],
        "value": range_[-1],
    }


def _words(decision: DecisionRow) -> str:
    night = f" {decision.night}" if decision.night else ""
    words = f"{decision.reason} ({decision.decided_by}, {decision.decided_at:%Y-%m-%d})"
    return f"{decision.kind.replace('_', ' ').capitalize()}{night}: {words}"
