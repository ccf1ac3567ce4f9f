"""What a device is: one script, one round trip, read by system in one place each."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from devices.shell import script

if TYPE_CHECKING:
    from devices.device import Device

# Sections are `@key` lines followed by what a command said. A system is known by the tools that only it has.
SECTIONS = """
say() { key=$1; shift; echo "@$key"; "$@" 2>/dev/null; }
if command -v getprop >/dev/null 2>&1; then system=android
elif command -v sw_vers >/dev/null 2>&1; then system=macos
else system=linux; fi
say system echo "$system"
"""

_FACTS = (
    SECTIONS
    + """
say arch uname -m
say hostname hostname
say kernel uname -r
case $system in
macos)
    say version sw_vers
    say sysctl sysctl hw.model hw.memsize hw.ncpu machdep.cpu.brand_string
    say sme2 sysctl -n hw.optional.arm.FEAT_SME2
    ;;
*)
    say cores sh -c 'nproc || grep -c ^processor /proc/cpuinfo'
    say memory grep MemTotal /proc/meminfo
    say cpuinfo sed -nE '/^(Features|model name|Hardware)/p; /^$/q' /proc/cpuinfo
    ;;
esac
case $system in
android)
    say getprop getprop
    ;;
linux)
    say release cat /etc/os-release
    say product cat /sys/class/dmi/id/product_name
    say devicetree sh -c 'tr "\\000" "\\n" </proc/device-tree/model'
    ;;
esac
true
"""
)

# `uname -m` as the platforms of runner bundles are named.
_ARCHES = {"arm64": "aarch64", "aarch64": "aarch64", "x86_64": "x86_64", "amd64": "x86_64"}


def read_facts(device: Device) -> dict[str, Any]:
    """What the device is. Keys, None where the device does not say:

    os (linux, macos, android), os_version, model, soc, cores, memory_bytes, arch (x86_64, aarch64; arm64 on macOS),
    platform (whose runner it takes), sme2 (bool), hostname, serial, build.
    """
    return parse_facts(sections(script(device, _FACTS)), device.platform)


def sections(text: str) -> dict[str, str]:
    """Split what a script of sections printed: key -> what stood below it."""
    found: dict[str, str] = {}
    key = ""
    for line in text.splitlines():
        if re.fullmatch(r"@[a-z0-9]+", line):
            key = line[1:]
            found[key] = ""
        else:
            found[key] = found.get(key, "") + line + "\n"
    return {key: value.strip() for key, value in found.items()}


def parse_facts(said: dict[str, str], platform: str | None) -> dict[str, Any]:
    """Facts from the sections that a device printed; `platform` overrides what its programs are built for."""
    readers = {"android": _android, "macos": _macos, "linux": _linux}
    facts = readers[said["system"]](said)
    machine = said.get("arch", "")
    facts["arch"] = machine if said["system"] == "macos" else _ARCHES.get(machine, machine)
    facts["hostname"] = said.get("hostname") or None
    facts["platform"] = f"{said['system']}-{_word_for(said['system'], facts['arch'])}"
    if platform and platform != facts["platform"]:
        # Programs run through a launcher: its processor is not the one that the device describes.
        facts["platform"] = platform
        facts["sme2"] = False if platform.endswith("x86_64") else None
    return {"os": said["system"], **dict(sorted(facts.items()))}


def _word_for(system: str, arch: str) -> str:
    return "arm64" if arch == "aarch64" and system != "linux" else arch


def _linux(said: dict[str, str]) -> dict[str, Any]:
    release = dict(re.findall(r'^([A-Z_]+)="?(.*?)"?$', said.get("release", ""), re.MULTILINE))
    return {
        **_proc(said),
        "os_version": release.get("PRETTY_NAME"),
        "model": said.get("devicetree") or said.get("product") or None,
        "soc": _field(said.get("cpuinfo", ""), "model name", "Hardware"),
        "serial": None,
        "build": said.get("kernel") or None,
    }


def _android(said: dict[str, str]) -> dict[str, Any]:
    properties = dict(re.findall(r"^\[(.*?)\]: \[(.*)\]$", said.get("getprop", ""), re.MULTILINE))
    return {
        **_proc(said),
        "os_version": properties.get("ro.build.version.release") or None,
        "model": properties.get("ro.product.model") or None,
        "soc": properties.get("ro.soc.model") or properties.get("ro.board.platform") or None,
        "serial": properties.get("ro.serialno") or None,
        "build": properties.get("ro.build.fingerprint") or None,
    }


def _macos(said: dict[str, str]) -> dict[str, Any]:
    known = dict(re.findall(r"^([\w.]+): (.*)$", said.get("sysctl", ""), re.MULTILINE))
    version = dict(re.findall(r"^(\w+):\s*(.*)$", said.get("version", ""), re.MULTILINE))
    return {
        "os_version": version.get("ProductVersion"),
        "model": known.get("hw.model"),
        "soc": known.get("machdep.cpu.brand_string"),
        "cores": _number(known.get("hw.ncpu")),
        "memory_bytes": _number(known.get("hw.memsize")),
        "sme2": said.get("sme2") == "1",
        "serial": None,
        "build": version.get("BuildVersion"),
    }


def _proc(said: dict[str, str]) -> dict[str, Any]:
    kilobytes = _number((said.get("memory", "").split() or ["", ""])[1])
    features = _field(said.get("cpuinfo", ""), "Features")
    x86 = _ARCHES.get(said.get("arch", "")) == "x86_64"
    return {
        "cores": _number(said.get("cores")),
        "memory_bytes": kilobytes * 1024 if kilobytes is not None else None,
        "sme2": "sme2" in features.split() if features else (False if x86 else None),
    }


def _field(text: str, *names: str) -> str | None:
    for name in names:
        if found := re.search(rf"^{name}\s*: *(.*)$", text, re.MULTILINE):
            return found[1].strip() or None
    return None


def _number(text: str | None) -> int | None:
    return int(text) if text and text.strip().isdigit() else None
