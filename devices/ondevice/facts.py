"""What a device is: one script (`scripts/facts.sh`), one round trip, one parser for each system."""

import math
import re
from typing import Any

from pydantic import BaseModel, ConfigDict

from devices.device import Device
from devices.errors import DeviceError
from devices.platform import WITHOUT_SME
from devices.shell import run_script

# `uname -m` -> the name of the architecture in the platforms of runner bundles.
_ARCHES = {"arm64": "aarch64", "aarch64": "aarch64", "x86_64": "x86_64", "amd64": "x86_64"}
_MAX_SYSTEM_CHARS = 40
_MAX_CHARS = 300
_MAX_CORES = 2**31 - 1


class Facts(BaseModel):
    """What a device is; None where the device does not report it, or was never reached."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    os: str | None = None
    """linux, macos or android."""
    os_version: str | None = None
    build: str | None = None
    model: str | None = None
    soc: str | None = None
    serial: str | None = None
    hostname: str | None = None
    arch: str | None = None
    """x86_64 or aarch64; arm64 on macOS."""
    platform: str | None = None
    """The platform whose runner the device runs; see devices.platform."""
    cores: int | None = None
    memory_bytes: int | None = None
    swap_bytes: int | None = None
    """Swap space, compressed memory included; None on macOS, where it grows with need."""
    glibc: str | None = None
    """Version of the GNU C library; None if the system has another."""
    glibcxx: str | None = None
    """The largest GLIBCXX version of the symbols in libstdc++, such as 3.4.30."""
    sme: bool | None = None
    """Whether the processor has SME of any version, by the operating system or, if it was run, by the runner."""
    sme2: bool | None = None
    sme_units: int | None = None
    """Units of SME that threads on fast cores share, one for each cluster of them; macOS only, see docs/sme.md."""


def read_facts(device: Device) -> Facts:
    """Read what the device is; raises DeviceError if it does not answer or its system is not supported."""
    printed = parse_sections(run_script(device, "facts"))
    if (system := printed.get("system", "")) not in _READERS:
        name = system if len(system) <= _MAX_SYSTEM_CHARS else f"{system[:_MAX_SYSTEM_CHARS]}..."
        raise DeviceError(device.name, f"its system reads {name!r}", "the farm measures on linux, macos and android")
    return parse_facts(printed, device.platform)


def parse_sections(text: str) -> dict[str, str]:
    """Split the output of a script that uses `scripts/sections.sh` into key -> the stripped text below it.

    A second line `@key` is text: what a command prints never replaces an earlier section.
    """
    texts: dict[str, str] = {}
    key = ""
    for line in text.splitlines():
        if re.fullmatch(r"@[a-z0-9]+", line) and line[1:] not in texts:
            key = line[1:]
            texts[key] = ""
        else:
            texts[key] = texts.get(key, "") + line + "\n"
    return {key: value.strip() for key, value in texts.items()}


def parse_facts(printed: dict[str, str], platform: str | None) -> Facts:
    """Return the facts from the sections that a device printed; `platform` overrides the platform of its programs."""
    system, machine = printed["system"], printed.get("arch", "")
    arch = machine if system == "macos" else _ARCHES.get(machine, machine)
    if not re.fullmatch(r"\w{1,32}", arch, re.ASCII):
        arch = ""
    fields: dict[str, Any] = {
        "os": system,
        "arch": arch or None,
        "hostname": printed.get("hostname") or None,
        "platform": f"{system}-{'arm64' if arch == 'aarch64' and system != 'linux' else arch}" if arch else None,
        **_READERS[system](printed),
    }
    for key, value in fields.items():
        fields[key] = value[:_MAX_CHARS] if isinstance(value, str) else value
    facts = Facts(**fields)
    if platform and platform != facts.platform:
        # Programs run through a launcher, whose processor and libraries are not those that the device reports.
        has = False if platform in WITHOUT_SME else None
        unknown = dict.fromkeys(("glibc", "glibcxx"))
        return facts.model_copy(update={"platform": platform, "sme": has, "sme2": has, "sme_units": None, **unknown})
    return facts


def _parse_linux(printed: dict[str, str]) -> dict[str, Any]:
    release = dict(re.findall(r'^([A-Z_]+)="?(.*?)"?$', printed.get("release", ""), re.MULTILINE))
    return {
        **_parse_proc(printed),
        "os_version": release.get("PRETTY_NAME"),
        "model": printed.get("devicetree") or printed.get("product") or None,
        "soc": _field(printed.get("cpuinfo", ""), "model name", "Hardware"),
        "serial": None,
        "build": printed.get("kernel") or None,
        "glibc": _largest_version(printed.get("glibc", ""), r"^glibc ([0-9.]+)$"),
        "glibcxx": _largest_version(printed.get("glibcxx", ""), r"^GLIBCXX_([0-9.]+)$"),
    }


def _parse_android(printed: dict[str, str]) -> dict[str, Any]:
    properties = dict(re.findall(r"^\[([^\]\n]*)\]: \[(.*)\]$", printed.get("getprop", ""), re.MULTILINE))
    return {
        **_parse_proc(printed),
        "os_version": properties.get("ro.build.version.release") or None,
        "model": properties.get("ro.product.model") or None,
        "soc": properties.get("ro.soc.model") or properties.get("ro.board.platform") or None,
        "serial": properties.get("ro.serialno") or None,
        "build": properties.get("ro.build.fingerprint") or None,
    }


def _parse_macos(printed: dict[str, str]) -> dict[str, Any]:
    settings = dict(re.findall(r"^([\w.]+): (.*)$", printed.get("sysctl", ""), re.MULTILINE))
    version = dict(re.findall(r"^(\w+):\s*(.*)$", printed.get("version", ""), re.MULTILINE))
    return {
        "os_version": version.get("ProductVersion"),
        "model": settings.get("hw.model"),
        "soc": settings.get("machdep.cpu.brand_string"),
        "cores": _number(settings.get("hw.ncpu"), _MAX_CORES),
        "memory_bytes": _number(settings.get("hw.memsize")),
        "sme": printed.get("sme") == "1",
        "sme2": printed.get("sme2") == "1",
        "sme_units": _fast_clusters(settings) if printed.get("sme") == "1" else None,
        "serial": None,
        "build": version.get("BuildVersion"),
    }


def _fast_clusters(settings: dict[str, str]) -> int | None:
    """Return the number of clusters of fast cores: those of the first level, by how many share a second-level cache."""
    cores = _number(settings.get("hw.perflevel0.physicalcpu"), _MAX_CORES)
    of_cluster = _number(settings.get("hw.perflevel0.cpusperl2"), _MAX_CORES)
    return math.ceil(cores / of_cluster) if cores and of_cluster else None


def _parse_proc(printed: dict[str, str]) -> dict[str, Any]:
    """Return the facts that Linux and Android both report in /proc."""
    features = _field(printed.get("cpuinfo", ""), "Features")
    x86 = _ARCHES.get(printed.get("arch", "")) == "x86_64"
    return {
        "cores": _number(printed.get("cores"), _MAX_CORES),
        "memory_bytes": _meminfo_bytes(printed, "MemTotal"),
        "swap_bytes": _meminfo_bytes(printed, "SwapTotal"),
        **{name: name in features.split() if features else (False if x86 else None) for name in ("sme", "sme2")},
    }


def _meminfo_bytes(printed: dict[str, str], name: str) -> int | None:
    """Return a size of /proc/meminfo in bytes."""
    words = (_field(printed.get("memory", ""), name) or "").split()
    kilobytes = _number(words[0], 2**53) if words else None
    return None if kilobytes is None else kilobytes * 1024


def _field(text: str, *names: str) -> str | None:
    """Return the value in the line `name: value` of the first of `names` that has one; None if it is empty."""
    for name in names:
        if match := re.search(rf"^{name}\s*: *(.*)$", text, re.MULTILINE):
            return match[1].strip() or None
    return None


def _largest_version(text: str, pattern: str) -> str | None:
    """Return the largest version of two to four numbers below 100,000 that a pattern finds; None without one."""
    versions = [
        each for each in re.findall(pattern, text, re.MULTILINE) if re.fullmatch(r"\d{1,5}(\.\d{1,5}){1,3}", each)
    ]
    return max(versions, key=lambda version: [int(part) for part in version.split(".")], default=None)


def _number(text: str | None, largest: int = 2**63 - 1) -> int | None:
    """Return a number that fits its column in the warehouse; None for everything else."""
    digits = (text or "").strip()
    value = int(digits) if re.fullmatch(r"[0-9]{1,19}", digits) else None
    return value if value is not None and value <= largest else None


_READERS = {"android": _parse_android, "macos": _parse_macos, "linux": _parse_linux}
