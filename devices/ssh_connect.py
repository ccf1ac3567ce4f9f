"""How a connection to an SSH host comes to be: ssh_config, ProxyJump, keys, and host keys that are never guessed."""

import getpass
import logging
import shlex
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import paramiko
from paramiko.common import MSG_CHANNEL_REQUEST

from devices.device import DeviceLost, DeviceRefused

# Every error leaves as one of ours; paramiko's own log would add its stack traces to the terminal.
logging.getLogger("paramiko").setLevel(logging.CRITICAL)

CONNECT_S = 8.0
AUTHENTICATE_S = 15.0
# Of the ciphers that both ends know, this one costs the least; without it large files take twice as long.
_FIRST_CIPHER = "aes128-gcm@openssh.com"
# <netinet/tcp.h> of macOS: seconds of unanswered retransmissions until a connection is dropped.
_MACOS_TCP_RXT_CONNDROPTIME = 0x80


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
    """One host to connect to, everything resolved; `jump` is the ProxyJump text that leads to it, if any."""

    host: str
    port: int
    user: str
    identities: list[Path]
    only_identities: bool
    known_hosts: Path
    jump: str | None


@dataclass
class Connection:
    """An authenticated transport and the clients that carry it, the last hop first."""

    transport: paramiko.Transport
    clients: list[paramiko.SSHClient] = field(default_factory=list)

    def close(self) -> None:
        """End every hop."""
        for client in self.clients:
            client.close()


def resolve(name: str, where: SshAddress) -> Hop:
    """What the inventory and ssh_config together say of a host. DeviceRefused if they cannot be followed."""
    config = _config(name, where.ssh_config)
    entry = config.lookup(where.address)
    jump = where.proxy_jump or entry.get("proxyjump")
    if not jump and entry.get("proxycommand", "none") != "none":
        raise DeviceRefused(name, f"ssh_config reaches {where.address} by ProxyCommand", "use ProxyJump instead")
    listed = [Path(word).expanduser() for word in entry.get("identityfile", [])]
    if where.identity_file is not None:
        listed = [where.identity_file.expanduser()]
        if not listed[0].is_file():
            raise DeviceRefused(name, f"there is no private key {listed[0]}", "correct its `identity_file`")
    files = entry.get("userknownhostsfile", "~/.ssh/known_hosts").split()
    return Hop(
        host=entry["hostname"],
        port=where.port or int(entry.get("port", 22)),
        user=where.user or entry.get("user") or getpass.getuser(),
        identities=[path for path in listed if path.is_file()],
        only_identities=where.identity_file is not None or entry.get("identitiesonly", "no") == "yes",
        known_hosts=(where.known_hosts or Path(files[0])).expanduser(),
        jump=None if jump in (None, "none") else jump,
    )


def connect(name: str, where: SshAddress) -> Connection:
    """Open and authenticate a connection, through its jump hosts if it has any.

    DeviceLost if a host cannot be reached, DeviceRefused if it or we say no; both in words for a person.
    """
    hop = resolve(name, where)
    through = None
    if hop.jump:
        earlier, _, last = hop.jump.rpartition(",")
        through = connect(name, _jump_address(last, earlier, where))
    try:
        client = _enter(name, hop, lambda: _socket(hop, through))
    except BaseException:
        if through:
            through.close()
        raise
    transport = client.get_transport()
    if transport is None:
        raise DeviceLost(name, f"the connection to {hop.host} ended as it began")
    return Connection(transport, [client, *(through.clients if through else [])])


def _config(name: str, path: Path | None) -> paramiko.SSHConfig:
    chosen = (path or Path("~/.ssh/config")).expanduser()
    if path is None and not chosen.is_file():
        return paramiko.SSHConfig()
    try:
        return paramiko.SSHConfig.from_path(str(chosen))
    except (OSError, paramiko.SSHException, UnicodeDecodeError) as error:
        raise DeviceRefused(name, f"cannot read {chosen} ({error})", "correct that file") from None


def _jump_address(word: str, earlier: str, where: SshAddress) -> SshAddress:
    """`[user@]host[:port]` of a ProxyJump; keys and files are those of the host behind it."""
    user, _, place = word.strip().removeprefix("ssh://").rpartition("@")
    host, _, port = place.rpartition(":") if place.rpartition(":")[2].isdigit() else (place, "", "")
    return SshAddress(
        address=host,
        port=int(port) if port else None,
        user=user or None,
        identity_file=where.identity_file,
        known_hosts=where.known_hosts,
        ssh_config=where.ssh_config,
        proxy_jump=earlier or None,
    )


def _socket(hop: Hop, through: Connection | None) -> socket.socket | paramiko.Channel:
    """A stream to the host: our own socket, which notices a cut within seconds, or a channel through a jump host."""
    if through:
        here = ("127.0.0.1", 0)
        return through.transport.open_channel("direct-tcpip", (hop.host, hop.port), here, timeout=CONNECT_S)
    stream = socket.create_connection((hop.host, hop.port), CONNECT_S)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 2)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    if sys.platform == "darwin":
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPALIVE, 3)
        stream.setsockopt(socket.IPPROTO_TCP, _MACOS_TCP_RXT_CONNDROPTIME, 8)
    else:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 3)
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 8000)
    return stream


