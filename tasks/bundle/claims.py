"""What a session that succeeded may claim of itself: its variant, counts, runner, device and memory must fit together.

These rules are only here. A runner's check, a load, archives and labs apply them: they validate `SessionRecord`, and
tasks/rows/consistency.py applies them before it compares a record with its ETDump. A session that failed or is invalid
claims no figure. What a record does not state is not judged.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from devices.ondevice.facts import Facts
from devices.platform import WITHOUT_SME
from tasks.bundle.cell import Variant
from tasks.bundle.delegate_settings import RUNTIME
from tasks.bundle.delegates import stated_backends
from tasks.bundle.runner_stats import Stats
from tasks.bundle.runtime import Runtime
from tasks.bundle.runtime_options import unstated, without_effect

CLAIM = "claim"
"""The type of the error of a record that claims what cannot be: restoring it would not help."""
_PAGE_BYTES = 4096
"""The least memory that any process has."""
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
    runtime: Runtime = field(default_factory=Runtime)
    """The versions and options that its name states."""
    versions: Runtime = field(default_factory=Runtime)
    """Those of executorch that its program and its runner state."""
    backends: frozenset[str] | None = None
    """The ids of those that its program calls; None if the program was not read."""


def contradiction_in(claims: Claims) -> str | None:
    """Return which two statements of a session that succeeded contradict each other; None if none do."""
    contradictions = [_session_contradictions(claims)]
    if stats := claims.stats:
        contradictions += [_stats_contradictions(claims, stats), _option_contradictions(claims, stats)]
        contradictions += [_memory_contradictions(claims, stats)]
    return next(chain.from_iterable(contradictions), None)


def facts_contradiction(facts: Facts) -> str | None:
    """Return why facts cannot be those of one device; None if they can."""
    if facts.platform not in WITHOUT_SME or not (facts.sme or facts.sme2):
        return None
    return f"`platform` is {facts.platform}, but `{'sme2' if facts.sme2 else 'sme'}` is true"


def real_serial(serial: str | None, *, emulated: bool) -> str | None:
    """Return the serial number that identifies a device under any name; None if it has none.

    Only phones report one; machines that are reached locally or by SSH do not. Emulators of one kind share theirs, and
    boards without one report zeros or a placeholder.
    """
    if serial is None or emulated or not serial.strip("0 ") or serial.lower() in _NO_SERIAL:
        return None
    return serial


def _session_contradictions(claims: Claims) -> Iterator[str]:
    for kind in ("export", "runner"):
        expected, actual = getattr(claims.runtime, kind), getattr(claims.versions, kind)
        if expected and expected != (actual or "").partition("+")[0]:
            yield f"its name states {kind}={expected}, but its {kind} is of executorch {actual or 'without a version'}"
    allowed = stated_backends(claims.runtime.delegate)
    if others := sorted(claims.backends - allowed) if allowed is not None and claims.backends is not None else []:
        yield f"its name states delegate={claims.runtime.delegate}, but its program calls {others[0]}"
    facts, extension = claims.facts, _EXTENSION.get(claims.variant)
    if claims.warmup_executions > claims.executions:
        yield f"`warmup_executions` is {claims.warmup_executions}, more than `executions`, {claims.executions}"
    if None not in (claims.platform, facts.platform) and claims.platform != facts.platform:
        yield f"the runner is one for {claims.platform}, but the device's platform is {facts.platform}"
    if extension and claims.platform in WITHOUT_SME:
        yield f"the variant is {claims.variant}, but the runner is one for {claims.platform}"
    if extension and (facts.sme2 if extension == "SME2" else facts.sme) is False:
        yield f"the variant is {claims.variant}, but the device's facts state a processor without {extension}"
    if cause := facts_contradiction(facts):
        yield f"in the device's facts, {cause}"


def _stats_contradictions(claims: Claims, stats: Stats) -> Iterator[str]:
    if stats.exit_reason not in (None, "ok"):
        yield f"the runner exited with code 0, but stats.json states `exit_reason` {stats.exit_reason!r}"
    extension = "SME2" if stats.sme2_hardware else "SME" if stats.sme_hardware else None
    if extension and claims.platform in WITHOUT_SME:
        yield f"stats.json states {extension}, but the runner is one for {claims.platform}"
    has = {True: "a processor with", False: "one without"}
    for name, claim, fact in (
        ("SME", stats.sme_hardware, claims.facts.sme),
        ("SME2", stats.sme2_hardware, claims.facts.sme2),
    ):
        if claim is not None and fact is not None and claim != fact:
            yield f"stats.json states {has[claim]} {name}, but the device's facts {has[fact]} {name}"
        if claim is False and name == _EXTENSION.get(claims.variant):
            yield f"the variant is {claims.variant}, but stats.json states a processor without {name}"


def _option_contradictions(claims: Claims, stats: Stats) -> Iterator[str]:
    options = claims.runtime.options
    if cause := without_effect(options, stats):
        yield cause
    if what := unstated(options, stats, (RUNTIME,)):
        yield f"stats.json states {what}, which its name does not"


def _memory_contradictions(claims: Claims, stats: Stats) -> Iterator[str]:
    memory_bytes, swap_bytes = claims.facts.memory_bytes, claims.facts.swap_bytes or 0
    for key in ("model_peak_memory_bytes", "peak_memory_bytes", "first_peak_memory_bytes"):
        claim = getattr(stats, key)
        if claim is not None and claim < _PAGE_BYTES:
            yield f"stats.json states `{key}` {claim}, less than a page of {_PAGE_BYTES} bytes"
        if claim is not None and memory_bytes is not None and claim > memory_bytes + swap_bytes:
            all_bytes = memory_bytes + swap_bytes
            yield f"stats.json states `{key}` {claim}, but the device has {all_bytes} bytes of memory and swap"
