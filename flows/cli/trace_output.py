"""The runs of one session or ETDump: printed, or written as a trace for Perfetto or node data for Model Explorer."""

from pathlib import Path

import numpy as np

from devices.errors import InputError
from flows.terminal import show, show_table, terminal_width
from flows.traces import build_trace, find_etdump, read_with_record, warmup_runs
from tasks.bundle.robust_statistics import interquartile_mean
from tasks.etdump.columns import Etdump
from tasks.etdump.tree import build_runs, clock_without_time, negative_time, several_methods, unfinished_execution
from tasks.pages.answer_table import table_lines
from tasks.rows.node_data import as_node_data, graph_node_times
from tasks.rows.shares import typical_runs
from tasks.rows.sources import read_sources
from tasks.store.bundle_store import BundleStore
from tasks.store.files import write_complete

_MAX_OPERATORS = 25


def write_trace(session: str, run: str | None, output: Path, store: BundleStore) -> str:
    """Write the trace of one run or of all runs, as `build_trace`; return a line that names them."""
    trace, which = build_trace(session, run, store)
    write_complete(output, trace.encode())
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
    _, dump = read_with_record(file)
    sources = read_sources(file.parent, record) if record and record.mode != "numerics" else None
    if record is None or sources is None:
        raise InputError(f"{session}: it has no sources.json, which maps operators to nodes; trace another session")
    runs = build_runs(dump)
    if why := several_methods(dump, runs) or negative_time(runs) or (not dump.executions and "it has no complete run"):
        raise InputError(f"{session}: {why}; trace another session")
    times_ms, rest_ms = graph_node_times(sources, dump, warmup_runs(record, dump))
    if not times_ms:
        raise InputError(f"{session}: its export names no nodes of the graph; export and measure it again")
    return record.model.method, times_ms, rest_ms


def show_etdump(file: Path) -> None:
    """Print the executions and the slowest operators of an ETDump; raises EtdumpError.

    Executions of several methods are not summarized. If a time is negative, no operators are listed.
    """
    record, dump = read_with_record(file)
    warmup = warmup_runs(record, dump)
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
    show_table(table_lines(columns, [_slowest_operators(dump, warmup)], terminal_width()))


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
            float(self_ns[at] / runs / 1e6),
            float(100 * self_ns[at] / total_ns) if total_ns else "-",
        )
        for at in order
        if calls[at]
    ]
