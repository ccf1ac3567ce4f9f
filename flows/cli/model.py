"""`etfarm model`: check or export a model, and fetch the files of earlier nights."""

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from flows.cli.options import (
    DEFAULT_DATA_DIR,
    BundlesOption,
    DataDirOption,
    DelegateOption,
    DeviceOption,
    TextOrJsonOption,
    WarehouseOption,
)
from flows.terminal import show, show_pieces
from tasks.bundle.sizes import size_text
from tasks.export.conversion import describe_conversion, describe_shares, describe_weights
from tasks.export.recipes import RECIPES, recipe_name
from tasks.store.workspace import Workspace

if TYPE_CHECKING:
    from flows.model_check import CheckedCase
    from tasks.export.exported import Export
    from tasks.rows.shares import Share

DeadlineOption = Annotated[
    float | None, typer.Option(min=1, max=86_400, help="Longest time of the export in seconds, else 900.")
]
app = typer.Typer(name="model", help="Check or export a model; fetch what a night measured.", no_args_is_help=True)


@app.command(epilog="Example: etfarm model fetch voice --precision fp16 --branch main --output baseline")
def fetch(
    model: Annotated[str, typer.Argument(help="As in the sweep file, or as pages show it.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write: model.pte, its inputs and outputs.")],
    precision: Annotated[str, typer.Option(help="A recipe, such as fp16.")] = "fp32",
    branch: Annotated[str | None, typer.Option(help="Only nights of this branch, such as main.")] = None,
    night: Annotated[str | None, typer.Option(help="Only this night, such as 2026-11-02.")] = None,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    bundles: BundlesOption = None,
    warehouse: WarehouseOption = None,
) -> None:
    """Fetch the newest good .pte file that nights measured; print its path.

    A file is good if no device got slower or inaccurate in its night. If there is none, the newest file is fetched, and
    a line states it.
    """
    from devices.errors import InputError
    from devices.suggest import did_you_mean
    from flows.warehouse.readable import ask_warehouse
    from tasks.bundle.model_names import find_model, short_names
    from tasks.export.export import fetch_export
    from tasks.export.exported import ExportError, find_export

    workspace = Workspace(data_dir, warehouse, bundles)
    names = short_names(name for (name,) in ask_warehouse("measured_models", workspace))
    name = find_model(model, names)
    if name is None:
        raise InputError(f"no night measured the model `{model}`{did_you_mean(model, names.values())}")
    query = {"model": name, "precision": precision, "branch": branch, "night": night}
    exports, shared_files = workspace.exports, workspace.store.shared_files
    for key, sha256, case, of_night, commit, is_worse in ask_warehouse("newest_good_file", workspace, **query):
        try:
            fetch_export(shared_files, key, exports)
            folder = find_export(exports, key, sha256, case).folder
        except ExportError:
            continue
        why = "; no night without a change for the worse has one" if is_worse else ""
        of_commit = f", commit {commit[:7]}" if commit else ""
        show(f"{names[name]} {precision} of {of_night}{of_commit}, .pte {sha256[:8]}{why}", err=True)
        shutil.copytree(folder, output, dirs_exist_ok=False)
        show(output / "model.pte")
        return
    limits = "".join(f", {key} {value}" for key, value in (("branch", branch), ("night", night)) if value)
    raise InputError(f"no .pte file of {names[name]} {precision}{limits} is stored; measure one with `etfarm sweep`")


