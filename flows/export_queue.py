"""The exports of a sweep, which devices read while others are still being made."""

import threading
from collections.abc import Callable, Iterable, Mapping

from tasks.measure.prepare import Cases, ExportSnapshot, ExportStatus, Pair


class ExportQueue:
    """The exports of pairs of model and recipe: export steps write them, all devices read them; thread-safe."""

    def __init__(self, pending: Iterable[Pair] = (), ready: Mapping[Pair, Cases] | None = None) -> None:
        self._changed = threading.Condition()
        statuses = {pair: ExportStatus("to export") for pair in pending}
        statuses |= {pair: ExportStatus("ready", cases) for pair, cases in (ready or {}).items()}
        self._now = ExportSnapshot(statuses)
        self.reported_errors: set[str] = set()
        """Errors of exports whose own task is Failed; the tasks of devices are not Failed because of them."""

    def end(self, pair: Pair, status: ExportStatus, *, has_task: bool = True) -> None:
        """Set how the export of a pair ended; does nothing if the pair is not pending.

        Without `has_task` no task of an export failed, so that those of devices have to.
        """
        with self._changed:
            if pair in self._now.pending:
                if status.state == "wrong" and has_task:
                    self.reported_errors.add(status.note)
                self._now = ExportSnapshot({**self._now.statuses, pair: status})
                self._changed.notify_all()

    def fail(self, pair: Pair, error: str, *, has_task: bool = True) -> None:
        self.end(pair, ExportStatus("wrong", note=error), has_task=has_task)

    def fail_pending(self, error: str) -> None:
        """Fail all pending pairs, so that no device waits for them."""
        for pair in self.now().pending:
            self.fail(pair, error, has_task=False)

    def now(self) -> ExportSnapshot:
        with self._changed:
            return self._now

    def wait_until(self, condition: Callable[[ExportSnapshot], bool], timeout_s: float | None = None) -> None:
        """Wait until a condition holds for `now`, at most `timeout_s` (None: any time)."""
        with self._changed:
            self._changed.wait_for(lambda: condition(self._now), timeout_s)
