"""Print and write a comparison: of `etfarm compare`, and of a night with the nights before it (`etfarm verdicts`)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from flows.cli.output import check_output, output_file
from flows.terminal import show, show_pieces
from flows.warehouse.readable import warehouse_reader
from tasks.pages import comparison as comparisons
from tasks.results.changes import Comparison, fail_reasons
from tasks.store.workspace import Workspace


@dataclass(frozen=True)
class ComparisonOutput:
    form: str
    """table, csv, json or markdown; for any other one, `show` prints nothing."""
    files: Sequence[Path]
    workspace: Workspace

    def check(self) -> None:
        """Raise InputError if a file cannot be written; to call before anything is measured."""
        for file in self.files:
            check_output(file, comparisons.WRITERS)

    def show(self, comparison: Comparison) -> None:
        """Print and write a comparison; its Markdown, for a pull request, has an explanation of the worst change."""
        if self.form == "markdown" or any(file.suffix == ".md" for file in self.files):
            from tasks.results.explanation import explain_worst

            with warehouse_reader(self.workspace) as reader:
                comparison = replace(comparison, explained=explain_worst(reader, comparison))
        if self.form == "table":
            show_pieces(comparisons.terminal(comparison))
        elif self.form in ("csv", "json"):
            show_pieces(comparisons.rows_text(comparison, self.form))
        elif self.form == "markdown":
            show_pieces([comparisons.markdown(comparison)])
        for file in self.files:
            with output_file(file, comparisons.WRITERS) as stream:
                stream.write(comparisons.WRITERS[file.suffix](comparison).encode())

    def exit_code(self, comparison: Comparison, fail_on: Collection[str]) -> int:
        """Return 1, and print why, if `fail_on` lists the result of a change; else 0."""
        reasons = fail_reasons(comparison, fail_on)
        if reasons:
            show(f"etfarm: compare failed: {'; '.join(reasons)}", err=True)
        return 1 if reasons else 0