@app.command(epilog="Example: etfarm model check ./model.py:make --precision fp16 --max-portable 20")
def check(
    model: Annotated[str, typer.Argument(help="As in a sweep file: zoo, file.py:factory, model.pte, ...")],
    precision: Annotated[
        str, typer.Option(help="A recipe: fp16, int8_static, `int4_dynamic: {group_size: 128}`, ...")
    ] = "fp32",
    delegate: DelegateOption = None,
    max_portable: Annotated[
        float | None, typer.Option(min=0, max=100, help="Fail above this percentage of time in portable operators.")
    ] = None,
    samples: Annotated[
        Path | None, typer.Option(help="Folder with inputs that judge the model and calibrate int8_static.")
    ] = None,
    expect: Annotated[
        Literal["sme2"] | None, typer.Option(help="Instead count kernels, and fail unless SME2 kernels are executed.")
    ] = None,
    inventory: Annotated[
        Path | None, typer.Option(help="Inventory with the device for --expect; without one, this machine.")
    ] = None,
    device: DeviceOption = None,
    deadline: DeadlineOption = None,
    format: TextOrJsonOption = "text",
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
) -> None:
    """Export a model and run it on this machine: what is delegated, what is not, why, and what that costs.

    Leases this machine as a sweep does, and waits up to an hour for a sweep that measures on it.

    Exits with 1 if it cannot be exported or run, if its outputs are inaccurate, above --max-portable, or without what
    --expect names.
    """
    from devices.errors import InputError
    from flows.model_check import check_model
    from tasks.export.entry import EXPORT_DEADLINE_S, ExportRequest, parse_entry
    from tasks.export.exported import ExportError

    precision, deadline_s = recipe_name(precision), deadline or EXPORT_DEADLINE_S
    if expect:
        if max_portable is not None:
            raise InputError("--expect counts kernels and measures no time; leave out --max-portable")
        if delegate:
            raise InputError("--expect counts kernels of XNNPACK; leave out --delegate")
        request = ExportRequest(
            parse_entry(model, samples), precision, Workspace(data_dir.absolute()).exports, deadline_s=deadline_s
        )
        from flows.cli.kernels_output import expect_sme2

        raise typer.Exit(expect_sme2(request, Workspace(data_dir.absolute()), inventory, device, format))
    if inventory or device:
        raise InputError("--inventory and --device need --expect; without it the model runs on this machine")
    started = time.monotonic()
    problems, cases = [], []
    try:
        entry = parse_entry(model, samples, delegate) if samples or delegate else model
        checked = check_model(
            entry, precision, data_dir, deadline_s=deadline_s, tell=lambda cause: show(f"waiting: {cause}", err=True)
        )
        for case in checked:
            cases.append(case)
            if format == "text":
                show(*_text_lines(case))
            if problem := _find_problem(case, max_portable):
                problems.append(f"{case.export.model}: {problem}")
    except ExportError as error:
        problems = [str(error)]
    seconds, not_run = time.monotonic() - started, any(case.not_run for case in cases)
    if format == "text":
        ready = "not run here; ready for a sweep on a device that can run it" if not_run else "ready for a sweep"
        show(f"checked in {seconds:.1f} s", f"failed: {'; '.join(problems)}" if problems else ready)
    else:
        about = {"model": model, "precision": precision, "ready": not problems, "problems": problems}
        document = about | {"seconds": seconds, "cases": [_case_as_json(case) for case in cases]}
        show_pieces([json.dumps(document, indent=1) + "\n"])
    raise typer.Exit(1 if problems else 0)


def _find_problem(case: "CheckedCase", max_portable: float | None) -> str | None:
    """Return why a case fails the check; None if it passes. `max_portable` is a percentage."""
    share = case.portable_share
    if case.problem or max_portable is None or share is None or 100 * share.value <= max_portable:
        return case.problem
    return f"portable operators take {_percent(share)} of the time, more than {max_portable:g} %"


@app.command(epilog="Example: etfarm model export mobilenet_v2 --precision fp16")
def export(
    model: Annotated[str, typer.Argument(help="As in a sweep file: zoo, package.module:factory, file.py:factory, ...")],
    precision: Annotated[str, typer.Option(help=f"A recipe: {', '.join(RECIPES)}, or your own.")] = "fp32",
    delegate: DelegateOption = None,
    seed: Annotated[int, typer.Option(help="Seed of weights and reference inputs.")] = 0,
    deadline: DeadlineOption = None,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
) -> None:
    """Export one model to a .pte and execute it once on this machine; print its folder."""
    from flows.progress import export_status
    from tasks.export.entry import EXPORT_DEADLINE_S, ExportRequest, parse_entry
    from tasks.export.export import export_cases

    precision, deadline_s = recipe_name(precision), deadline or EXPORT_DEADLINE_S
    with export_status(f"{model} {precision}") as tell:
        entry = parse_entry(model, delegate=delegate) if delegate else model
        request = ExportRequest(entry, precision, Workspace(data_dir).exports, seed, deadline_s=deadline_s)
        done = export_cases(request, on_step=tell)[0]
    show(done.folder)
    if done.trial:
        show(f"execution on this machine after the export: {done.trial}", *done.notes, err=True)
    for note in _unproven_notes(done):
        show(note, err=True)


def _unproven_notes(export: "Export") -> list[str]:
    from tasks.bundle.delegates import delegate_names, unproven_notes
    from tasks.bundle.runtime import parse_runtime

    return unproven_notes(delegate_names(parse_runtime(export.model).delegate))


