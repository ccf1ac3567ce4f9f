"""Where an SSH host is: the inventory's words and OpenSSH's own configuration, made one."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from devices.errors import DeviceRefused

_ANSWER_S = 10.0


@dataclass(frozen=True)
class SshAddress:
    """Where a host is, as the inventory says it; what is None comes from ssh_config or OpenSSH's defaults."""

    address: str
    port: int | None = None
    user: str | None = None
    identity_file: Path | None = None
    known_hosts: Path | None = None
    ssh_config: Path | None = None
    proxy_jump: str | None = None


@dataclass(frozen=True)
class Hop:
    """One host to connect to, everything resolved.

    `key_name` is what known_hosts calls it, `known_hosts` the files to look in, the person's own first; `jump` is the
    ProxyJump text that leads to it, if any.
    """

    host: str
    port: int
    user: str
    identities: list[Path]
    key_name: str
    known_hosts: list[Path]
    jump: str | None


def resolve(name: str, where: SshAddress) -> Hop:
    """What the inventory and ssh_config together say of a host. DeviceRefused if they cannot be followed.

    OpenSSH itself reads its configuration (`ssh -G`), so the farm goes where a person's `ssh` goes.
    """
    said = _openssh_settings(name, where)
    jump = where.proxy_jump or said.get("proxyjump", ["none"])[0]
    if jump == "none" and said.get("proxycommand", ["none"])[0] != "none":
        raise DeviceRefused(name, f"ssh_config reaches {where.address} by ProxyCommand", "use ProxyJump instead")
    identities = [Path(word).expanduser() for word in said["identityfile"]]
    if where.identity_file is not None:
        identities = [where.identity_file.expanduser()]
        if not identities[0].is_file():
            raise DeviceRefused(name, f"there is no private key {identities[0]}", "correct its `identity_file`")
    files = _files(said["userknownhostsfile"][0]) + _files(said["globalknownhostsfile"][0])
    return Hop(
        host=said["hostname"][0],
        port=int(said["port"][0]),
        user=said["user"][0],
        identities=[path for path in identities if path.is_file()],
        key_name=said.get("hostkeyalias", said["hostname"])[0],
        known_hosts=[where.known_hosts.expanduser()] if where.known_hosts else files,
        jump=None if jump == "none" else jump,
    )


def _openssh_settings(name: str, where: SshAddress) -> dict[str, list[str]]:
    """Setting -> its values, as OpenSSH reads them from its configuration and our words."""
    words = ["ssh", "-G"]
    for option, value in (("-F", where.ssh_config), ("-p", where.port), ("-l", where.user)):
        words += [option, str(value)] if value is not None else []
    try:
        asked = subprocess.run([*words, "--", where.address], capture_output=True, text=True, timeout=_ANSWER_S)
    except FileNotFoundError:
        raise DeviceRefused(name, "there is no `ssh` on this machine to read ssh_config", "install openssh") from None
    except subprocess.TimeoutExpired:
        raise DeviceRefused(name, "`ssh -G` does not end", "look for a `Match exec` in ssh_config") from None
    if asked.returncode != 0:
        raise DeviceRefused(name, f"ssh_config cannot be followed ({asked.stderr.strip()})", "correct that file")
    settings: dict[str, list[str]] = {}
    for line in asked.stdout.splitlines():
        key, _, value = line.partition(" ")
        settings.setdefault(key.lower(), []).append(value)
    return settings


def _files(words: str) -> list[Path]:
    """The files of a setting: one path with blanks in it, or several."""
    whole = Path(words).expanduser()
    return [whole] if whole.is_file() else [Path(word).expanduser() for word in words.split()]
