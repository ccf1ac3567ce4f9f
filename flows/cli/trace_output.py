"""The runs of one session or ETDump: printed, or written as a trace for Perfetto or node data for Model Explorer."""

from pathlib import Path

import numpy as np

from devices.errors import InputError
from flows.terminal import show, show_pieces
from tasks.bundle.names import ETDUMP, RECORD
from tasks.bundle.record import SessionRecord
from tasks.bundle.robust_statistics import interquartile_indices, interquartile_mean
from tasks.bundle.variant_word import variant_word
from tasks.etdump.columns import Etdump
from tasks.etdump.reader import read_etdump
from tasks.etdump.trace import as_chrome_json, build_slices
from tasks.etdump.tree import build_runs, clock_without_time, negative_time, several_methods, unfinished_execution
from tasks.pages.rows import table_lines
from tasks.rows.node_data import as_node_data, graph_node_times
from tasks.rows.shares import typical_runs
from tasks.rows.sources import event_sources, read_sources
from tasks.store.bundle_store import BundleStore
from tasks.store.files import write_complete
from tasks.store.folder import read_bundle, record_beside

_MAX_OPERATORS = 25


def find_etdump(session: str, store: BundleStore) -> tuple[Path, SessionRecord | None]:
    """Return the ETDump of a session, by its id or the path of a bundle, or the loose ETDump at a path.

    With it comes the record of a bundle, whose files were checked; None with a loose ETDump. Raises InputError if there
    is no such ETDump, BundleError if the bundle is damaged.
    """
    path = Path(session)
    if path.is_file() and path.name != RECORD:
        return path, None
    folder = path.parent if path.name == RECORD else path
    if not folder.is_dir():
        if (stored := store.find(session)) is None:
            raise InputError(
                f"{session}: neither a session in {store.location} nor a bundle or an .etdump file; "
                'list sessions with `etfarm sql "SELECT session_id FROM session_overview"`'
            )
        folder = stored
    record = read_bundle(folder)
    if ETDUMP not in record.files:
        raise InputError(f"{folder}: the session has no ETDump ({record.reason or record.status}); trace another one")
    return folder / ETDUMP, record


def write_trace(session: str, run: str | None, output: Path, store: BundleStore) -> str:
    """Write the trace of one run or of all runs; return a line that names them.

    `run` is an index as in the view run_latency, `all`, or None for the measured run in the middle by duration. Raises
    InputError, BundleError or EtdumpError.
    """
    file, checked = find_etdump(session, store)
    record, dump = _read_etdump(file)
    if not dump.executions:
        raise InputError(f"{session}: the ETDump contains 0 complete runs, so there is nothing to trace; measure again")
    title, facts, sources = file.name, dict[str, object](etdump=file.name), None
    if checked:
        model = f"{checked.model.name} {checked.model.precision}"
        title = f"{model} {variant_word(checked.variant)} t{checked.threads} on {checked.device.name}"
        facts = {
            "session_id": checked.session_id,
            "sweep_id": checked.sweep.sweep_id,
            "status": checked.status,
            "emulated": checked.device.emulated,
            "started_at": checked.started_at,
        }
        # The program of the mode numerics is another one: its instructions are not those of sources.json.
        sources = None if checked.mode == "numerics" else read_sources(file.parent, checked)
    runs, which = _select_runs(run, dump, _warmup_runs(record, dump))
    slices = build_slices(dump, runs, event_sources(sources, dump) if sources else {})
    write_complete(output, as_chrome_json(title, slices, facts | {"runs": which}).encode())
    return f"{output}: {which}; open it at https://ui.perfetto.dev"


def write_node_data(session: str, before: str | None, output: Path, store: BundleStore) -> str:
    """Write node data of Model Explorer: median times of a session, or their change since an earlier one.

    Returns a line that states how much it covers. Raises InputError, BundleError or EtdumpError.
    """
    method, times_ms, rest_ms = _node_times(session, store)
    before_ms = None
    if before is not None:
        other_method, before_ms, _ = _node_times(before, store)
        if other_method != method:
            raise InputError(
                f"{before}: it ran the method {other_method}, {session} ran {method}; name one that ran it"
            )
    write_complete(output, as_node_data(method, times_ms, before_ms).encode())
    covered_ms = sum(times_ms.values())
    share = 100 * covered_ms / (covered_ms + rest_ms) if covered_ms else 0.0
    return (
        f"{output}: {len(times_ms)} nodes with {share:.1f} % of the time of all operators; open the .etrecord file of "
        "the export in Model Explorer, and load this file as node data"
    )


