"""What a farm takes over from a lab: only what agrees with the order, the plan and the bundles in the store."""

import re
from dataclasses import dataclass, replace
from typing import Any

from devices.errors import InputError
from devices.inventory import DeviceSpec
from devices.platform import SIMULATED
from devices.untrusted import excerpt
from flows.device.job import DeviceJob, DeviceTally
from flows.labs.messages import Ended, Probed
from tasks.bundle.claims import facts_contradiction
from tasks.measure.health import Health

ENDS = ("succeeded", "failed", "invalid", "discarded")
"""How a session ends that has a bundle."""
_TEXTS = ("dropped_because", "stopped_by", "unusable", "first_reason")
_MOST_TEXT = 1000


@dataclass(frozen=True)
class Stored:
    """The sessions of a device that have ended since the start of the sweep, by their bundles."""

    ends: dict[str, int]
    """How many succeeded, failed, are invalid or were discarded."""
    unread: int = 0
    """New bundles of any device that could not be read: they may be such sessions."""


def require_facts(spec: DeviceSpec, probed: Probed) -> None:
    """Raise InputError if the facts of a device contradict its entry in the inventory, or each other."""
    system, platform = probed.facts.os, probed.facts.platform
    if platform is None:
        return
    if not re.fullmatch(r"[\w-]{1,64}", platform, re.ASCII):
        raise InputError(f"`platform` is {excerpt(platform, 40)!r}, which is not a platform")
    stated = SIMULATED if spec.transport == "simulated" else spec.platform
    if stated and platform != stated:
        raise InputError(f"`platform` is {platform}, but {stated} in the inventory")
    if cause := facts_contradiction(probed.facts):
        raise InputError(cause)
    if not stated and not platform.startswith(f"{system}-"):
        raise InputError(f"`platform` is {platform}, but `os` is {excerpt(str(system), 40)}")


def believed(name: str, ended: Ended, before: Health, job: DeviceJob | None, stored: Stored) -> DeviceTally:
    """Return how the device `name` ended; raises InputError if its lab claims more sessions than planned or stored.

    `job` is None for a device that was not admitted: no session of it can have ended.
    """
    tally = replace(ended.tally, device=name)
    for end, found in stored.ends.items():
        if (claimed := getattr(tally, end)) > found + stored.unread:
            raise InputError(f"it reported {claimed} sessions of {name} as {end}, but the store has {found}")
    claimed, planned = sum(tally.counts.values()), _most_planned(job)
    if claimed > planned:
        raise InputError(f"it reported {claimed} sessions of {name}, but at most {planned} are planned")
    if ended.health.state == "retired" != before.state:
        raise InputError(f"it retired {name}, which only `etfarm devices retire` does")
    texts: dict[str, Any] = {key: excerpt(text, _MOST_TEXT) for key in _TEXTS if (text := getattr(tally, key))}
    return replace(tally, replaced=tally.replaced & set(job.unloadable if job else ()), **texts)


def _most_planned(job: DeviceJob | None) -> int:
    """Return how many sessions a device has at most, whichever variants its processor turns out to run."""
    if job is None:
        return 0
    facts = job.facts.model_copy(update={"sme": None, "sme2": None})
    return len(job.planned(facts, job.exports.now())) + 1  # the discarded session of an earlier start