def _enter(name: str, hop: Hop, open_stream: Callable[[], socket.socket | paramiko.Channel]) -> paramiko.SSHClient:
    client = paramiko.SSHClient()
    place = f"{hop.user}@{hop.host}:{hop.port}"
    try:
        if hop.known_hosts.is_file():
            client.load_host_keys(str(hop.known_hosts))
        client.set_missing_host_key_policy(_RefuseUnknown(name, hop))
        client.connect(
            hop.host,
            hop.port,
            hop.user,
            key_filename=[str(path) for path in hop.identities],  # type: ignore[arg-type] # lists are documented
            look_for_keys=not hop.only_identities,
            sock=open_stream(),
            timeout=CONNECT_S,
            banner_timeout=CONNECT_S,
            auth_timeout=AUTHENTICATE_S,
            channel_timeout=CONNECT_S,
            transport_factory=_transport,
        )
    except paramiko.BadHostKeyException as error:
        client.close()
        raise _changed_key(name, hop, error) from None
    except paramiko.PasswordRequiredException:
        client.close()
        keys = " ".join(str(path) for path in hop.identities)
        raise DeviceRefused(name, "its private key is locked", f"run `ssh-add {keys}` and try again") from None
    except paramiko.AuthenticationException as error:
        client.close()
        way_on = f"check that `ssh {hop.user}@{hop.host} -p {hop.port}` works without a password"
        raise DeviceRefused(name, f"{place} accepts none of our keys ({error})", way_on) from None
    except (OSError, EOFError, paramiko.SSHException) as error:
        client.close()
        raise DeviceLost(name, f"cannot reach {place} ({error or type(error).__name__})") from None
    except BaseException:
        client.close()
        raise
    return client


class _RefuseUnknown(paramiko.RejectPolicy):
    """Refuses a host that known_hosts does not name, with the command that adds it."""

    def __init__(self, name: str, hop: Hop) -> None:
        self._name = name
        self._hop = hop

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> NoReturn:
        """See paramiko.MissingHostKeyPolicy."""
        hop = self._hop
        cause = f"the host key of {hop.host}:{hop.port} ({_fingerprint(key)}) is not in {hop.known_hosts}"
        raise DeviceRefused(self._name, cause, f"if that is its key, accept it with `{_accept(hop)}`")


def _accept(hop: Hop) -> str:
    file = shlex.quote(str(hop.known_hosts))
    if hop.jump:  # ssh-keyscan knows no jump hosts
        options = f"-o UserKnownHostsFile={file} -J {shlex.quote(hop.jump)}"
        return f"ssh {options} -p {hop.port} {shlex.quote(f'{hop.user}@{hop.host}')} true"
    return f"ssh-keyscan -p {hop.port} {shlex.quote(hop.host)} >> {file}"


def _changed_key(name: str, hop: Hop, error: paramiko.BadHostKeyException) -> DeviceRefused:
    entry = hop.host if hop.port == 22 else f"[{hop.host}]:{hop.port}"
    forget = f"ssh-keygen -R {shlex.quote(entry)} -f {shlex.quote(str(hop.known_hosts))}"
    cause = f"the host key of {hop.host}:{hop.port} changed to {_fingerprint(error.key)}"
    expected = f"{cause}, expected {_fingerprint(error.expected_key)}"
    way_on = f"find out why; if the new key is right, accept it with `{forget} && {_accept(hop)}`"
    return DeviceRefused(name, expected, way_on)


def _fingerprint(key: paramiko.PKey) -> str:
    return f"{key.get_name()} {key.fingerprint}"


def _transport(*arguments: object, **options: object) -> paramiko.Transport:
    transport = _Transport(*arguments, **options)  # type: ignore[arg-type]
    security = transport.get_security_options()
    security.ciphers = sorted(security.ciphers, key=lambda cipher: cipher != _FIRST_CIPHER)
    return transport


def _note_exit_signal(channel: paramiko.Channel, message: paramiko.Message) -> None:
    """Keep the signal that ended a command on its channel: paramiko itself passes over it."""
    position = message.packet.tell()
    if message.get_text() == "exit-signal":
        message.get_boolean()
        channel.exit_signal = message.get_text()  # type: ignore[attr-defined]
        return
    message.packet.seek(position)
    channel._handle_request(message)  # type: ignore[attr-defined]


class _Transport(paramiko.Transport):
    _channel_handler_table = {  # noqa: RUF012 (paramiko's own shape)
        **paramiko.Transport._channel_handler_table,  # type: ignore[attr-defined]
        MSG_CHANNEL_REQUEST: _note_exit_signal,
    }
