"""The oldest C and C++ libraries, or the oldest macOS, with which a runner starts."""

import re
from collections.abc import Iterator
from pathlib import Path

from devices.ondevice.facts import Facts
from tasks.runner.binary import Elf, read_binary
from tasks.runner.manifest import Manifest, RunnerError

_VERSION = re.compile(r"(GLIBC|GLIBCXX)_(\d+(?:\.\d+)*)")
_REBUILD = "on a machine that has no newer one, build it with `etfarm devices runner build`, and register it here"


def floor_of(bundle: Path) -> dict[str, str]:
    """Return the versions that the files of a bundle need at least, by `glibc` and `glibcxx` (Linux), or `macos`.

    Versions of libraries that the bundle brings do not count, so one with a C library needs none. `glibcxx` is the
    largest GLIBCXX version of libstdc++'s symbols, such as 3.4.30.
    """
    files = [path for path in bundle.rglob("*") if path.is_file()]
    brought = {path.name for path in files}
    floor: dict[str, str] = {}
    for path in files:
        for key, version in _needed_by(path, brought):
            floor[key] = max(floor.get(key, version), version, key=_numbers)
    return dict(sorted(floor.items()))


def why_too_old(runner: Manifest, device: str, facts: Facts) -> str | None:
    """Return in one sentence why a device is too old for a runner; None if it is not, or if that is unknown."""
    offered = {
        "glibc": ("glibc", facts.glibc, _REBUILD),
        "glibcxx": ("libstdc++ with GLIBCXX", facts.glibcxx, _REBUILD),
        "macos": ("macOS", facts.os_version if facts.os == "macos" else None, "update the device"),
    }
    for key, (what, has, way_on) in offered.items():
        least = (runner.needs or {}).get(key)
        if has and least and _numbers(has) < _numbers(least):
            return f"{device} has {what} {has}, but its runner ({runner.runner_sha256[:8]}) needs {least}; {way_on}"
    return None


def _needed_by(path: Path, brought: set[str]) -> Iterator[tuple[str, str]]:
    try:
        binary = read_binary(path)
    except RunnerError:
        return  # a file that is not a program has no needs
    if isinstance(binary, Elf):
        for library, names in binary.versions_needed.items():
            for name in names if library not in brought else ():
                if match := _VERSION.fullmatch(name):
                    yield match[1].lower(), match[2]
    elif binary.oldest_macos:
        yield "macos", binary.oldest_macos


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
