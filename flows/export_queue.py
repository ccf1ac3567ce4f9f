"""The exports of a sweep, which devices read while others are still being made."""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace

from tasks.measure.prepare import Cases, ExportSnapshot, Pair


class ExportQueue:
    """The exports of pairs of model and recipe: export steps write them, all devices read them; thread-safe.

    A call for a pair that is not pending changes nothing.
    """

    def __init__(self, pending: Iterable[Pair] = (), ready: Mapping[Pair, Cases] | None = None) -> None:
        self._changed = threading.Condition()
        self._now = ExportSnapshot(ready=dict(ready or {}), pending=frozenset(pending))

    def ready(self, pair: Pair, cases: Cases) -> None:
        with self._changed:
            if pair in self._now.pending:
                self._end(pair, replace(self._now, ready={**self._now.ready, pair: cases}))

    def skip(self, pair: Pair, reason: str) -> None:
        """End a pair without cases and without an error: the recipe has no meaning for the model."""
        with self._changed:
            now = self._now
            if pair in now.pending:
                self._end(pair, replace(now, ready={**now.ready, pair: ()}, skipped={**now.skipped, pair: reason}))

    def fail(self, pair: Pair, error: str) -> None:
        with self._changed:
            if pair in self._now.pending:
                self._end(pair, replace(self._now, errors={**self._now.errors, pair: error}))

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

    def _end(self, pair: Pair, after: ExportSnapshot) -> None:
        self._now = replace(after, pending=after.pending - {pair})
        self._changed.notify_all()
