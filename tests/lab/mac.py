"""A Mac of the lab as seen over SSH: a real sshd, a Mac's paths and tools, no /proc and none of Linux's tools.

Its programs are Debian's, so GNU-only options work here but not on a Mac. It runs the runner for Linux, which needs
/proc and /sys: they are visible to a group that only the launcher /usr/local/bin/linux gives.
"""

import os
import shutil
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from tests.lab.lab_device import HERE, LabDevice, inside, install, write, write_processors
from tests.lab.packages import Packages

USER = "lab"
_UID, _GID = 501, 20
_LINUX_GID = 76
_PRIVATE = "usr/libexec/etfarm-lab"

# The packages' programs that a Mac has too. Deliberately missing: setsid, sha256sum, timeout, nproc, taskset, free.
_TOOLS = (
    "[ awk bash basename cat chmod chown cksum cp cut date dd df dirname du echo env expr false find fold grep "
    "gunzip gzip head hostname id install kill link ln ls mkdir mkfifo mktemp mv nice nl nohup od paste perl printf "
    "pwd readlink realpath rm rmdir sed seq shasum sleep sort split stat stty sync tail tar tee test touch tr true "
    "truncate tty uniq unlink uptime wc which who whoami xargs yes"
)

_SSHD = """# One account, keys only; enough sessions for every test.
Port {port}
HostKey /etc/ssh/host_key
AuthorizedKeysFile /etc/ssh/authorized_keys
AllowUsers lab
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
PidFile none
MaxSessions 100
MaxStartups 100
PerSourcePenalties no
ClientAliveInterval 5
ClientAliveCountMax 3
Subsystem sftp internal-sftp
SetEnv {environment}
"""

_LAUNCHER = """#!/bin/sh
# Stand-in of the virtual lab for a program that runs other systems' programs on a Mac: `linux COMMAND...`
exec /{folder}/setpriv --regid={group} --keep-groups -- "$@"
"""

_SYSCTL = """hw.model: {model}
hw.memsize: {memory_bytes}
hw.ncpu: {cores}
hw.optional.arm.FEAT_SME: 0
hw.optional.arm.FEAT_SME2: 0
kern.boottime: {{ sec = {boot_s}, usec = 0 }} virtual lab
kern.bootsessionuuid: {boot}
machdep.cpu.brand_string: {soc} (stand-in)
vm.swapusage: total = 0.00M  used = 0.00M  free = 0.00M  (encrypted)
"""


@dataclass(frozen=True)
class Mac(LabDevice):
    """A Mac that reports `model` and `soc`, and no SME2: the machine under it has none."""

    model: str
    soc: str

    @property
    def keys(self) -> Path:
        return self.root / "etc/ssh"

    @property
    def proc(self) -> str:
        """In the lab's private folder: only the stand-ins use it."""
        return f"{_PRIVATE}/proc"

    def trees(self, packages: Packages) -> dict[Path, str]:
        """The packages' libraries where programs expect them, their programs in the lab's private folder."""
        usr = packages.tree("mac-amd64") / "usr"
        return {
            usr / "lib": "usr/lib",
            usr / "lib64": "usr/lib64",
            usr / "share": "usr/share",
            usr / "bin": f"{_PRIVATE}/bin",
            usr / "sbin": f"{_PRIVATE}/sbin",
        }

    def daemon(self) -> list[str]:
        command = [f"/{_PRIVATE}/sbin/sshd", "-D", "-e", "-f", "/etc/ssh/sshd_config"]
        return [*inside(self.root, {"PATH": "/usr/bin"}), *command]

    def furnish(self, packages: Packages) -> None:
        """Write a Mac's tools and its account; SshAccess adds the keys, `on_boot` sshd's configuration."""
        programs = self.root / "usr/bin"
        programs.mkdir(parents=True)
        for tool in _TOOLS.split():
            packaged = "gawk" if tool == "awk" else tool
            (programs / tool).symlink_to(f"/{_PRIVATE}/bin/{packaged}")
        (programs / "sh").symlink_to(f"/{_PRIVATE}/bin/bash")
        install(HERE / "mac", programs)
        (self.root / "usr/sbin").mkdir()
        links = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64", "var/tmp": "../tmp"}
        (self.root / "var").mkdir()
        for name, target in links.items():
            (self.root / name).symlink_to(target)
        self._write_accounts()
        for folder in (self.keys, self.root / "run/sshd"):
            folder.mkdir(parents=True)
        self._hide_linux(packages)

    def _write_accounts(self) -> None:
        accounts = f"root:x:0:0::/:/bin/sh\nsshd:x:75:75::/:/bin/sh\n{USER}:x:{_UID}:{_GID}::/Users/{USER}:/bin/bash\n"
        write(self.root / "etc/passwd", accounts)
        write(self.root / "etc/shadow", "".join(f"{name}:*:::::::\n" for name in ("root", "sshd", USER)), 0o600)
        write(self.root / "etc/group", f"wheel:x:0:\nstaff:x:{_GID}:\nsshd:x:75:\n")
        home = self.root / "Users" / USER
        home.mkdir(parents=True)
        os.chown(home, _UID, _GID)

    def _hide_linux(self, packages: Packages) -> None:
        """Put /proc and /sys behind a folder that only the launcher's group may enter."""
        hidden = self.root / _PRIVATE / "linux"
        hidden.mkdir(mode=0o750)
        os.chown(hidden, 0, _LINUX_GID)
        (hidden / "proc").symlink_to("../proc")
        write_processors(hidden / "sys")
        for name in ("proc", "sys"):
            (self.root / name).symlink_to(f"/{_PRIVATE}/linux/{name}")
        launcher = self.root / _PRIVATE / "setpriv"
        shutil.copyfile(packages.tree("mac-amd64") / "usr/bin/setpriv", launcher)
        os.chown(launcher, 0, _LINUX_GID)
        launcher.chmod(0o2755)
        script = _LAUNCHER.format(folder=_PRIVATE, group=_LINUX_GID)
        write(self.root / "usr/local/bin/linux", script, 0o755)

    def on_boot(self) -> None:
        """Write sshd's configuration, which has the sessions' environment, and the time and id of this start."""
        settings = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", **self.skewed_clock()}
        words = " ".join(f"{name}={value}" for name, value in settings.items())
        write(self.root / "etc/ssh/sshd_config", _SSHD.format(port=self.port, environment=words))
        memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        machine = {"model": self.model, "soc": self.soc, "cores": os.cpu_count() or 1, "memory_bytes": memory_bytes}
        start = {"boot": str(uuid.uuid4()).upper(), "boot_s": int(time.time())}
        write(self.root / _PRIVATE / "sysctl.txt", _SYSCTL.format_map(machine | start))
