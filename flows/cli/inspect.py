"""`etfarm trace` without a file to write: a quick look at one ETDump."""

from pathlib import Path

import numpy as np

from flows.terminal import show, show_pieces
from tasks.bundle.robust_statistics import interquartile_mean
from tasks.etdump.reader import Etdump, read_etdump
from tasks.etdump.tree import clock_without_time, negative_time, runs_of, several_methods, unfinished_execution
from tasks.pages.rows import table_lines
from tasks.rows.shares import typical_runs
from tasks.store.folder import record_beside

_HEAVIEST = 25


def inspect_etdump(file: Path) -> None:
    """Print the executions and the slowest operators of an ETDump; raises EtdumpError.

    The warm-up runs are those of the session if the file is in a bundle, otherwise the first execution. Executions of
    several methods are not summarized.
    """
    record = record_beside(file)
    dump = read_etdump(file.resolve(), name=str(file), backends=record.model.backends if record else None)
    warmup = min(record.warmup_executions if record else 1, max(dump.executions - 1, 0))
    measured = dump.execute_ns[warmup:]
    show(f"{file}: {dump.executions} executions, {len(dump.name_id)} events")
    if unfinished := unfinished_execution(dump):
        show(unfinished)
    if not dump.executions:
        show("0 complete executions: the runner was stopped, or did not execute the model; run it again")
        return
    runs = runs_of(dump)
    if different := several_methods(dump, runs):
        show(different)
        return
    show(f"first execution {dump.execute_ns[0] / 1e6:.3f} ms (cold)")
    if warmup:
        kind = "the others" if warmup == 1 else f"the {len(measured)} after {warmup} warm-up runs"
        show(
            f"{kind}: {interquartile_mean(measured) / 1e6:.3f} ms, the mean of their middle half "
            f"(median {np.median(measured) / 1e6:.3f}, min {measured.min() / 1e6:.3f}, max {measured.max() / 1e6:.3f})"
        )
    if without_time := clock_without_time(measured):
        show(without_time)
    if contradiction := negative_time(runs):
        show(contradiction)
        return
    for note in dump.delegate_notes:
        show(note)
    columns = ("operator", "calls per run", "self ms per run", "share %")
    show_pieces(table_lines(columns, [_heaviest(dump, warmup)]))


def _heaviest(dump: Etdump, warmup: int) -> list[tuple[str, float, float, float | str]]:
    """Return the 25 events with the most self time, of the middle half of the measured executions.

    A row: name, calls and self milliseconds per execution, percent of the time (a dash if that is 0 ns).
    """
    typical = typical_runs(dump, warmup)
    counted, runs, total_ns = typical.events, typical.count, typical.execute_ns
    self_ns = np.bincount(dump.name_id[counted], weights=dump.self_ns[counted], minlength=len(dump.names))
    calls = np.bincount(dump.name_id[counted], minlength=len(dump.names))
    order = np.argsort(-self_ns)[:_HEAVIEST]
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
