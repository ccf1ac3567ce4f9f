"""What a session that succeeded may claim of itself: its variant, counts, runner, device and memory must fit together.

The only place for these rules. A runner's check, a load, archives and labs all read them: `SessionRecord` has them as
its validator, and what the record and its ETDump must agree on (tasks/rows/consistency.py) begins with them. A session
that failed or is invalid claims no figure. What a record does not state is not judged.
"""

from dataclasses import dataclass

from devices.ondevice.facts import Facts
from devices.platform import WITHOUT_SME
from tasks.bundle.cell import Variant
from tasks.bundle.runner_stats import Stats

CLAIM = "claim"
"""The type of the error of a record that claims what cannot be: restoring it would not help."""
_LEAST_MEMORY_BYTES = 4096
"""A page: the least that any process has."""
_EXTENSION: dict[Variant, str] = {"sme2_on": "SME2", "sme1": "SME"}
# What boards without a serial number report.
_NO_SERIAL = {"unknown", "0123456789abcdef"}


@dataclass(frozen=True)
class Claims:
    """What a session states of itself, apart from the times in its ETDump."""

    variant: Variant
    executions: int
    warmup_executions: int
    platform: str | None
    """That of the runner."""
    facts: Facts
    stats: Stats | None = None
    """None of a registered runner."""
    wall_s: float | None = None
    """How long the device ran the job."""


def contradiction_in(claims: Claims) -> str | None:
    """Return which two statements of a session that succeeded contradict each other; None if none do."""
    cause = _without_measurement(claims) or _other_platform(claims) or _impossible_variant(claims)
    if not cause and (of_facts := facts_contradiction(claims.facts)):
        cause = f"in the device's facts, {of_facts}"
    if cause or claims.stats is None:
        return cause
    return _impossible_end(claims.stats) or _other_processor(claims, claims.stats) or _impossible_memory(claims)


def facts_contradiction(facts: Facts) -> str | None:
    """Return why facts cannot be those of one device; None if they can."""
    if facts.platform not in WITHOUT_SME or not (facts.sme or facts.sme2):
        return None
    return f"`platform` is {facts.platform}, but `{'sme2' if facts.sme2 else 'sme'}` is true"


def real_serial(serial: str | None, *, emulated: bool) -> str | None:
    """Return the serial number by which a device is known to be the same under two names; None if it has none.

    Only phones report one; machines that are reached locally or by SSH do not. Emulators of one kind share theirs, and
    boards without one report zeros or a placeholder.
    """
    if serial is None or emulated or not serial.strip("0 ") or serial.lower() in _NO_SERIAL:
        return None
    return serial


def _without_measurement(claims: Claims) -> str | None:
    if claims.warmup_executions <= claims.executions:
        return None
    return f"`warmup_executions` is {claims.warmup_executions}, more than `executions`, {claims.executions}"


def _other_platform(claims: Claims) -> str | None:
    if None in (claims.platform, claims.facts.platform) or claims.platform == claims.facts.platform:
        return None
    return f"the runner is one for {claims.platform}, but the device's platform is {claims.facts.platform}"


def _impossible_variant(claims: Claims) -> str | None:
    extension = _EXTENSION.get(claims.variant)
    if extension is None:
        return None
    if claims.platform in WITHOUT_SME:
        return f"the variant is {claims.variant}, but the runner is one for {claims.platform}"
    if (claims.facts.sme2 if extension == "SME2" else claims.facts.sme) is False:
        return f"the variant is {claims.variant}, but the device's facts state a processor without {extension}"
    return None


def _impossible_end(stats: Stats) -> str | None:
    if stats.exit_reason in (None, "ok"):
        return None
    return f"the runner exited with code 0, but stats.json states `exit_reason` {stats.exit_reason!r}"


def _other_processor(claims: Claims, stats: Stats) -> str | None:
    extension = "SME2" if stats.sme2_hardware else "SME" if stats.sme_hardware else None
    if extension and claims.platform in WITHOUT_SME:
        return f"stats.json states {extension}, but the runner is one for {claims.platform}"
    for name, stated, known in (
        ("SME", stats.sme_hardware, claims.facts.sme),
        ("SME2", stats.sme2_hardware, claims.facts.sme2),
    ):
        if stated is not None and known is not None and stated != known:
            return f"stats.json states {_yes(stated)} {name}, but the device's facts {_yes(known)} {name}"
        if stated is False and name == _EXTENSION.get(claims.variant):
            return f"the variant is {claims.variant}, but stats.json states a processor without {name}"
    return None


def _impossible_memory(claims: Claims) -> str | None:
    facts = claims.facts
    most = None if facts.memory_bytes is None else facts.memory_bytes + (facts.swap_bytes or 0)
    for key in ("model_peak_resident_bytes", "peak_resident_bytes"):
        stated = getattr(claims.stats, key)
        if stated is not None and stated < _LEAST_MEMORY_BYTES:
            return f"stats.json states `{key}` {stated}, less than a page of {_LEAST_MEMORY_BYTES} bytes"
        if stated is not None and most is not None and stated > most:
            return f"stats.json states `{key}` {stated}, but the device has {most} bytes of memory and swap"
    return None


def _yes(has: bool) -> str:
    return "a processor with" if has else "one without"
