"""The progress of a sweep on the terminal; the flows also report it to Prefect's UI."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn


@dataclass(frozen=True)
class Step:
    """How far a step of the sweep is: items that are done, of how many, and what it does now."""

    done: int = 0
    total: int = 0
    doing: str = ""


class Board:
    """One progress bar per step of the sweep; nothing is drawn or printed until `shown` is entered."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._progress: Progress | None = None
        self._bars: dict[str, TaskID] = {}
        self._steps: dict[str, Step] = {}

    @contextlib.contextmanager
    def shown(self, console: Console) -> Iterator[None]:
        """Draw the bars on `console` (standard error) while the block runs; a log file gets a line per change."""
        title, doing = (TextColumn(text, markup=False) for text in ("{task.description}", "{task.fields[doing]}"))
        columns = (title, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), doing)
        # Drawing a hundred bars takes as much time as the farm's other work.
        is_drawn = console.is_terminal
        with Progress(*columns, console=console, auto_refresh=is_drawn, refresh_per_second=2) as progress:
            self._progress = progress
            self._bars, self._steps = {}, {}
            try:
                yield
            finally:
                self._progress = None

    def close(self) -> None:
        """Restore the terminal before the process exits."""
        if self._progress is not None:
            self._progress.stop()

    def tell(self, line: str) -> None:
        """Print a line."""
        with self._lock:
            self._print(line, always=True)

    def steps(self) -> dict[str, Step]:
        """Return how far each step is, also if nothing is drawn."""
        with self._lock:
            return dict(self._steps)

    def expect(self, step: str, total: int) -> None:
        """Open the bar of `step` with `total` items."""
        with self._lock:
            self._set(step, Step(total=total), f"{total} to do")

    def fewer(self, step: str, count: int, why: str) -> None:
        """Take items off the bar of `step` that need not be done."""
        with self._lock:
            self._change(step, lambda now: replace(now, total=now.total - count), why)

    def resize(self, step: str, total: int) -> None:
        """Let the bar of `step` have `total` items, those that are done included."""
        with self._lock:
            self._change(step, lambda now: replace(now, total=total))

    def doing(self, step: str, what: str) -> None:
        """Show what `step` is doing."""
        with self._lock:
            self._change(step, lambda now: replace(now, doing=what), f"{what} ...")

    def done(self, step: str, what: str, *, failed: bool = False) -> None:
        """Count one item of `step` as done; a failure is also printed."""
        with self._lock:
            self._change(step, lambda now: replace(now, done=now.done + 1, doing=""), what, always=failed)

    def follow(self, step: str, now: Step) -> None:
        """Show a step that another process does."""
        with self._lock:
            if now != self._steps.get(step):
                counts = f"{now.done} of {now.total}"
                self._set(step, now, f"{counts}, {now.doing} ..." if now.doing else counts)

    def _change(self, step: str, change: Callable[[Step], Step], line: str = "", *, always: bool = False) -> None:
        """Change a step that is open; ignored for any other."""
        if step in self._steps:
            self._set(step, change(self._steps[step]), line, always=always)

    def _set(self, step: str, now: Step, line: str, *, always: bool = False) -> None:
        self._steps[step] = now
        if self._progress is not None:
            if step not in self._bars:
                self._bars[step] = self._progress.add_task(step, doing="")
            self._progress.update(self._bars[step], completed=now.done, total=now.total, doing=now.doing)
            if line:
                self._print(f"{step}: {line}", always=always)

    def _print(self, line: str, *, always: bool = False) -> None:
        """Print a line; without a terminal (a log file, CI) lines replace the bars."""
        if self._progress is not None and (always or not self._progress.console.is_terminal):
            self._progress.console.print(line, highlight=False, markup=False, soft_wrap=True)


board = Board()
