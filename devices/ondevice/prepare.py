"""What precedes a job, in one round trip: the lease, what an earlier job left, the files that it needs, conditions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from devices.device import Device
from devices.ondevice.conditions import Conditions, conditions_of
from devices.ondevice.job import MOST_FOLDERS, lease_lost
from devices.ondevice.store import Content, are_verified, checked_hash, push
from devices.shell import run_script, script_text

# An entry of the store is marked as used when it was not for so long; `prune` spares those of the last hour.
_FRESH_MINUTES = 15


@dataclass(frozen=True)
class Prepared:
    """Whether the folder has the ended job of the same identity; if not, the conditions, unless files were pushed."""

    has_ended: bool
    conditions: Conditions | None = None


def prepare_job(device: Device, folder: str, identity: str, contents: Sequence[Content], *, ttl_s: float) -> Prepared:
    """Keep the ended job of `folder` if it is of this identity; otherwise remove it, and store and verify `contents`.

    One round trip if all contents are in the store; it also removes the folders `device.collected`. The device's lease
    is extended to `ttl_s`; raises LeaseLost, and removes nothing, if another process took it over. Raises as
    `store.put` and `store.put_tree` do.
    """
    for content in contents:
        checked_hash(device, content.sha256)
    places = " ".join(content.place for content in contents)
    files = [path for content in contents for path in content.paths]
    lease = [device.machine_folder, device.lease_token or "", str(math.ceil(ttl_s))]
    collected = device.collected[:MOST_FOLDERS]
    scripts = ["\n".join(collected), script_text("conditions")]
    words = [folder, identity, *lease, device.root, *scripts, places, str(_FRESH_MINUTES)]
    printed = run_script(device, "job_prepare", *words, *files)
    if printed.strip() == "unleased":
        raise lease_lost(device)
    del device.collected[: len(collected)]
    if printed.strip() == "ended":
        return Prepared(has_ended=True)
    stored, _, conditions = printed.partition("%conditions\n")
    if are_verified(contents, stored):
        return Prepared(has_ended=False, conditions=conditions_of(device, conditions))
    for content in contents:
        push(device, content)
    return Prepared(has_ended=False)
