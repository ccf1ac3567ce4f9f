"""Which devices need attention after a night, and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from tasks.bundle.failure_kinds import FAILURE_KINDS
from tasks.results.addresses import device_page, session_page
from tasks.results.devices import DeviceBuildRow, DeviceRow, WaitRow, read_devices
from tasks.results.reader import Reader, SweepRow
from tasks.results.sessions import NightFailureRow
from tasks.results.table import grouped
from tasks.results.text import Code, Link, Tag, Text, counted, duration, joined, separated
from tasks.results.verdicts import VerdictRow, latency_verdicts

_MIN_WAIT_S = 1800
"""A device that waited longer for its limits, in all, needs attention."""
_MAX_REASONS = 3


@dataclass(frozen=True)
class DeviceAttention:
    """A device and why it needs attention; none of `reasons` if it does not."""

    device: str
    without_times: str | None
    reasons: Sequence[Text]
    is_absent: bool

    @property
    def line(self) -> Text:
        tags = (Tag(self.without_times),) if self.without_times else ()
        return joined((Link(self.device, device_page(self.device)), *tags, ": "), separated(self.reasons, "; "))


def read_attention(reader: Reader, night: date, verdicts: Sequence[VerdictRow]) -> list[DeviceAttention]:
    """Return all devices of the farm: absent ones first, then those with the most reasons."""
    failures = grouped((row for row in reader.rows(NightFailureRow) if row.night == night), lambda row: row.device)
    of_device = grouped(latency_verdicts(verdicts), lambda row: row.device)
    others = _noise_and_waits(reader, night)
    builds = {row.device: row.text for row in reader.rows(DeviceBuildRow)}
    rows = []
    for row in read_devices(reader):
        is_absent = row.night != night
        reasons: list[Text] = [f"not measured, last in the night of {row.night}"] if is_absent else []
        reasons += _moved(of_device.get(row.device, []))
        reasons += _failed(failures.get(row.device, []), row)
        reasons += [] if is_absent else others.get(row.device, [])
        reasons += [builds[row.device]] if row.device in builds and row.without_times is None else []
        rows.append(DeviceAttention(row.device, row.without_times, reasons, is_absent))
    return sorted(rows, key=lambda row: (not row.is_absent, -len(row.reasons), row.device))


def _moved(verdicts: Sequence[VerdictRow]) -> list[Text]:
    slower = sum(row.verdict == "device slower" for row in verdicts)
    text = f"{slower} of {len(verdicts):,} series slower, model and runner unchanged"
    return [text] if slower else []


def _failed(every: Sequence[NightFailureRow], row: DeviceRow) -> list[Text]:
    """Return how many sessions have no result for another reason than the model, and why."""
    failures = [each for each in every if not _is_of_model(each.reason_code)]
    if not failures:
        return []
    kinds: list[Text] = [
        (Code(each.reason_code), f" {each.sessions:,}, such as ", Link("this one", session_page(each.session_id)))
        for each in failures
    ]
    count = sum(each.sessions for each in failures)
    return [joined(f"{count:,} of {row.sessions:,} sessions failed or invalid: ", separated(kinds, most=_MAX_REASONS))]


def _is_of_model(reason_code: str) -> bool:
    kind = FAILURE_KINDS.get(reason_code)
    return kind is not None and kind.subject == "model"


def _noise_and_waits(reader: Reader, night: date) -> dict[str, list[Text]]:
    """Return what else is to be stated of devices: noise that doubled, and long waits for limits."""
    texts: dict[str, list[Text]] = {}
    for sweep in (row for row in reader.rows(SweepRow) if row.night == night):
        for device, noise, change, nights in reader.tuples("noisy_devices", sweep_id=sweep.sweep_id, night=None):
            text = f"noise {100 * noise:.1f} %, {change:.1f} times that of {counted(nights, 'earlier night')}"
            texts.setdefault(device, []).append(text)
        for device, waits in grouped(
            reader.rows(WaitRow, {"sweep_id": sweep.sweep_id}), lambda row: row.device
        ).items():
            if waits[0].device_waited_s >= _MIN_WAIT_S:
                names = separated([(Code(wait.limit_name),) for wait in waits])
                waited = joined(f"waited {duration(waits[0].device_waited_s)} for ", names)
                texts.setdefault(device, []).append(waited)
    return texts