def _text_lines(case: "CheckedCase") -> Iterator[str]:
    from tasks.results.measurements.latency import evidence_text
    from tasks.results.text import in_ms

    export, (delegated, portable) = case.export, _count_operators(case)
    yield f"{export.model} {export.precision}: {size_text(export.pte_bytes)}, exported in {export.export_s:.1f} s"
    if export.trial:
        yield f"execution on this machine after the export: {export.trial}"
    yield from _unproven_notes(export)
    if weights := describe_weights(export.stored_bytes, export.pte_bytes):
        yield f"program: {weights}"
    yield from export.notes
    yield from _memory_lines(case)
    if (export.delegated or export.portable) and not describe_shares(export):  # which is among the notes
        inside = [f"{delegated} delegated to {_backends(export)}"] if delegated else []
        yield f"operators: {', '.join([*inside, f'{portable} portable'])}"
    if case.not_run:
        yield f"not run here: {case.not_run}"
        return
    if not case.has_time:
        yield str(case.problem)
        yield from (f"  {line}" for line in (case.record.log_tail or "").splitlines()[-5:])
        return
    if case.portable_share and case.delegated_share and case.time_ms is not None:
        yield f"time: {in_ms(case.time_ms)} ({evidence_text(case.times_ms)}), 1 thread, SME2 off"
        rest = 100 * (1 - case.delegated_share.value - case.portable_share.value)
        yield (
            f"of that: {_percent(case.delegated_share)} delegated, {_percent(case.portable_share)} portable, "
            f"{rest:.1f} % unattributed"
        )
    for each in case.portable:
        share = "not executed" if each.share is None else _percent(each.share)
        times = f" x {each.count}" if each.count else ""
        yield f"  {each.operator}{times}: {share}" + (f". {each.advice}" if each.advice else "")
    yield from _accuracy_lines(case)


def _memory_lines(case: "CheckedCase") -> Iterator[str]:
    """Yield four lines: planned memory, what holds it, the data of the program, and what sessions measured."""
    from tasks.export.contents.memory_text import describe_measured, describe_plan

    if case.export.memory:
        yield from describe_plan(case.export.memory)
    if measured := describe_measured([record.stats for record in case.records if record.stats]):
        yield measured


def _accuracy_lines(case: "CheckedCase") -> Iterator[str]:
    """Yield what is known about the outputs: for the measured input, and for the entry's samples."""
    from tasks.bundle.accuracy import samples_sentence

    if not any(row.samples is None for row in case.record.accuracy or ()):
        yield "outputs: not compared, since there are no reference outputs"
    elif (error := _max_abs_error(case)) is None:
        yield "outputs: not compared, since no element is finite both here and in eager PyTorch"
    else:
        # The example inputs of a factory are random in most models.
        inputs = "the inputs of the entry" if case.export.trial is None else "one random input"
        yield f"outputs for {inputs}: largest absolute error against eager PyTorch {error:.1e}"
    if case.samples:
        yield f"outputs for {samples_sentence(case.samples.columns)}"
    elif case.export.samples:
        yield f"outputs for samples: none, since this export has no execution on this machine ({case.export.trial})"


def _case_as_json(case: "CheckedCase") -> dict[str, Any]:
    export, row, (delegated, portable) = case.export, case.samples, _count_operators(case)
    return {
        "model": export.model,
        "precision": export.precision,
        "pte_bytes": export.pte_bytes,
        "export_s": export.export_s,
        "delegated": delegated,
        "portable": portable,
        "sessions_ms": case.times_ms,
        "time_ms": case.time_ms,
        "delegated_share": case.delegated_share.value if case.delegated_share else None,
        "portable_share": case.portable_share.value if case.portable_share else None,
        "operators": [
            {
                "operator": each.operator,
                "count": each.count,
                "share": each.share.value if each.share else None,
                "advice": each.advice,
            }
            for each in case.portable
        ],
        "max_abs_error": _max_abs_error(case) if case.has_time else None,
        "samples": [row.samples.model_dump() | {"worst_snr_db": row.snr_db}] if row and row.samples else [],
        "left_out": export.left_out,
        "converted": describe_conversion(export.layers),
        "layers": export.layers,
        "memory": export.memory.model_dump() if export.memory else None,
        "stored_bytes": [{"type": name, "bytes": size} for name, size in export.stored_bytes.items()],
        "type_changes": export.type_changes,
        "notes": export.notes,
        "not_run": case.not_run,
        "problem": case.problem,
    }


def _backends(export: "Export") -> str:
    """Return the backends that the program calls, XNNPACK if it calls none."""
    from tasks.bundle.delegates import backend_title

    titles = {backend_title(backend) for _, _, backend in export.delegate_calls or ()}
    return " and ".join(sorted(titles)) or "XNNPACK"


def _count_operators(case: "CheckedCase") -> tuple[int, int]:
    delegated = sum(entry["count"] for entry in case.export.delegated)
    return delegated, sum(entry["count"] for entry in case.exported_portable)


def _percent(share: "Share") -> str:
    """Return a share, and the smallest and the largest of its sessions: `12.3 % (11.8 to 13.0 %)`."""
    return f"{100 * share.value:.1f} % ({100 * share.low:.1f} to {100 * share.high:.1f} %)"


def _max_abs_error(case: "CheckedCase") -> float | None:
    """Return the largest error of all outputs in all sessions; None if none was compared."""
    rows = (row for record in case.records for row in record.accuracy or () if not row.samples)
    return max((row.max_abs_error for row in rows if row.max_abs_error is not None), default=None)
