"""`etfarm status`: what runs now and until when, what waits, and the newest nights."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from devices.untrusted import excerpt
from flows.cli.options import (
    DEFAULT_DATA_DIR,
    DEFAULT_INVENTORY,
    BundlesOption,
    DataDirOption,
    InventoryOption,
    TextOrJsonOption,
    WarehouseOption,
)
from flows.terminal import show, show_pieces
from tasks.store.workspace import Workspace

if TYPE_CHECKING:
    from devices.ondevice.lease import Holder
    from flows.status.expected_time import ExpectedEnd
    from flows.status.farm_status import DeviceQueue, FarmStatus, NightSummary
    from flows.status.running_sweeps import RunningSweep

app = typer.Typer(rich_markup_mode=None)


@app.command(epilog="Example: etfarm status")
def status(
    inventory: InventoryOption = DEFAULT_INVENTORY,
    format: TextOrJsonOption = "text",
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    bundles: BundlesOption = None,
    warehouse: WarehouseOption = None,
) -> None:
    """Show what runs now and until when, what waits, and the last five nights.

    Reads the sweeps of --data-dir, the leases of the devices and, with PREFECT_API_URL, the runs of that server.
    """
    from flows.status.farm_status import read_status

    workspace = Workspace(data_dir.absolute(), warehouse, bundles)
    present = read_status(workspace, inventory)
    if format == "json":
        show_pieces([json.dumps(_as_data(present, workspace), indent=1) + "\n"])
    else:
        show(*_lines(present, workspace))


def _lines(status: "FarmStatus", workspace: Workspace) -> Iterator[str]:
    """Yield a section for each question; one without an answer is left out."""
    running = [line for sweep in status.running for line in _sweep_lines(sweep)]
    running += [
        line for run in status.server_runs if not run.waits for line in _run_lines(run.name, run.since, run.progress)
    ]
    yield from _section("running", running) if running else ["nothing is running"]
    yield from _section("stopped before the end", list(map(_stopped_line, status.stopped)))
    waiting = [line for queue in status.queues for line in _queue_lines(queue, status.running)]
    waiting += [f"{run.name}: {run.state}, due {_clock(run.since)}" for run in status.server_runs if run.waits]
    yield from _section("waiting, and devices that others use", waiting)
    yield from _section(f"newest nights, reports: {_report('SWEEP', workspace)}", list(map(_night_line, status.nights)))
    yield from _section("not read", status.problems)


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return [f"{title}:", *(f"  {line}" for line in lines)] if lines else []


def _sweep_lines(sweep: "RunningSweep") -> Iterator[str]:
    end = "all devices have ended" if sweep.has_measured else f"expected end {sweep.end or 'unknown'}"
    yield f"{sweep.sweep_id}, since {_clock(sweep.process.since)}, {end}, {sweep.process.process}"
    for step in sweep.open_steps:
        yield f"  {step}" + (f"; {step.doing}" if step.doing else "")


def _stopped_line(sweep: "RunningSweep") -> str:
    """Return a line with what resumes a sweep; without a night, its command would start that of today."""
    night = re.search(r"\d{4}-\d\d-\d\d|$", sweep.sweep_id)[0]  # type: ignore[index]  # it matches
    is_complete = night in ("", str(date.today())) or "--night" in sweep.command
    if sweep.command:
        again = f"to resume: {sweep.command}{'' if is_complete else f' --night {night}'}"
    else:
        again = "start it again to resume" if is_complete else f"to resume, add `--night {night}` to its command"
    done, of = sweep.sessions
    return f"{sweep.sweep_id}, since {_clock(sweep.process.since)}, {done} of {of} sessions: {again}"


def _run_lines(name: str, since: datetime, progress: Sequence[str]) -> list[str]:
    return [f"{name}, since {_clock(since)}, at the Prefect server", *(f"  {line}" for line in progress)]


def _queue_lines(queue: "DeviceQueue", running: Sequence["RunningSweep"]) -> list[str]:
    """Return who else has a device, and who waits for it."""
    here = {(each.process.pid, each.process.host) for each in running}
    lines = [f"{queue.device}: {queue.unknown}"] if queue.unknown else []
    if queue.holder and (queue.holder.pid, queue.holder.host) not in here:
        lines.append(f"{queue.device}: held by {_holder(queue.holder)}")
    places = enumerate(queue.waiting, 1)
    return lines + [f"{queue.device}: number {place} in its queue is {_holder(each)}" for place, each in places]


def _holder(holder: "Holder") -> str:
    """Return who it is, and since when by the clock of this machine, on one line of most terminals."""
    process = f", {holder.process}, since {_clock(holder.since)}" if holder.process else ""
    return f"{excerpt(holder.holder, 80)}{process}"


def _night_line(night: "NightSummary") -> str:
    counts = {"succeeded": night.succeeded, "failed": night.failed, "invalid": night.invalid}
    sessions = ", ".join(f"{count} {end}" for end, count in counts.items() if count) or "no session"
    name = night.sweeps[0] + (f" and {len(night.sweeps) - 1} more" if len(night.sweeps) > 1 else "")
    dated = name if str(night.night) in name else f"{night.night}  {name}"  # the name of most sweeps has the night
    return f"{dated}  {sessions}  {night.verdict_line}"


def _report(sweep_id: str, workspace: Workspace) -> str:
    """Return the address or path of the report of a sweep; the path is relative if it is below the present folder."""
    from flows.formatting import report_link

    link = report_link(workspace.reports / sweep_id / "report.html")
    return link.removeprefix(f"{Path.cwd()}/")


def _clock(moment: datetime | str) -> str:
    """Return the time and zone of this machine of a moment, with the date of another day; ISO form is read, too."""
    try:
        local = (datetime.fromisoformat(moment) if isinstance(moment, str) else moment).astimezone()
    except ValueError:
        return str(moment)
    is_today = local.date() == datetime.now().astimezone().date()
    return f"{local:%H:%M %Z}" if is_today else f"{local:%Y-%m-%d %H:%M %Z}"


def _as_data(status: "FarmStatus", workspace: Workspace) -> dict[str, Any]:
    """Return the status as one JSON object; docs/json.md describes it."""
    return {
        "running": [_sweep_data(each) for each in status.running],
        "stopped": [_sweep_data(each) for each in status.stopped],
        "devices": [
            {
                "device": each.device,
                "holder": str(each.holder) if each.holder else None,
                "waiting": [str(holder) for holder in each.waiting],
                "unknown": each.unknown,
            }
            for each in status.queues
        ],
        "server_runs": [asdict(each) | {"since": each.since.isoformat()} for each in status.server_runs],
        "nights": [
            asdict(each) | {"night": str(each.night), "report": _report(each.sweeps[0], workspace)}
            for each in status.nights
        ],
        "problems": list(status.problems),
    }


def _sweep_data(sweep: "RunningSweep") -> dict[str, Any]:
    return {
        "sweep": sweep.sweep_id,
        "process": sweep.process.process,
        "since": sweep.process.since,
        "changed_at": sweep.changed_at.isoformat(),
        **_end_data(sweep.end),
        "steps": [
            {name: value for name, value in asdict(each).items() if name != "end"} | _end_data(each.end)
            for each in sweep.steps
        ],
    }


def _end_data(end: "ExpectedEnd | None") -> dict[str, str | None]:
    return {
        "earliest_end": end.earliest.isoformat() if end else None,
        "latest_end": end.latest.isoformat() if end else None,
    }
