"""The sweeps of a certification, written as the files that `etfarm sweep` reads."""

import json
from pathlib import Path
from typing import Any, Literal

from tasks.analyse.certify.subject import Subject
from tasks.bundle.cell import VARIANTS
from tasks.prepare.runner.bundle import find_runner
from tasks.store.files import write_complete

Sweep = Literal["certify", "certify-noise", "certify-kill"]
MODELS = ("linear", "toy_cnn")
NOISE_SESSIONS = 8
# Many, so that the profile samples even kernels of a few microseconds; in an emulator few take long enough.
_EXECUTIONS, _WARMUP_EXECUTIONS = 4000, 100
_EMULATED_EXECUTIONS, _EMULATED_WARMUP_EXECUTIONS = 6, 1


def modes(subject: Subject) -> list[str]:
    """Return timing, and the modes that tell kernels as far as the device's runner has them."""
    runners, platform = subject.places.runners, subject.platform or ""
    has = [mode for mode in ("profile", "selected") if find_runner(runners, platform, "sme2_off", mode)]
    return ["timing", *has]


def variants(subject: Subject) -> list[str]:
    """Return the variants for which there is a runner; a sweep leaves out those that the device does not have."""
    runners, platform = subject.places.runners, subject.platform or ""
    return [variant for variant in VARIANTS if find_runner(runners, platform, variant, "timing")]


def write_sweep(subject: Subject, name: Sweep, launcher: list[str]) -> tuple[Path, Path]:
    """Write the sweep file and an inventory of the device alone, `launcher` before its own; return both paths."""
    emulated = subject.spec.emulated
    settings: dict[str, Any] = {
        "name": name,
        "models": MODELS[:1],
        "variants": ["sme2_off"],
        "modes": ["timing"],
        "executions": _EMULATED_EXECUTIONS if emulated else _EXECUTIONS,
        "warmup_executions": _EMULATED_WARMUP_EXECUTIONS if emulated else _WARMUP_EXECUTIONS,
        "sessions": 1,
        "noise_sessions": 0 if emulated or name == "certify-kill" else NOISE_SESSIONS,
        "deadline_s": 120,
        "settle_s": 60,
        "lease_wait_s": 60,
    }
    if name == "certify":
        settings |= {"models": MODELS, "variants": variants(subject), "modes": modes(subject)}
    if name == "certify-kill":
        settings |= {"sessions": 2}
    device = subject.spec.model_dump(mode="json", exclude_unset=True)
    device["launcher"] = [*launcher, *subject.spec.launcher]
    return _write(subject, name, settings), _write(subject, f"{name}-inventory", {"devices": [device]})


def _write(subject: Subject, name: str, content: dict[str, Any]) -> Path:
    path = subject.places.root / f"{name}.yaml"
    write_complete(path, json.dumps(content, indent=1).encode())  # JSON is YAML
    return path