def _node_times(session: str, store: BundleStore) -> tuple[str, dict[str, float], float]:
    file, record = find_etdump(session, store)
    _, dump = _read_etdump(file)
    sources = read_sources(file.parent, record) if record and record.mode != "numerics" else None
    if record is None or sources is None:
        raise InputError(f"{session}: it has no sources.json, which maps operators to nodes; trace another session")
    runs = build_runs(dump)
    if why := several_methods(dump, runs) or negative_time(runs) or (not dump.executions and "it has no complete run"):
        raise InputError(f"{session}: {why}; trace another session")
    times_ms, rest_ms = graph_node_times(sources, dump, _warmup_runs(record, dump))
    if not times_ms:
        raise InputError(f"{session}: its export names no nodes of the graph; export and measure it again")
    return record.model.method, times_ms, rest_ms


def _read_etdump(file: Path) -> tuple[SessionRecord | None, Etdump]:
    """Return the record of the session, None for a loose ETDump, and the ETDump; raises EtdumpError or BundleError."""
    record = record_beside(file)
    return record, read_etdump(file.resolve(), name=str(file), backends=record.model.backends if record else None)


def _warmup_runs(record: SessionRecord | None, dump: Etdump) -> int:
    """Return the number of warm-up runs: 1 in a loose ETDump, and never all of the executions."""
    return min(record.warmup_executions if record else 1, max(dump.executions - 1, 0))


def _select_runs(run: str | None, dump: Etdump, warmup_runs: int) -> tuple[list[int], str]:
    """Return the indices of the runs to trace, and a text that names them; raises InputError."""
    executions = dump.executions
    if run == "all":
        return list(range(executions)), f"all {executions} runs, {warmup_runs} of them warm-up"
    if run is None:
        typical = interquartile_indices(dump.execute_ns[warmup_runs:])
        middle = warmup_runs + int(typical[len(typical) // 2])
        return [middle], f"run {middle} of 0 to {executions - 1}, the middle one by duration"
    if not run.isdecimal() or int(run) >= executions:
        raise InputError(f"--run {run}: no such run; use a number from 0 to {executions - 1}, or all")
    kind = "a warm-up run" if int(run) < warmup_runs else "measured"
    return [int(run)], f"run {int(run)} of 0 to {executions - 1}, {kind}"


def show_etdump(file: Path) -> None:
    """Print the executions and the slowest operators of an ETDump; raises EtdumpError.

    Executions of several methods are not summarized. If a time is negative, no operators are listed.
    """
    record, dump = _read_etdump(file)
    warmup = _warmup_runs(record, dump)
    show(f"{file}: {dump.executions} executions, {len(dump.name_id)} events")
    if unfinished := unfinished_execution(dump):
        show(unfinished)
    if not dump.executions:
        show("0 complete executions: the runner was stopped, or did not execute the model; run it again")
        return
    runs = build_runs(dump)
    if different := several_methods(dump, runs):
        show(different)
        return
    _show_times(dump, warmup)
    if contradiction := negative_time(runs):
        show(contradiction)
        return
    for note in dump.delegate_notes:
        show(note)
    columns = ("operator", "calls per run", "self ms per run", "share %")
    show_pieces(table_lines(columns, [_slowest_operators(dump, warmup)]))


def _show_times(dump: Etdump, warmup: int) -> None:
    """Print the time of the first execution, and a summary of those after the warm-up runs."""
    measured = dump.execute_ns[warmup:]
    show(f"first execution {dump.execute_ns[0] / 1e6:.3f} ms (cold)")
    if warmup:
        kind = "the others" if warmup == 1 else f"the {len(measured)} after {warmup} warm-up runs"
        show(
            f"{kind}: {interquartile_mean(measured) / 1e6:.3f} ms, interquartile mean "
            f"(median {np.median(measured) / 1e6:.3f}, min {measured.min() / 1e6:.3f}, max {measured.max() / 1e6:.3f})"
        )
    if without_time := clock_without_time(measured):
        show(without_time)


def _slowest_operators(dump: Etdump, warmup: int) -> list[tuple[str, float, float, float | str]]:
    """Return the 25 events with the most self time, of the measured executions that the interquartile mean uses.

    A row: name, calls and self milliseconds per execution, percent of the time (a dash if that is 0 ns).
    """
    typical = typical_runs(dump, warmup)
    counted, runs, total_ns = typical.events, typical.count, typical.execute_ns
    self_ns = np.bincount(dump.name_id[counted], weights=dump.self_ns[counted], minlength=len(dump.names))
    calls = np.bincount(dump.name_id[counted], minlength=len(dump.names))
    order = np.argsort(-self_ns)[:_MAX_OPERATORS]
    return [
        (
            dump.names[at],
            calls[at] / runs,
            round(self_ns[at] / runs / 1e6, 4),
            round(100 * self_ns[at] / total_ns, 2) if total_ns else "-",
        )
        for at in order
        if calls[at]
    ]
