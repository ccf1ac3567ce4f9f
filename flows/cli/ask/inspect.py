"""`etfarm inspect`: a quick look at one ETDump."""

from pathlib import Path

import numpy as np
import typer

from flows.cli.table import as_table
from tasks.etdump.consistent import clock_without_time, several_methods, unfinished_execution
from tasks.etdump.reader import Etdump, read_etdump
from tasks.etdump.tree import runs_of

_HEAVIEST = 25


def inspect_etdump(file: Path) -> None:
    """Print the executions and the slowest operators of an ETDump; raises EtdumpError.

    The executions of several methods are not summarized.
    """
    dump = read_etdump(file)
    measured = dump.execute_ns[1:] if dump.executions > 1 else dump.execute_ns
    typer.echo(f"{file}: {dump.executions} executions, {len(dump.name_id)} events")
    if unfinished := unfinished_execution(dump):
        typer.echo(unfinished)
    if not dump.executions:
        typer.echo("0 complete executions: the runner was stopped, or did not execute the model; run it again")
        return
    if different := several_methods(dump, runs_of(dump)):
        typer.echo(different)
        return
    typer.echo(f"first execution {dump.execute_ns[0] / 1e6:.3f} ms (cold)")
    if dump.executions > 1:
        typer.echo(
            f"the others: median {np.median(measured) / 1e6:.3f} ms, "
            f"min {measured.min() / 1e6:.3f} ms, max {measured.max() / 1e6:.3f} ms"
        )
    if without_time := clock_without_time(measured):
        typer.echo(without_time)
    typer.echo(as_table(("operator", "calls per run", "self ms per run", "share %"), _heaviest(dump)))


def _heaviest(dump: Etdump) -> list[tuple[str, float, float, float | str]]:
    """Return operators by self time per execution, without the first (cold) execution if there are others.

    A share is a dash if the executions last 0 ns.
    """
    first = 1 if dump.executions > 1 else 0
    counted = dump.execution >= first
    runs = dump.executions - first
    self_ns = np.bincount(dump.name_id[counted], weights=dump.self_ns[counted], minlength=len(dump.names))
    calls = np.bincount(dump.name_id[counted], minlength=len(dump.names))
    total_ns = float(dump.execute_ns[first:].sum())
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
