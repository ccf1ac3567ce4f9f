"""One device of the lab: a root file system in memory, a daemon in separate namespaces, an address."""

import json
import os
import shutil
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.lab import journal, network
from tests.lab.packages import Packages

HERE = Path(__file__).resolve().parent
DISK_BYTES = 1 << 30


@dataclass(frozen=True)
class LabDevice(ABC):
    """What a phone and a Mac have in common. `number` determines the address and the namespace."""

    name: str
    number: int
    port: int

    @property
    def address(self) -> str:
        return network.address_of(self.number)

    @property
    def folder(self) -> Path:
        return journal.RUN / self.name

    @property
    def root(self) -> Path:
        """Its root file system, in memory as long as the lab is up."""
        return self.folder / "root"

    @property
    def skew(self) -> Path:
        """A file that makes its clock wrong from its next start on."""
        return self.folder / "skew.json"

    @property
    def pid(self) -> int | None:
        return journal.pid_of(self.name)

    @property
    @abstractmethod
    def proc(self) -> str:
        """Path of /proc in its root file system, relative to it."""

    @abstractmethod
    def trees(self, packages: Packages) -> dict[Path, str]:
        """Folders of unpacked packages -> relative paths in its root file system, where they are mounted read-only."""

    @abstractmethod
    def furnish(self, packages: Packages) -> None:
        """Write all other files of its root file system."""

    @abstractmethod
    def daemon(self) -> list[str]:
        """The command of the daemon that makes it reachable, with its complete environment, started inside `root`."""

    def boot(self, packages: Packages) -> None:
        """Start it, unless it is running. Its disk keeps its files until the lab goes down."""
        if self.pid is not None:
            return
        trees = self.trees(packages)
        (self.folder / "binds").write_text("".join(f"{source} {target}\n" for source, target in trees.items()))
        (self.folder / "boot_id").write_text(f"{uuid.uuid4()}\n")
        self.on_boot()
        namespaces = ["--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child"]
        init = [str(HERE / "device-init.sh"), self.name, str(self.root), self.proc, *self.daemon()]
        isolated = ["ip", "netns", "exec", network.namespace_of(self.number), "unshare", *namespaces]
        journal.start(self.name, [*isolated, "sh", *init])

    def skewed_clock(self) -> dict[str, str]:
        """Environment that makes its programs see another date, also in files' timestamps; usually empty."""
        return dict(json.loads(self.skew.read_text(encoding="utf-8"))) if self.skew.exists() else {}

    def on_boot(self) -> None:  # noqa: B027
        """Write the files that change at every start, apart from the boot id."""

    def halt(self) -> None:
        journal.end(self.name)

    def make_disk(self, packages: Packages) -> None:
        if journal.is_mounted(self.root):
            return
        self.root.mkdir(parents=True, exist_ok=True)
        journal.note("mount", str(self.root))
        journal.run_tool("mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES},mode=755", "etfarm-lab", self.root)
        for folder in ("dev", self.proc, "tmp", *self.trees(packages).values()):
            (self.root / folder).mkdir(parents=True, exist_ok=True)
        (self.root / "tmp").chmod(0o1777)
        self.furnish(packages)


def write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)


def install(folder: Path, into: Path) -> None:
    """Install the stand-ins in `folder`, each NAME.sh as the program NAME."""
    for source in sorted(folder.glob("*.sh")):
        write(into / source.stem, source.read_text(encoding="utf-8"), 0o755)


def inside(root: Path, settings: Mapping[str, str], *options: str) -> list[str]:
    variables = [f"{name}={value}" for name, value in settings.items()]
    return ["env", "-i", *variables, shutil.which("chroot") or "chroot", *options, str(root)]


def write_processors(sys: Path) -> None:
    """Write the files of /sys that C libraries and the runner read to count and group cores: those of this machine."""
    cores = os.cpu_count() or 1
    every = f"0-{cores - 1}\n" if cores > 1 else "0\n"
    folder = sys / "devices/system/cpu"
    for name in ("online", "possible", "present"):
        write(folder / name, every)
    write(folder / "kernel_max", f"{cores - 1}\n")
    for core in range(cores):
        topology = folder / f"cpu{core}" / "topology"
        write(topology / "physical_package_id", "0\n")
        write(topology / "core_id", f"{core}\n")
        write(topology / "core_siblings_list", every)
        write(topology / "thread_siblings_list", f"{core}\n")
        frequency = folder / f"cpu{core}" / "cpufreq"
        write(frequency / "scaling_governor", "schedutil\n")
        for kind in ("scaling_cur_freq", "scaling_max_freq", "cpuinfo_max_freq"):
            write(frequency / kind, "2000000\n")
