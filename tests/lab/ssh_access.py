"""Keys for the lab's SSH hosts, and the ssh_config that the inventory refers to; new for every lab."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from tests.lab import journal
from tests.lab.mac import USER, Mac
from tests.lab.packages import Packages, own_loader

_KEY = "id_ed25519"
_CONFIG = "ssh_config"


class SshAccess:
    """Keys and ssh_config in `folder`, lab/ of the data folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.keys = self.folder / "ssh"
        self.config = self.folder / _CONFIG

    def is_of_this_lab(self) -> bool:
        return journal.is_noted("path", str(self.config))

    def claim(self) -> None:
        """Note in the journal, first of all, that a new lab belongs to this folder; remove an old ssh_config."""
        for path in (self.keys, self.config):
            journal.note("path", str(path))
        self.config.unlink(missing_ok=True)

    def give(self, macs: Sequence[Mac], packages: Packages) -> None:
        """Make the keys and allow the user's on every Mac, unless ssh_config exists, which is written last."""
        if self.config.exists():
            return
        shutil.rmtree(self.keys, ignore_errors=True)
        self.keys.mkdir(parents=True, mode=0o700)
        public = _make_key(self.keys / _KEY, packages, "etfarm virtual lab")
        known, entries = "", "# Written by the virtual lab's `up`, removed by its `down`.\n"
        for mac in macs:
            host_key = _make_key(mac.keys / "host_key", packages, mac.name)
            (mac.keys / "authorized_keys").write_text(f"{public}\n", encoding="utf-8")
            known += f"{mac.address} {host_key}\n"
            entries += "\n" + host_entry(mac.name, mac.address, mac.port, USER, self.keys)
        (self.keys / "known_hosts").write_text(known, encoding="utf-8")
        self.config.write_text(entries, encoding="utf-8")
        _hand_over([self.folder.parent, self.folder, self.keys, *self.keys.iterdir(), self.config])


def host_entry(name: str, address: str, port: int, user: str, keys: Path) -> str:
    return f"""Host {name}
    HostName {address}
    Port {port}
    User {user}
    IdentityFile "{keys}/{_KEY}"
    IdentitiesOnly yes
    UserKnownHostsFile "{keys}/known_hosts"
    GlobalKnownHostsFile none
    StrictHostKeyChecking yes
"""


def _make_key(path: Path, packages: Packages, comment: str) -> str:
    """Make a key pair at `path` and return its public half (type and key, without the comment)."""
    tree = packages.tree("mac-amd64")
    path.unlink(missing_ok=True)
    program = [*own_loader(tree), str(tree / "usr/bin/ssh-keygen")]
    journal.run_tool(*program, "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", path)
    return " ".join(path.with_name(f"{path.name}.pub").read_text(encoding="utf-8").split()[:2])


def _hand_over(paths: list[Path]) -> None:
    """Give files that root made to the user who called sudo, and who runs the farm."""
    if caller := os.environ.get("SUDO_UID"):
        for path in paths:
            if path.stat().st_uid == 0:
                os.chown(path, int(caller), int(os.environ.get("SUDO_GID", "-1")))
