"""An Android phone of the lab: the real adbd, mksh and toybox as uid 2000, and stand-ins for Android's other tools."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.lab.lab_device import HERE, LabDevice, inside, install, write, write_processors
from tests.lab.packages import Packages, own_loader

_SHELL_UID = 2000

# qemu's name for a processor with SME2 and 64-byte vectors in streaming mode.
_CPU = "max,sme512=on"

_BATTERY = """Current Battery Service state:
  USB powered: true
  status: 2
  level: 92
  temperature: 295
"""

_THERMAL = """IsStatusOverride: false
Thermal Status: 0
HAL Ready: true
Current temperatures from HAL:
	Temperature{mValue=38.5, mType=0, mName=BIG, mStatus=0}
	Temperature{mValue=29.5, mType=3, mName=VIRTUAL-SKIN, mStatus=0}
Current cooling devices from HAL:
	CoolingDevice{mValue=0, mType=2, mName=thermal-cpufreq-0}
"""


@dataclass(frozen=True)
class Phone(LabDevice):
    """A phone; `abi` is x86_64, or arm64-v8a, which runs under qemu with SME2."""

    abi: str

    @property
    def is_emulated(self) -> bool:
        return self.abi != "x86_64"

    @property
    def proc(self) -> str:
        return "proc"

    def trees(self, packages: Packages) -> dict[Path, str]:
        return {packages.tree("phone-arm64" if self.is_emulated else "phone-amd64") / "usr": "usr"}

    def daemon(self) -> list[str]:
        settings = {
            "PATH": "/system/bin", "HOME": "/", "SHELL": "/system/bin/sh", "ANDROID_DATA": "/data",
            "ANDROID_ROOT": "/system", "TMPDIR": "/data/local/tmp", "ADBD_PORT": str(self.port),
        }  # fmt: skip
        if self.is_emulated:
            settings["QEMU_CPU"] = _CPU
        settings |= self.skewed_clock()
        user = [f"--userspec={_SHELL_UID}:{_SHELL_UID}", "--groups="]
        return [*inside(self.root, settings, *user), "/system/bin/adbd"]

    def furnish(self, packages: Packages) -> None:
        """Write Android's folders: /system with the shell's programs, /data/local/tmp, and a /sys of plain files."""
        system = self.root / "system/bin"
        system.mkdir(parents=True)
        for name, target in _links(packages).items():
            (system / name).symlink_to(target)
        install(HERE / "phone", system)
        for name, target in {"bin": "system/bin", "lib": "usr/lib", "lib64": "usr/lib64"}.items():
            (self.root / name).symlink_to(target)
        write(self.root / "etc/passwd", "root:x:0:0::/:/system/bin/sh\nshell:x:2000:2000::/:/system/bin/sh\n")
        write(self.root / "etc/group", "root:x:0:\nshell:x:2000:\n")
        write(self.root / "system/build.prop", "".join(f"{key}={value}\n" for key, value in self._properties().items()))
        for folder in ("data/local/tmp", "data/local", "data"):
            (self.root / folder).mkdir(parents=True, exist_ok=True)
            os.chown(self.root / folder, _SHELL_UID, _SHELL_UID)
        write_processors(self.root / "sys")
        reports = self.root / "system/etc/dumpsys"
        write(reports / "battery.txt", _BATTERY)
        write(reports / "thermalservice.txt", _THERMAL)
        zone = self.root / "sys/class/thermal/thermal_zone0"
        write(zone / "type", "VIRTUAL-SKIN\n")
        write(zone / "temp", "29500\n")

    def _properties(self) -> dict[str, str]:
        return {
            "ro.etfarm.stand_in": "1",
            "ro.product.model": f"Virtual phone ({self.abi})",
            "ro.soc.model": _CPU if self.is_emulated else "this machine",
            "ro.build.version.release": "14",
            "ro.build.fingerprint": f"etfarm/virtual/{self.abi}:14/LAB/1:userdebug/stand-in",
            "ro.serialno": f"ETFARMLAB{self.number:04}",
        }


def _links(packages: Packages) -> dict[str, str]:
    """Names in /system/bin -> targets; toybox itself lists the commands that it implements."""
    tree = packages.tree("phone-amd64")
    names = subprocess.run(
        [*own_loader(tree), str(tree / "usr/bin/toybox")], capture_output=True, text=True, check=True
    ).stdout.split()
    return {
        **dict.fromkeys(names, "toybox"),
        "toybox": "/usr/bin/toybox",
        "sh": "/usr/bin/mksh",
        "adbd": "/usr/lib/android-sdk/platform-tools/adbd",
    }
