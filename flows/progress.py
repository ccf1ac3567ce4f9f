"""The progress of a sweep on the terminal; the flows also report it to Prefect's UI."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from devices.untrusted import sanitize_line
from flows.status.expected_time import ExpectedEnd, StepProgress
from flows.terminal import show_above

_SILENCE_S = 60.0
_MIN_WIDTH_WITH_BARS, _BAR_CHARS = 100, 20


def _joined_work(task: Task) -> str:
    """Return the present work of a step on each item, joined with semicolons."""
    return "; ".join(list(task.fields["doing"].values()))


class _PlainColumn(TextColumn):
    def render(self, task: Task) -> Text:
        return Text(sanitize_line(super().render(task)))


class _DoingColumn(TextColumn):
    """The only column that becomes narrower where the terminal has no space for all."""

    def render(self, task: Task) -> Text:
        return Text(sanitize_line(_joined_work(task)), no_wrap=True, overflow="ellipsis")


class _EndColumn(TextColumn):
    def render(self, task: Task) -> Text:
        return Text(f"until {task.fields['end']}" if task.fields["end"] else "")


class _Bars(Progress):
    """The bars of a board, by step."""

    def __init__(self, *columns: ProgressColumn, **options: Any) -> None:
        super().__init__(*columns, **options)
        self.by_step: dict[str, Task] = {}

    def refresh(self) -> None:
        """Draw nothing: a clock does. Otherwise all bars would be drawn whenever one is added."""

    def add(self, step: str) -> None:
        # Without a terminal, rich would print the bars once at the end.
        visible = self.console.is_terminal
        number = self.add_task(step, total=0, visible=visible, failed=0, doing={}, lab="", end=None, has_ended=False)
        self.by_step[step] = self.tasks[number]


class Board:
    """One progress bar per step of the sweep; nothing is drawn or printed until `display` is entered."""

    def __init__(self) -> None:
        self._progress = _Bars(disable=True)
        self._printed_at = 0.0

    @contextlib.contextmanager
    def display(self, console: Console) -> Iterator[None]:
        """Draw the bars on `console` while the block runs; without a terminal, print a line per change instead."""
        title = _PlainColumn("{task.description}", markup=False)
        counts = [each(table_column=Column(no_wrap=True)) for each in (MofNCompleteColumn, TimeElapsedColumn)]
        bars = [BarColumn(_BAR_CHARS)] if console.width >= _MIN_WIDTH_WITH_BARS else []
        columns = (title, *bars, *counts, _EndColumn(""), _DoingColumn("", table_column=Column()))
        # Drawing a hundred bars takes as much time as the farm's other work.
        is_drawn = console.is_terminal
        with _Bars(*columns, console=console, auto_refresh=is_drawn, refresh_per_second=2) as self._progress:
            try:
                yield
            finally:
                self._progress = _Bars(disable=True)

    def close(self) -> None:
        if not self._progress.disable:
            self._progress.stop()

    def report(self, line: str) -> None:
        """Print a line, also above bars that are drawn."""
        self._print(line, always=True)

    def steps(self) -> list[StepProgress]:
        """Return the present progress of each step, also if nothing is drawn."""
        return [
            StepProgress(
                step=task.description,
                lab=task.fields["lab"],
                done=int(task.completed),
                of=int(task.total or 0),
                failed=task.fields["failed"],
                doing=_joined_work(task),
                end=task.fields["end"],
                has_ended=task.fields["has_ended"],
            )
            for task in self._progress.tasks
        ]

    def remind(self, line: str) -> None:
        """Print a line if there is no terminal and nothing was printed for a minute."""
        if time.monotonic() - self._printed_at >= _SILENCE_S:
            self._print(line, always=False)

    def expect(self, step: str, total: int, lab: str = "") -> None:
        """Open the bar of `step`, or reset it, with `total` items; `lab` names the lab that does them."""
        if self._task(step) is None:
            self._progress.add(step)
        self._update(
            step,
            f"{total} to do" if total else "",
            completed=0,
            total=total,
            failed=0,
            doing={},
            lab=lab,
            has_ended=False,
        )

    def reduce(self, step: str, count: int, why: str) -> None:
        """Take `count` items off the total of `step`, and print why."""
        if task := self._task(step):
            self._update(step, why, total=(task.total or 0) - count)

    def resize(self, step: str, total: int) -> None:
        self._update(step, total=total)

    def doing(self, step: str, what: str, *, item: str = "", in_log: bool = True) -> None:
        """Show what `step` is doing, for one `item` of several; `in_log=False` prints no line in a log file."""
        if task := self._task(step):
            task.fields["doing"][item] = what
        self._update(step, f"{what} ..." if in_log else "")

    def set_end(self, step: str, end: ExpectedEnd | None) -> None:
        """Show when `step` is expected to end."""
        self._update(step, end=end)

    def finish(self, step: str) -> None:
        """Show that `step` has ended, although items may be left."""
        self._update(step, end=None, has_ended=True, doing={})

    def done(self, step: str, what: str, *, item: str = "", failed: bool = False) -> None:
        """Count one item of `step` as done; a failure is also printed."""
        so_far = 0
        if task := self._task(step):
            so_far = task.fields["failed"]
            task.fields["doing"].pop(item, None)
        self._update(step, what, always=failed, advance=1, failed=so_far + failed)

    def _task(self, step: str) -> Task | None:
        return self._progress.by_step.get(step)

    def _update(self, step: str, line: str = "", *, always: bool = False, **changes: Any) -> None:
        """Change the bar of a step and print `line`; do nothing if the step has no bar."""
        if task := self._task(step):
            self._progress.update(task.id, **changes)
            if line:
                self._print(f"{step}: {line}", always=always, is_failure=always)

    def _print(self, line: str, *, always: bool = False, is_failure: bool = False) -> None:
        """Print a line if `always`, or if there is no terminal (a log file, CI), where lines replace the bars."""
        if not self._progress.disable and (always or not self._progress.console.is_terminal):
            self._printed_at = time.monotonic()
            show_above(self._progress.console, line, is_failure=is_failure)


board = Board()


def show_step(title: str, step: str, is_long: bool) -> None:
    """Show the present step of an export in a sweep; a log file has a line for a long step only."""
    board.doing("export", f"{title}: {step}", item=title, in_log=is_long)


@contextlib.contextmanager
def export_status(title: str) -> Iterator[Callable[[str, bool], None]]:
    """Show an export outside a sweep on standard error; yield a function that shows its present step."""
    console = Console(stderr=True)
    with console.status(Text(title)) as status:

        def tell(step: str, is_long: bool) -> None:
            line = sanitize_line(f"{title}: {step}")
            status.update(Text(line))
            if is_long and not console.is_terminal:
                show_above(console, f"export: {line} ...")

        yield tell
