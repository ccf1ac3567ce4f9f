"""What `etfarm sweep FILE --dry-run` prints: for people in lines, for programs as JSON."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta

from flows.cli.dry_run import Plan, Planned
from tasks.measure.known_exports import State
from tasks.results.text import duration

_MOST_NAMED = 6
_WAITING: tuple[State, ...] = ("to export", "shared", "unknown")
_STATES: dict[State, str] = {
    "ready": "ready",
    "shared": "to fetch from the store",
    "to export": "to export",
    "unknown": "not known before the export",
    "skipped": "skipped",
    "wrong": "cannot be exported",
}


def as_json(plan: Plan) -> str:
    """Return a plan as one JSON object; docs/json.md describes it."""
    exports = [{"export": each.title, "state": each.state, "note": each.note} for each in plan.exports]
    devices = []
    for each in plan.devices:
        about = asdict(each)
        least, most = about.pop("seconds") or (None, None)
        devices.append(about | {"least_s": least, "most_s": most})
    return json.dumps({"sweep": plan.sweep_id, "exports": exports, "devices": devices}, indent=1) + "\n"


def lines_of(plan: Plan, now: datetime) -> Iterator[str]:
    """Yield what a user reads: a sentence about all, then about exports, then a line per device."""
    used = [each for each in plan.devices if each.is_used]
    totals = (sum(getattr(each, name) for each in used) for name in ("cells", "sessions", "measured"))
    cells, sessions, measured = totals
    counts = f"{cells} cells, {sessions} sessions, {measured} of them measured"
    yield f"{plan.sweep_id}: {len(used)} of {len(plan.devices)} devices, {counts}; {_time(plan, used, now)}"
    states = Counter(each.state for each in plan.exports)
    yield f"exports: {', '.join(f'{states[each]} {words}' for each, words in _STATES.items() if states[each])}"
    if titles := [each.title for each in plan.exports if each.state == "to export"]:
        more = f" and {len(titles) - _MOST_NAMED} more" if len(titles) > _MOST_NAMED else ""
        yield f"to export: {', '.join(titles[:_MOST_NAMED])}{more}; their methods and sizes are not known before"
    yield from (f"{each.title}: {_STATES[each.state]}: {each.note}" for each in plan.exports if each.note)
    waiting = sum(each.state in _WAITING for each in plan.exports)
    yield from (_device(each, waiting) for each in plan.devices)


def _device(planned: Planned, waiting: int) -> str:
    state = f"{planned.state}: {planned.why}" if planned.why else planned.state
    if planned.state == "not selected":
        return f"{planned.device}: {state}"
    parts = [f"{planned.cells} cells", f"{planned.sessions} sessions", f"{planned.measured} measured"]
    parts += [f"{planned.not_needed} not needed"] if planned.not_needed else []
    parts += [f"{planned.unknown} not known before the export"] if planned.unknown else []
    about = [", ".join(parts)]
    if planned.platform:
        about.append(f"runner {planned.platform} {'to build' if planned.runners_to_build else 'ready'}")
    if planned.push_bytes is not None:
        known = [f"{planned.push_bytes / 1e6:.1f} MB"] if planned.push_bytes else []
        about.append(f"to push: {' and '.join(known + [f'{waiting} exports'] * bool(waiting)) or 'nothing'}")
    return f"{planned.device}: {state}; {'; '.join([*about, _span(planned.seconds)])}"


def _time(plan: Plan, used: Sequence[Planned], now: datetime) -> str:
    """Devices measure side by side: the slowest one decides."""
    known = [each.seconds for each in used if each.seconds is not None]
    if not used or len(known) < len(used):
        return "time unknown"
    span = max(each[0] for each in known), max(each[1] for each in known)
    if not span[1]:
        return "nothing to measure"
    ends = dict.fromkeys((now + timedelta(seconds=each)).strftime("%H:%M") for each in span)
    beside = "exports, start and report" if any(each.state in _WAITING for each in plan.exports) else "start and report"
    return f"{_span(span)}, until {' to '.join(ends)}, without {beside}"


def _span(seconds: tuple[float, float] | None) -> str:
    if seconds is None:
        return "time unknown: no earlier sweep measured three quarters of it"
    low, high = map(duration, seconds)
    return low if low == high else f"{low} to {high}"
