"""Figures about the farm for Prometheus, in a file that the textfile collector of node_exporter reads.

A file and not an HTTP endpoint, because the processes that measure are many and short-lived: between two sweeps nothing
would answer, and the counters of a process would vanish with it. All processes of a machine add to one file,
ETFARM_METRICS, under a lock: a counter in it never goes back. Without the variable nothing is counted or imported.
"""

import contextlib
import fcntl
import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tasks.store.files import remove_leftovers, write_complete

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_log = logging.getLogger(__name__)
# The file is written at most this often while something is counted; a killed process loses what it counted since.
_PAUSE_S = 5.0


@dataclass(frozen=True)
class _Kind:
    """The definition of a metric; a `newest` is a gauge that keeps the largest value of all processes."""

    type: Literal["counter", "gauge", "newest"]
    help: str
    labels: tuple[str, ...] = ()


_DEVICE = ("device",)
_KINDS = {
    "etfarm_sessions": _Kind(
        "counter",
        "Sessions that ended, by end (succeeded, failed, invalid, discarded) and reason code.",
        ("device", "end", "reason"),
    ),
    "etfarm_session_seconds": _Kind("counter", "Seconds of sessions, their waits for conditions included.", _DEVICE),
    "etfarm_wait_seconds": _Kind(
        "counter",
        "Seconds that a device waited for its lease, for an export, or for conditions (thermal, battery, load, memory, "
        "slowdown).",
        ("device", "cause"),
    ),
    "etfarm_sessions_left": _Kind("gauge", "Sessions that the newest start of a sweep still has to run.", _DEVICE),
    "etfarm_newest_bundle_timestamp_seconds": _Kind("newest", "End of the newest session with a bundle."),
    "etfarm_newest_loaded_timestamp_seconds": _Kind("newest", "End of the newest session in the warehouse."),
    "etfarm_sweeps_started": _Kind("counter", "Sweeps that started; without an end: running, cancelled or killed."),
    "etfarm_sweeps": _Kind(
        "counter", "Sweeps that ended, by end (completed, failed, or stopped by an error).", ("end",)
    ),
}
_Key = tuple[str, tuple[str, ...]]
"""The name of a metric and the values of its labels."""
_lock = threading.Lock()
_pending: dict[_Key, float] = {}
_written_at = float("-inf")
_warned: set[str] = set()


def is_on() -> bool:
    return _file() is not None


def _file() -> Path | None:
    from devices.settings import settings  # slow to import

    return settings().metrics


def record(name: str, value: float = 1.0, **labels: str) -> None:
    """Add to a counter, or set a gauge; flush if the last flush was 5 s ago. Does nothing without ETFARM_METRICS."""
    if not is_on():
        return
    kind = _KINDS[name]
    key = (name, tuple(labels[label] for label in kind.labels))
    with _lock:
        _pending[key] = _merged(kind, _pending.get(key), value)
        is_due = time.monotonic() - _written_at > _PAUSE_S
    if is_due:
        flush()


@contextlib.contextmanager
def seconds(name: str, **labels: str) -> Iterator[None]:
    """Add the seconds of the block to a counter, also if it raises."""
    began = time.monotonic()
    try:
        yield
    finally:
        record(name, time.monotonic() - began, **labels)


def flush() -> None:
    """Add what this process counted to the file. An error is a warning, once: no measurement fails because of it."""
    global _written_at
    if (path := _file()) is None:
        return
    with _lock:
        _written_at = time.monotonic()
        if not _pending:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            remove_leftovers(path.parent)
            with path.with_name(f"{path.name}.lock").open("a") as lock:  # against other processes of this machine
                fcntl.flock(lock, fcntl.LOCK_EX)
                values = _read(path)
                for key, value in _pending.items():
                    values[key] = _merged(_KINDS[key[0]], values.get(key), value)
                write_complete(path, _exposition(values))
        except (OSError, ValueError) as error:
            cause = f"{error.strerror or error}" if isinstance(error, OSError) else str(error)
            sentence = f"ETFARM_METRICS {path}: {cause}; name a writable .prom file that nothing else writes"
        else:
            _pending.clear()
            return
    if sentence not in _warned:
        _warned.add(sentence)
        _log.warning("%s", sentence)


def _merged(kind: _Kind, before: float | None, value: float) -> float:
    """Return the value of a metric after `value` was recorded; None before the first."""
    if before is None or kind.type == "gauge":
        return value
    return before + value if kind.type == "counter" else max(before, value)


def _read(path: Path) -> dict[_Key, float]:
    """Return the values of the file, none if it is missing; raises ValueError if etfarm did not write it."""
    from prometheus_client.parser import text_string_to_metric_families

    if not path.exists():
        return {}
    families = list(text_string_to_metric_families(path.read_text(encoding="utf-8")))
    if not families or any(not family.name.startswith("etfarm_") for family in families):
        raise ValueError("the file was not written by etfarm")
    return {
        (family.name, tuple(sample.labels.get(label, "") for label in _KINDS[family.name].labels)): sample.value
        for family in families
        if family.name in _KINDS  # not one of another version
        for sample in family.samples
    }


def _exposition(values: dict[_Key, float]) -> bytes:
    """Return the values in the text format of Prometheus."""
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    from prometheus_client.registry import Collector

    class Stored(Collector):
        def collect(self) -> Iterator["Metric"]:
            for name, kind in _KINDS.items():
                make = CounterMetricFamily if kind.type == "counter" else GaugeMetricFamily
                family = make(name, kind.help, labels=kind.labels)
                for labels in sorted(labels for each, labels in values if each == name):
                    family.add_metric(labels, values[name, labels])
                if family.samples:
                    yield family

    registry = CollectorRegistry()
    registry.register(Stored())
    return generate_latest(registry)
