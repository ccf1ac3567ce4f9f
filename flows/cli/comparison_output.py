"""Print and write a comparison: of `etfarm compare`, and of a night with the nights before it (`etfarm verdicts`)."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from flows.cli.output import check_output, output_file
from flows.formatting import page_link
from flows.terminal import show, show_pieces, show_table, terminal_width
from flows.warehouse.readable import warehouse_reader
from tasks.pages import comparison as comparisons
from tasks.pages.terminal_table import fit
from tasks.results.changes import Comparison, Gate
from tasks.results.gate import repository_address
from tasks.store.workspace import Workspace


@dataclass(frozen=True)
class ComparisonOutput:
    form: str
    """table, csv, json or markdown; for any other one, `show` prints nothing."""
    files: Sequence[Path]
    workspace: Workspace
    wide: bool = False

    def check(self) -> None:
        """Raise InputError if a file cannot be written; to call before anything is measured."""
        for file in self.files:
            check_output(file, comparisons.WRITERS)

    def show(self, comparison: Comparison, gate: Gate) -> int:
        """Print and write a comparison, and print why if it does not pass; return the exit code.

        Its Markdown, for a pull request, has an explanation of the worst change.
        """
        link = page_link(gate.page) if gate.page else None
        comparison = replace(comparison, gate=gate, link=link, repository=repository_address(os.environ))
        if self.form == "markdown" or any(file.suffix == ".md" for file in self.files):
            from tasks.results.explanation import explain_worst

            with warehouse_reader(self.workspace) as reader:
                comparison = replace(comparison, explained=explain_worst(reader, comparison))
        if self.form == "table":
            show(*comparisons.above_table(comparison))
            show_table(fit(comparisons.changes_table(comparison), terminal_width(wide=self.wide)).lines())
            show("", *comparisons.below_table(comparison))
        elif self.form in ("csv", "json"):
            show_pieces(comparisons.rows_text(comparison, self.form))
        elif self.form == "markdown":
            show_pieces([comparisons.markdown(comparison)])
        for file in self.files:
            with output_file(file, comparisons.WRITERS) as stream:
                stream.write(comparisons.WRITERS[file.suffix](comparison).encode())
        if gate.exit_code:
            show(f"etfarm: {gate.word}: {'; '.join(gate.reasons)}", err=True)
        return gate.exit_code
