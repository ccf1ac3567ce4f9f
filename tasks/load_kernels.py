"""Kernel evidence of a bundle: what its runner sampled, or what XNNPACK's trace log says was selected."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from tasks.bundle import BundleError, SessionRecord
from tasks.xnntrace import parse_kernel, read_xnntrace

PROFILE = "kernel_profile.json"
_LOGS = ("stderr.txt", "stdout.txt", "logcat.txt")  # Notes go to stderr, on Android to logcat


def kernels_of(folder: Path, record: SessionRecord) -> list[dict[str, Any]]:
    """Return rows of `kernel`: executed ones of a profile, selected ones of a trace, none for timing.

    Raises BundleError where the profile is not what a runner writes.
    """
    if record.mode == "trace":
        return _selected([folder / name for name in _LOGS if name in record.files])
    if PROFILE in record.files:
        try:
            return _executed(json.loads((folder / PROFILE).read_bytes()))
        except (KeyError, TypeError, ValueError) as error:
            raise BundleError(
                f"{folder / PROFILE} is no kernel profile of a runner ({type(error).__name__}: {error}); measure again"
            ) from None
    return []


def _executed(profile: dict[str, Any]) -> list[dict[str, Any]]:
    rows = [_row("executed", entry["name"], int(entry["samples"]), entry["library"]) for entry in profile["kernels"]]
    for entry in profile["unresolved_libraries"]:
        rows.append(_row("executed", None, int(entry["samples"]), entry["library"]))
    return rows


def _selected(logs: list[Path]) -> list[dict[str, Any]]:
    counts: Counter[str] = Counter()
    for log in logs:
        for selection in read_xnntrace(log).selected:
            counts[selection.kernel.name] += selection.count
    return [_row("selected", name, count, None) for name, count in counts.items()]


def _row(evidence: str, name: str | None, weight: int, library: str | None) -> dict[str, Any]:
    kernel = parse_kernel(name) if name else None
    return {
        "evidence": evidence,
        "name": name,
        "library": library,
        "weight": weight,
        "operation": kernel.operation if kernel else None,
        "data_type": ", ".join(kernel.data_types) if kernel else None,
        "isa": kernel.isa if kernel else None,
        "isa_family": kernel.isa_family if kernel else None,
    }
