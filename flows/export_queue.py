"""The exports of a sweep, which devices read while others are still being made."""

import threading
from collections.abc import Iterable, Mapping

from tasks.measure.prepare import Cases, ExportSnapshot, ExportStatus, Pair


class ExportQueue:
    """The exports of pairs of model and recipe: export steps write them, all devices read them; thread-safe."""

    def __init__(self, pending: Iterable[Pair] = (), ready: Mapping[Pair, Cases] | None = None) -> None:
        self._changed = threading.Condition()
        statuses = {pair: ExportStatus("to export") for pair in pending}
        statuses |= {pair: ExportStatus("ready", cases) for pair, cases in (ready or {}).items()}
        self._now = ExportSnapshot(statuses)

    def end(self, pair: Pair, status: ExportStatus) -> None:
        """Set how the export of a pair ended; does nothing if the pair is not pending."""
        with self._changed:
            if pair in self._now.pending:
                self._now = ExportSnapshot({**self._now.statuses, pair: status})
                self._changed.notify_all()

    def fail(self, pair: Pair, error: str) -> None:
        self.end(pair, ExportStatus("wrong", note=error))

    def fail_pending(self, error: str) -> None:
        """Fail all pending pairs, so that no device waits for them."""
        for pair in self.now().pending:
            self.fail(pair, error)

    def now(self) -> ExportSnapshot:
        with self._changed:
            return self._now

    def wait_for_change(self, since: ExportSnapshot, timeout_s: float) -> None:
        """Wait, at most `timeout_s`, until an export has ended since the snapshot `since` was taken."""
        with self._changed:
            self._changed.wait_for(lambda: self._now is not since, timeout_s)

    def wait_for_first(self) -> None:
        """Wait until an export has a case, or until none is pending."""
        with self._changed:
            self._changed.wait_for(lambda: any(self._now.ready.values()) or not self._now.pending)

    def wait_for_all(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._now.pending)
