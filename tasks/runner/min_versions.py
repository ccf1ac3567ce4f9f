"""The minimum versions of the C and C++ libraries, or of macOS, that a runner needs to start."""

import re
from pathlib import Path

from devices.ondevice.facts import Facts
from tasks.runner.binary import Elf, read_binary
from tasks.runner.manifest import Runner, RunnerError

_VERSION = re.compile(r"(GLIBC|GLIBCXX)_(\d+(?:\.\d+)*)")
_REBUILD = "on a machine that has no newer one, build it with `etfarm devices runner build`, and register it here"


def min_versions(bundle: Path) -> dict[str, str]:
    """Return the minimum versions that a bundle's files need, by `glibc` and `glibcxx` (Linux), or `macos`.

    Libraries in the bundle do not count, so one with a C library needs none. `glibcxx` is the largest GLIBCXX version
    of libstdc++'s symbols, such as 3.4.30.
    """
    files = [path for path in bundle.rglob("*") if path.is_file()]
    bundled = {path.name for path in files}
    needed: list[tuple[str, str]] = []
    for path in files:
        try:
            binary = read_binary(path)
        except RunnerError:
            continue  # a file that is not a program has no needs
        if isinstance(binary, Elf):
            for library, names in binary.versions_needed.items():
                for name in names if library not in bundled else ():
                    if match := _VERSION.fullmatch(name):
                        needed.append((match[1].lower(), match[2]))
        elif binary.min_macos:
            needed.append(("macos", binary.min_macos))
    largest: dict[str, str] = {}
    for key, version in needed:
        largest[key] = max(largest.get(key, version), version, key=_parse_version)
    return dict(sorted(largest.items()))


def why_too_old(runner: Runner, device: str, facts: Facts) -> str | None:
    """Return one sentence why a device is too old for a runner; None if it is not, or if that is unknown."""
    offered = {
        "glibc": ("glibc", facts.glibc, _REBUILD),
        "glibcxx": ("libstdc++ with GLIBCXX", facts.glibcxx, _REBUILD),
        "macos": ("macOS", facts.os_version if facts.os == "macos" else None, "update the device"),
    }
    for key, (what, has, remedy) in offered.items():
        needed = runner.needs.get(key)
        if has and needed and _parse_version(has) < _parse_version(needed):
            return f"{device} has {what} {has}, but its runner ({runner.runner_sha256[:8]}) needs {needed}; {remedy}"
    return None


def _parse_version(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
