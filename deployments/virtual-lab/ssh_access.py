"""Keys for the lab's SSH hosts, made anew at every `up`, and the ssh_config that the inventory refers to."""

import shutil
from pathlib import Path

import journal
from fetch_packages import Packages, own_loader
from mac import USER, Mac

KEY_NAME = "id_ed25519"


def make_key(path: Path, packages: Packages, comment: str) -> str:
    """Make a key pair at `path` and return its public half (type and key, without the comment)."""
    program = packages.tree("mac-amd64") / "usr/bin/ssh-keygen"
    path.unlink(missing_ok=True)
    loader = own_loader(packages.tree("mac-amd64"))
    journal.run_tool(*loader, program, "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", path)
    return " ".join(path.with_name(f"{path.name}.pub").read_text(encoding="utf-8").split()[:2])


def give_access(macs: list[Mac], folder: Path, packages: Packages) -> None:
    """Write `folder`/ssh/ (the user's key, known_hosts) and `folder`/ssh_config, and let the key into every Mac."""
    keys = folder.resolve() / "ssh"
    config = folder.resolve() / "ssh_config"
    journal.note("path", str(config))
    journal.note("path", str(keys))
    shutil.rmtree(keys, ignore_errors=True)
    keys.mkdir(parents=True, mode=0o700)
    public = make_key(keys / KEY_NAME, packages, "etfarm virtual lab")
    known, entries = "", "# Written by the virtual lab's `up`, removed by its `down`.\n"
    for mac in macs:
        host_key = make_key(mac.keys / "host_key", packages, mac.name)
        (mac.keys / "authorized_keys").write_text(f"{public}\n", encoding="utf-8")
        known += f"{mac.address} {host_key}\n"
        entries += _ENTRY.format(mac=mac, user=USER, keys=keys, key=KEY_NAME)
    (keys / "known_hosts").write_text(known, encoding="utf-8")
    config.write_text(entries, encoding="utf-8")


_ENTRY = """
Host {mac.name}
    HostName {mac.address}
    Port {mac.port}
    User {user}
    IdentityFile "{keys}/{key}"
    IdentitiesOnly yes
    UserKnownHostsFile "{keys}/known_hosts"
    GlobalKnownHostsFile none
    StrictHostKeyChecking yes
"""
