"""`etfarm sweep --night A..B`: measure a model later, in stored nights; its plan and its end as text and JSON."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, cast

import typer

from devices.errors import InputError
from flows.cli.sweep_output import duration_range
from flows.terminal import show, show_pieces
from tasks.measure.sweep_file import read_sweep
from tasks.measure.sweep_filter import SweepFilter
from tasks.measure.sweep_night import parse_nights, read_source
from tasks.results.text import counted
from tasks.store.workspace import Workspace

if TYPE_CHECKING:
    from flows.backfill import BackfillEnd
    from flows.backfill_plan import BackfillPreview, BackfillRequest, NightLine


def request_backfill(
    file: Path,
    nights: str,
    only: SweepFilter,
    inventory: str,
    workspace: Workspace,
    refused: Mapping[str, bool] | None = None,
) -> "BackfillRequest":
    """Return the request of a range of nights; raises InputError with what is wrong in it.

    `refused` are options that have no meaning for a range, and whether the user passed them.
    """
    from flows.backfill_plan import BackfillRequest
    from flows.device_selection import apply_filter, match_devices

    first, last = parse_nights(nights, date.today())
    if not only.models:
        raise InputError(f"--night {nights} needs --model: it measures new models in stored nights, not all again")
    if passed := [option for option, is_passed in (refused or {}).items() if is_passed]:
        why = "a range measures only what its nights lack, and no verdict on it fails"
        raise InputError(f"{passed[0]} and --night {nights}: {why}; leave out {passed[0]}")
    spec, selection = apply_filter(read_sweep(file), only, inventory, match_devices)
    if in_labs := [device.name for device in selection.devices if device.site in selection.labs]:
        raise InputError(f"{', '.join(in_labs)}: only the worker of a lab reaches it; choose others with --device")
    if not selection.devices:
        raise InputError(f"{inventory}: no device matches the sweep's selector")
    return BackfillRequest(spec, selection, workspace, first, last, read_source(file))


def run_backfill(request: "BackfillRequest", form: str, *, dry_run: bool) -> NoReturn:
    """Measure what the nights lack, or print it; exits with 1 if a session, an export or a load failed, else 0."""
    from flows.backfill_plan import load_nights, preview_backfill

    preview = preview_backfill(request)
    if dry_run or preview.is_complete:
        refused = [] if dry_run else load_nights(request, [each.sweep for each in preview.lines])
        message = "; ".join([_plan_line(request, preview), *refused])
        _print(request, form, message, preview.lines, preview)
        raise typer.Exit(int(bool(refused) or not preview.is_possible))
    from flows.cli.prefect_run import run_with_server, set_up_run

    set_up_run(f"backfill {request.title}", "backfill", request.workspace.root)
    from flows.backfill import backfill
    from flows.server.states import state_data

    state = run_with_server(backfill, {"request": request}, request.workspace, "backfill")
    end = cast("BackfillEnd", state_data(state))
    _print(request, form, end.message, end.nights)
    if form == "text":
        show(*(f"times and verdicts: `{shlex.join(['etfarm', 'explain', each.name])}`" for each in request.spec.models))
    raise typer.Exit(int(state.is_failed()))


def _print(
    request: "BackfillRequest",
    form: str,
    message: str,
    nights: "Sequence[NightLine]",
    preview: "BackfillPreview | None" = None,
) -> None:
    """Print a line for each night and device, what has to be exported or cannot be, and the message; or all as JSON."""
    if form == "json":
        min_s, max_s = (preview and preview.seconds) or (None, None)
        about = {"backfill": request.title, "message": message, "min_s": min_s, "max_s": max_s}
        show_pieces([json.dumps({**about, "nights": [each.model_dump() for each in nights]}, indent=1) + "\n"])
        return
    statuses = preview.exports.statuses.items() if preview else ()
    exports = [f"{' '.join(pair)}: {each.state}{f': {each.note}' * bool(each.note)}" for pair, each in statuses]
    show(*night_lines(nights), *exports, message)


def _plan_line(request: "BackfillRequest", preview: "BackfillPreview") -> str:
    cells, sessions, measured = (
        sum(getattr(each, name) for each in preview.lines) for name in ("cells", "sessions", "measured")
    )
    nights = counted(len({each.night for each in preview.lines if not each.skipped}), "night")
    nothing = "nothing is left to measure" if preview.is_possible else "no night can be measured"
    beside = "without exports, start and load, if a session is as long as those of these nights"
    span = f"{duration_range(preview.seconds)} {beside}"
    time = nothing if preview.is_complete else span if preview.seconds else "time unknown"
    return f"{request.title}: {nights}, {cells} cells, {sessions} sessions, {measured} of them measured; {time}"


def night_lines(nights: Sequence["NightLine"]) -> Iterator[str]:
    """Yield a line for each night and device: `2026-11-20 here: 2 cells, 16 of 16 sessions measured later, ...`."""
    for each in nights:
        alone = f"{counted(each.left_alone, 'cell')} of that night left alone" if each.left_alone else ""
        what = f"{counted(each.cells, 'cell')}, {each.measured} of {each.sessions} sessions measured later"
        parts = [what, f"runner {each.runner}"] if not each.skipped else [f"skipped: {each.skipped}"]
        yield f"{each.night} {each.device}: {', '.join(filter(None, [*parts, alone]))}"
