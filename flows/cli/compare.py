"""`etfarm compare`: two arms side by side, a line per pair of cells, with the answer that their sessions give."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from flows.cli.compare_page import page
from flows.cli.outputs import check_outputs, data, markdown, write_outputs
from flows.terminal import show, show_pieces
from flows.warehouse.readable import readable_warehouse
from sql.cage.connection import open_readable
from sql.warehouse import query_errors
from tasks.judge.compare.found import compare_arms
from tasks.judge.compare.outcome import Line, Outcome
from tasks.pages.explain import explain_line
from tasks.pages.explanation import Fact
from tasks.results.reader import Reader, open_reader
from tasks.store.workspace import Workspace


def run_compare(
    words: tuple[str, str],
    sweep_id: str | None,
    only: Mapping[str, str | None],
    margin: float,
    fail_on: Collection[str],
    form: str,
    outputs: Sequence[Path],
    var: Path,
    warehouse: Path | None,
) -> int:
    """Print how two arms compare, and write it to files; return 1 if a pair is what `fail_on` lists, else 0.

    `only` restricts fields of the cells, `margin` is a fraction. Raises InputError and WarehouseError.
    """
    check_outputs(outputs)
    workspace = Workspace(var, warehouse)
    with readable_warehouse(workspace) as readable, open_readable(readable) as connection, query_errors():
        outcome = compare_arms(connection, *words, sweep_id, only, margin)
    return told(explained(outcome, form, outputs, var, warehouse), fail_on, form, outputs)


def explained(
    outcome: Outcome,
    form: str,
    outputs: Sequence[Path],
    var: Path,
    warehouse: Path | None,
    explain: Callable[[Reader, Line], Sequence[Fact]] = explain_line,
) -> Outcome:
    """Add what is known about the worst change, if the comparison is written for a pull request."""
    worst = next((line for line in outcome.ordered() if line.is_changed), None)
    if worst is None or (form != "markdown" and all(file.suffix != ".md" for file in outputs)):
        return outcome
    with readable_warehouse(Workspace(var, warehouse)) as readable, open_reader(readable) as reader:
        return replace(outcome, explained=explain(reader, worst))


def told(outcome: Outcome, fail_on: Collection[str], form: str, outputs: Sequence[Path]) -> int:
    """Print a comparison, and write it to files; return 1 if a pair is what `fail_on` lists, else 0."""
    print_outcome(outcome, form, outputs)
    causes = [failed for reason in dict.fromkeys(fail_on) if (failed := _cause(reason, outcome))]
    if causes:
        show(f"etfarm: compare failed: {'; '.join(causes)}", err=True)
    return 1 if causes else 0


def print_outcome(outcome: Outcome, form: str, outputs: Sequence[Path]) -> None:
    """Print a comparison as `table`, `csv`, `json` or `markdown`, and write it to files."""
    if form == "markdown":
        show_pieces([markdown(outcome)])
    else:
        show_pieces(page(outcome) if form == "table" else data(outcome, form))
    write_outputs(outcome, outputs)


def _cause(reason: str, outcome: Outcome) -> str | None:
    """Return why a comparison fails for this reason; None if it does not."""
    lines = outcome.lines
    lacking = sum(word.startswith("only in") for word, _ in outcome.only) if reason == "unknown" else 0
    if reason == "regression":
        count, words = sum(line.is_regression for line in lines), "slower in B by more than the margin"
    elif reason == "inaccurate":
        count, words = sum(bool(line.inaccurate_sides) for line in lines), "with inaccurate outputs"
    else:
        count = sum(line.verdict == reason for line in lines) + lacking
        words = "different" if reason == "different" else "unknown or without a counterpart"
    return f"{reason}: {count} of {len(lines) + lacking} {words}" if count else None
