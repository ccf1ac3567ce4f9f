"""The exports of a sweep as they become ready: devices read them while others are still being made."""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tasks.export.exported import Export

Pair = tuple[str, str]
"""A model and a recipe."""


@dataclass(frozen=True)
class Snapshot:
    """The exports at one moment."""

    ready: Mapping[Pair, tuple[Export, ...]]
    """The cases of each pair; none if the recipe has no meaning for the model."""
    skipped: Mapping[Pair, str]
    """Why such a pair was skipped."""
    errors: Mapping[Pair, str]
    """Why the export of a pair failed."""
    pending: frozenset[Pair]
    """The pairs whose export has not ended yet."""


class LiveExports:
    """The exports of some pairs, written by the steps that make them and read by all devices; thread-safe."""

    def __init__(self, pending: Iterable[Pair] = (), ready: Mapping[Pair, tuple[Export, ...]] | None = None) -> None:
        self._changed = threading.Condition()
        self._now = Snapshot(dict(ready or {}), {}, {}, frozenset(pending))

    def ready(self, pair: Pair, cases: tuple[Export, ...]) -> None:
        """Take over the export of a pair."""
        self._end(pair, ready={pair: cases})

    def skip(self, pair: Pair, reason: str) -> None:
        """Take over why a pair is not exported, although nothing failed."""
        self._end(pair, ready={pair: ()}, skipped={pair: reason})

    def fail(self, pair: Pair, error: str) -> None:
        """Take over why the export of a pair failed."""
        self._end(pair, errors={pair: error})

    def fail_pending(self, error: str) -> None:
        """Let all pairs fail whose export has not ended, so that no device waits for them."""
        for pair in self.now().pending:
            self.fail(pair, error)

    def now(self) -> Snapshot:
        """Return the exports as they are now."""
        with self._changed:
            return self._now

    def wait_for_change(self, since: Snapshot, timeout_s: float) -> None:
        """Wait until an export has ended that was pending in `since`, at most `timeout_s`."""
        with self._changed:
            self._changed.wait_for(lambda: self._now is not since, timeout_s)

    def wait_for_first(self) -> None:
        """Wait until an export is ready, or until all have failed."""
        with self._changed:
            self._changed.wait_for(lambda: any(self._now.ready.values()) or not self._now.pending)

    def wait_for_all(self) -> None:
        """Wait until every export has ended."""
        with self._changed:
            self._changed.wait_for(lambda: not self._now.pending)

    def _end(
        self,
        pair: Pair,
        ready: Mapping[Pair, tuple[Export, ...]] | None = None,
        skipped: Mapping[Pair, str] | None = None,
        errors: Mapping[Pair, str] | None = None,
    ) -> None:
        """Let a pair end; one that has ended already stays as it is."""
        with self._changed:
            now = self._now
            if pair in now.pending:
                self._now = Snapshot(
                    {**now.ready, **(ready or {})},
                    {**now.skipped, **(skipped or {})},
                    {**now.errors, **(errors or {})},
                    now.pending - {pair},
                )
                self._changed.notify_all()
