"""The progress of a sweep on the terminal; the flows also report it to Prefect's UI."""

import contextlib
import threading
from collections.abc import Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn


class Board:
    """One progress bar per step of the sweep; methods do nothing until `shown` is entered."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._progress: Progress | None = None
        self._bars: dict[str, TaskID] = {}

    @contextlib.contextmanager
    def shown(self, console: Console) -> Iterator[None]:
        """Draw the bars on `console` (standard error) while the block runs; a log file gets a line per change."""
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, TextColumn("{task.fields[doing]}"), console=console) as progress:
            self._progress = progress
            self._bars = {}
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

    def expect(self, step: str, total: int) -> None:
        """Open the bar of `step` with `total` items."""
        with self._lock:
            if self._progress is None:
                return
            if step in self._bars:
                self._progress.update(self._bars[step], total=total, completed=0)
            else:
                self._bars[step] = self._progress.add_task(step, total=total, doing="")
            self._print(f"{step}: {total} to do")

    def fewer(self, step: str, count: int, why: str) -> None:
        """Take items off the bar of `step` that need not be done."""
        with self._lock:
            if self._progress is not None and step in self._bars:
                bar = next(task for task in self._progress.tasks if task.id == self._bars[step])
                self._progress.update(bar.id, total=(bar.total or 0) - count)
                self._print(f"{step}: {why}")

    def resize(self, step: str, total: int) -> None:
        """Let the bar of `step` have `total` items, those that are done included."""
        with self._lock:
            if self._progress is not None and step in self._bars:
                self._progress.update(self._bars[step], total=total)

    def doing(self, step: str, what: str) -> None:
        """Show what `step` is doing."""
        with self._lock:
            if self._progress is not None and step in self._bars:
                self._progress.update(self._bars[step], doing=what)
                self._print(f"{step}: {what} ...")

    def done(self, step: str, what: str, *, failed: bool = False) -> None:
        """Count one item of `step` as done; a failure is also printed."""
        with self._lock:
            if self._progress is not None and step in self._bars:
                self._progress.update(self._bars[step], advance=1, doing="")
                self._print(f"{step}: {what}", always=failed)

    def _print(self, line: str, *, always: bool = False) -> None:
        """Print a line; without a terminal (a log file, CI) lines replace the bars."""
        if self._progress is not None and (always or not self._progress.console.is_terminal):
            self._progress.console.print(line, highlight=False, markup=False, soft_wrap=True)


board = Board()
