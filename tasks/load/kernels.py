"""The kernels of a bundle: executed ones from the runner's sampling profile, or selected ones from XNNPACK's log."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from tasks.bundle import BundleError, SessionRecord
from tasks.etdump.xnntrace import parse_kernel, read_xnntrace

PROFILE = "kernel_profile.json"
_QUALITY = ("rate_hz", "samples", "dropped", "unresolved", "threads")
_LOGS = ("stderr.txt", "stdout.txt", "logcat.txt")  # Notes go to stderr, on Android to logcat


def kernels_of(folder: Path, record: SessionRecord) -> dict[str, list[dict[str, Any]]]:
    """Return rows of `kernel` and `kernel_profile`: executed kernels of a profile, selected ones of a trace, or none.

    Raises BundleError if the profile cannot be parsed.
    """
    if record.mode == "trace":
        return {"kernel": _selected([folder / name for name in _LOGS if name in record.files])}
    if PROFILE in record.files:
        try:
            profile = json.loads((folder / PROFILE).read_bytes())
            return {"kernel": _executed(profile), "kernel_profile": [{key: profile[key] for key in _QUALITY}]}
        except (KeyError, TypeError, ValueError) as error:
            raise BundleError(
                f"{folder / PROFILE}: not a kernel profile ({type(error).__name__}: {error}); measure again"
            ) from None
    return {}


def _executed(profile: dict[str, Any]) -> list[dict[str, Any]]:
    unresolved = profile.get("unresolved_libraries")
    if unresolved is None and profile["unresolved"]:
        unresolved = [{"samples": profile["unresolved"]}]
    return [
        _row("executed", entry.get("name"), int(entry["samples"]), entry.get("library"))
        for entry in (*profile["kernels"], *(unresolved or []))
    ]


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
