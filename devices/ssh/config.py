"""The address of an SSH host, combined from the inventory and OpenSSH's configuration."""

import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from devices import retry
from devices.errors import DeviceRefused

SSH_PORT = 22


# The keys that an SSH host has as a device and as the host of a phone.
Port = Annotated[
    Annotated[int, Field(ge=1, le=65535)] | None,
    Field(description="TCP port of sshd. Default: that of ssh_config, usually 22.", examples=[2222]),
]
User = Annotated[
    str | None, Field(description="User to log in as. Default: that of ssh_config, or yours.", examples=["farm"])
]
IdentityFile = Annotated[
    Path | None,
    Field(
        description="Private key. Default: that of ssh_config, then the agent and ~/.ssh.",
        examples=["~/.ssh/id_farm"],
    ),
]
KnownHosts = Annotated[
    Path | None,
    Field(
        description="File of host keys. Default: that of ssh_config, usually ~/.ssh/known_hosts.",
        examples=["/srv/etfarm/known_hosts"],
    ),
]
SshConfig = Annotated[
    Path | None,
    Field(description="OpenSSH configuration. Default: ~/.ssh/config.", examples=["/srv/etfarm/ssh_config"]),
]
ProxyJump = Annotated[
    str | None,
    Field(
        description="Host through which the host is reached: [user@]host[:port], or an alias of ssh_config.",
        examples=["lab@gate.example.org:2222"],
    ),
]


class SshAddress(BaseModel):
    """Where a host is; also the text `[user@]host[:port]`. None: as in ssh_config, or OpenSSH's default."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    address: str = Field(
        min_length=1, description="Host name or alias of ssh_config.", examples=["bench-7.example.org"]
    )
    port: Port = None
    user: User = None
    identity_file: IdentityFile = None
    known_hosts: KnownHosts = None
    ssh_config: SshConfig = None
    proxy_jump: ProxyJump = None

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        """Return what an editor accepts: the keys, or a text instead of them."""
        return {"anyOf": [{"type": "string"}, handler(schema)]}

    @model_validator(mode="before")
    @classmethod
    def _from_words(cls, written: Any) -> Any:
        return parse_address(written) if isinstance(written, str) else written


def parse_address(words: str) -> dict[str, Any]:
    """Return the keys `address`, `user` and `port` that `[user@]host[:port]` states."""
    user, _, host_and_port = words.strip().removeprefix("ssh://").rpartition("@")
    host, _, port = (
        host_and_port.rpartition(":") if host_and_port.rpartition(":")[2].isdigit() else (host_and_port, "", "")
    )
    return {"address": host, **({"user": user} if user else {}), **({"port": int(port)} if port else {})}


@dataclass(frozen=True)
class Hop:
    """One host to connect to, with all settings resolved.

    `key_name` is its name in known_hosts, `known_hosts` the files to search, the user's first; `jump` is the ProxyJump
    setting, if any.
    """

    host: str
    port: int
    user: str
    identities: list[Path]
    key_name: str
    known_hosts: list[Path]
    jump: str | None

    @property
    def key_port(self) -> int:
        """The port of the host's entry in known_hosts: entries by alias have none, which is 22."""
        return self.port if self.key_name == self.host else SSH_PORT

    @property
    def entry(self) -> str:
        """The name of the host's entry in known_hosts."""
        return self.key_name if self.key_port == SSH_PORT else f"[{self.key_name}]:{self.key_port}"

    @property
    def accept_command(self) -> str:
        """A command that shows the fingerprint of the host key and asks whether to accept it."""
        file = shlex.quote(str(self.known_hosts[0]))
        alias = f"-o HostKeyAlias={shlex.quote(self.key_name)} " if self.key_name != self.host else ""
        through = f"-J {shlex.quote(self.jump)} " if self.jump else ""
        login = shlex.quote(f"{self.user}@{self.host}")
        return f"ssh -o UserKnownHostsFile={file} {alias}{through}-p {self.port} {login} true"


def resolve(name: str, where: SshAddress) -> Hop:
    """Resolve a host with the inventory and ssh_config; raises DeviceRefused if they cannot be evaluated.

    OpenSSH reads its configuration itself (`ssh -G`), so the farm connects to the same host as the user's `ssh`;
    paramiko.SSHConfig supports neither `Include` nor OpenSSH's defaults.
    """
    words = ["ssh", "-G"]
    for option, value in (("-F", where.ssh_config), ("-p", where.port), ("-l", where.user)):
        words += [option, str(value)] if value is not None else []
    try:
        ended = subprocess.run(
            [*words, "--", where.address], capture_output=True, text=True, timeout=retry.SSH_CONFIG.timeout_s
        )
    except FileNotFoundError:
        cause = "`ssh`, which reads ssh_config, is not installed on this machine"
        raise DeviceRefused(name, cause, "install openssh") from None
    except subprocess.TimeoutExpired:
        cause = f"`ssh -G` did not end within {retry.SSH_CONFIG.timeout_s:g} s"
        raise DeviceRefused(name, cause, "check ssh_config for a `Match exec` that hangs") from None
    if ended.returncode != 0:
        raise DeviceRefused(name, f"cannot read ssh_config ({ended.stderr.strip()})", "correct that file")
    settings: dict[str, list[str]] = {}
    for line in ended.stdout.splitlines():
        key, _, setting = line.partition(" ")
        settings.setdefault(key.lower(), []).append(setting)
    return _hop(name, where, settings)


def _hop(name: str, where: SshAddress, settings: dict[str, list[str]]) -> Hop:
    """Return the hop of a host from OpenSSH's settings (lower case -> values) and the inventory's, which win."""
    jump = where.proxy_jump or settings.get("proxyjump", ["none"])[0]
    if jump == "none" and settings.get("proxycommand", ["none"])[0] != "none":
        raise DeviceRefused(name, f"ssh_config reaches {where.address} by ProxyCommand", "use ProxyJump instead")
    identities = [Path(word).expanduser() for word in settings["identityfile"]]
    if where.identity_file is not None:
        identities = [where.identity_file.expanduser()]
        if not identities[0].is_file():
            cause = f"the private key {identities[0]} does not exist"
            raise DeviceRefused(name, cause, "correct its `identity_file`")
    files = _split_paths(settings["userknownhostsfile"][0]) + _split_paths(settings["globalknownhostsfile"][0])
    return Hop(
        host=settings["hostname"][0],
        port=int(settings["port"][0]),
        user=settings["user"][0],
        identities=[path for path in identities if path.is_file()],
        key_name=settings.get("hostkeyalias", settings["hostname"])[0],
        known_hosts=[where.known_hosts.expanduser()] if where.known_hosts else files,
        jump=None if jump == "none" else jump,
    )


def _split_paths(words: str) -> list[Path]:
    """Return the files of a setting: one existing path, which may contain blanks, or several paths."""
    single = Path(words).expanduser()
    return [single] if single.is_file() else [Path(word).expanduser() for word in words.split()]
