"""Checks of a lab's claims against the inventory, the plan and the bundles in the store."""

import re
from dataclasses import replace
from typing import Any

from devices.errors import InputError
from devices.inventory import DeviceSpec
from devices.ondevice.facts import Facts
from devices.platform import SIMULATED
from devices.untrusted import excerpt
from flows.device.job import DeviceJob, DeviceTally
from tasks.bundle.claims import facts_contradiction

_TEXTS = ("dropped_because", "stopped_by", "unusable", "first_reason")
_MAX_CHARS = 1000


def validate_facts(spec: DeviceSpec, facts: Facts) -> None:
    """Raise InputError if facts with a platform contradict the device's entry in the inventory, or each other."""
    system, platform = facts.os, facts.platform
    if platform is None:
        return
    if not re.fullmatch(r"[\w-]{1,64}", platform, re.ASCII):
        raise InputError(f"`platform` is {excerpt(platform, 40)!r}, which is not a platform")
    expected = SIMULATED if spec.transport == "simulated" else spec.platform
    if expected and platform != expected:
        raise InputError(f"`platform` is {platform}, but {expected} in the inventory")
    if cause := facts_contradiction(facts):
        raise InputError(cause)
    if not expected and not platform.startswith(f"{system}-"):
        raise InputError(f"`platform` is {platform}, but `os` is {excerpt(str(system), 40)}")


def validate_tally(job: DeviceJob, tally: DeviceTally, stored: dict[str, int], unread: int) -> DeviceTally:
    """Return a tally with bounded texts; raises InputError if it has more sessions than are planned or stored.

    `stored` counts the sessions with a bundle by how they ended; each of the `unread` new bundles may be any of them.
    """
    name = job.device.name
    for end, count in stored.items():
        if (claimed := getattr(tally, end)) > count + unread:
            raise InputError(f"it reported {claimed} sessions of {name} as {end}, but the store has {count}")
    # The runner may report SME and SME2, so all variants count. One more: the discarded session of an earlier start.
    facts = job.probe.facts.model_copy(update={"sme": None, "sme2": None})
    with_all = replace(job, probe=replace(job.probe, facts=facts))
    claimed, planned = sum(tally.counts.values()), len(with_all.planned(job.exports.now())) + 1
    if claimed > planned:
        raise InputError(f"it reported {claimed} sessions of {name}, but at most {planned} are planned")
    texts: dict[str, Any] = {key: excerpt(text, _MAX_CHARS) for key in _TEXTS if (text := getattr(tally, key))}
    failed_exports = {" ".join(pair) for pair in job.exports.now().errors}
    texts["without_program"] = {
        title: count for title, count in tally.without_program.items() if title in failed_exports
    }
    return replace(tally, device=name, replaced=tally.replaced & set(job.unloadable), **texts)
