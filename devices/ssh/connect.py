"""Connect to an SSH host: jump hosts, private keys, and host keys, which must be known."""

import contextlib
import logging
import re
import shlex
import socket
import sys
from dataclasses import dataclass, field
from typing import NoReturn

import paramiko
from paramiko.hostkeys import InvalidHostKey
from pydantic import ValidationError

from devices import retry
from devices.errors import DeviceLost, DeviceRefused
from devices.ssh.config import Hop, SshAddress, parse_address, resolve
from devices.untrusted import excerpt

# Every error is raised as one of ours; paramiko's log would also print stack traces to the terminal.
logging.getLogger("paramiko").setLevel(logging.CRITICAL)

# The fastest cipher that both ends support; without it large files take twice as long.
_FIRST_CIPHER = "aes128-gcm@openssh.com"
_JUMP = "jump host: "
# <netinet/tcp.h> of macOS: seconds of unanswered retransmissions until a connection is dropped.
_MACOS_TCP_RXT_CONNDROPTIME = 0x80


@dataclass
class Connection:
    """An authenticated transport and its SSH clients, one for each hop, the last hop first."""

    transport: paramiko.Transport
    clients: list[paramiko.SSHClient] = field(default_factory=list)

    def close(self) -> None:
        for client in self.clients:
            client.close()


def connect(name: str, where: SshAddress) -> Connection:
    """Open and authenticate a connection, through jump hosts if any; DeviceLost, or DeviceRefused by a host."""
    hop = resolve(name, where)
    through: Connection | None = None
    with contextlib.ExitStack() as opened:
        if hop.jump:
            through = _connect_jump(name, hop.jump, where)
            opened.callback(through.close)
        client = _connect_hop(name, hop, through)
        opened.callback(client.close)
        transport = client.get_transport()
        if transport is None:
            cause = f"the connection to {hop.host} was closed right after it was opened"
            raise DeviceLost(name, cause, "try again, and read the log of the host's SSH server if it stays so")
        opened.pop_all()  # it stays open
    return Connection(transport, [client, *(through.clients if through else [])])


def _connect_jump(name: str, jump: str, where: SshAddress) -> Connection:
    """Connect to the jump host; an error says that it is one, and names the key of the entry to correct."""
    try:
        return connect(name, _jump_address(name, jump, where))
    except (DeviceLost, DeviceRefused) as error:
        if error.cause.startswith(_JUMP):  # of a jump host before it
            raise
        remedy = re.sub(r"its `(?:address|port|user)`(?: and `port`)?", "its `proxy_jump`", error.remedy)
        raise type(error)(name, f"{_JUMP}{error.cause}", remedy) from None


def _jump_address(name: str, jump: str, where: SshAddress) -> SshAddress:
    """Return the last of the hosts `[user@]host[:port],...`, reached through the others, with the target's keys."""
    earlier, _, last = jump.rpartition(",")
    files = {key: getattr(where, key) for key in ("identity_file", "known_hosts", "ssh_config")}
    try:
        return SshAddress(**parse_address(last), **files, proxy_jump=earlier or None)
    except ValidationError:
        cause = f"`{excerpt(last)}` is not a jump host of the form [user@]host[:port]"
        raise DeviceRefused(name, cause, "correct its `proxy_jump`") from None


def _open_stream(hop: Hop, through: Connection | None) -> socket.socket | paramiko.Channel:
    """Return a stream to the host: a socket that detects a cut link within seconds, or a channel of a jump host."""
    if through:
        here = ("127.0.0.1", 0)
        return through.transport.open_channel(
            "direct-tcpip", (hop.host, hop.port), here, timeout=retry.SSH_CONNECT.timeout_s
        )
    stream = socket.create_connection((hop.host, hop.port), retry.SSH_CONNECT.timeout_s)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    keepalive = retry.SSH_KEEPALIVE
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, int(keepalive.pause_s))
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, int(keepalive.attempts))
    if sys.platform == "darwin":
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPALIVE, int(keepalive.within_s))
        stream.setsockopt(socket.IPPROTO_TCP, _MACOS_TCP_RXT_CONNDROPTIME, int(keepalive.timeout_s))
    else:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, int(keepalive.within_s))
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * keepalive.timeout_s))
    return stream


def _connect_hop(name: str, hop: Hop, through: Connection | None) -> paramiko.SSHClient:
    """Connect to one hop, over `through` if there is one before it, and authenticate."""
    client = paramiko.SSHClient()
    try:
        _load_known_hosts(name, hop, client)
        client.set_missing_host_key_policy(_RefuseUnknown(name, hop))
        client.connect(
            hop.key_name,
            hop.key_port,
            hop.user,
            key_filename=[str(path) for path in hop.identities],  # type: ignore[arg-type] # lists are documented
            look_for_keys=False,
            sock=_open_stream(hop, through),
            timeout=retry.SSH_CONNECT.timeout_s,
            banner_timeout=retry.SSH_CONNECT.timeout_s,
            auth_timeout=retry.SSH_AUTHENTICATE.timeout_s,
            channel_timeout=retry.SSH_CONNECT.timeout_s,
            transport_factory=_transport_with_fast_cipher,
        )
    except (OSError, EOFError, paramiko.SSHException) as error:
        failure = _connection_error(name, hop, client, error)
        client.close()
        raise failure from None
    except BaseException:
        client.close()
        raise
    return client


def _connection_error(name: str, hop: Hop, client: paramiko.SSHClient, error: Exception) -> DeviceLost | DeviceRefused:
    """Return DeviceRefused if the host answered and refused us, DeviceLost if it could not be reached."""
    login = f"{hop.user}@{hop.host}:{hop.port}"
    if isinstance(error, paramiko.BadHostKeyException):
        forget = f"ssh-keygen -R {shlex.quote(hop.entry)} -f {shlex.quote(str(hop.known_hosts[0]))}"
        changed = f"the host key of {hop.host}:{hop.port} changed to {_fingerprint(error.key)}"
        remedy = f"find out why; if the new key is correct, accept it with `{forget} && {_add_key_command(hop)}`"
        return DeviceRefused(name, f"{changed}, expected {_fingerprint(error.expected_key)}", remedy)
    if isinstance(error, paramiko.PasswordRequiredException):
        keys = " ".join(shlex.quote(str(path)) for path in hop.identities)
        return DeviceRefused(name, "its private key has a passphrase", f"run `ssh-add {keys}`, then retry")
    transport = client.get_transport()
    answers = transport is not None and transport.is_active() and transport.initial_kex_done
    if isinstance(error, paramiko.SSHException) and answers and "timeout" not in str(error):
        if not _has_key(hop):
            cause = f"no private key for {login} in a file or an SSH agent"
            return DeviceRefused(name, cause, "set its `identity_file`, or run `ssh-add` with the key's file")
        remedy = f"authorize the key with `{_copy_key_command(hop)}`, or correct its `user` or `identity_file`"
        return DeviceRefused(name, f"{login} does not accept our keys ({error})", remedy)
    return DeviceLost(name, f"cannot reach {login} ({error or type(error).__name__})", _reach_remedy(error))


def _reach_remedy(error: Exception) -> str:
    if isinstance(error, socket.gaierror):
        return "correct its `address`, or add the name to DNS or ssh_config"
    if isinstance(error, ConnectionRefusedError):
        return "start its SSH server (macOS: Remote Login), or correct its `port`"
    if isinstance(error, paramiko.ChannelException):  # of its jump host
        return "check that its jump host reaches it: its power, its network, its SSH server"
    return "check its power and network, and its `address` and `port`"


def _has_key(hop: Hop) -> bool:
    with contextlib.closing(paramiko.Agent()) as agent:
        return bool(hop.identities or agent.get_keys())


def _copy_key_command(hop: Hop) -> str:
    key = ["-i", str(hop.identities[0])] if hop.identities else []
    through = ["-o", f"ProxyJump={hop.jump}"] if hop.jump else []
    return shlex.join(["ssh-copy-id", *key, "-p", str(hop.port), *through, f"{hop.user}@{hop.host}"])


def _load_known_hosts(name: str, hop: Hop, client: paramiko.SSHClient) -> None:
    """Give the client the keys of the files that exist; raises DeviceRefused if one cannot be read."""
    for file in hop.known_hosts:
        try:
            client.get_host_keys().load(str(file))
        except FileNotFoundError:
            continue
        except (OSError, ValueError, InvalidHostKey) as error:
            raise DeviceRefused(name, f"cannot read {file} ({error})", "correct that file") from None


class _RefuseUnknown(paramiko.RejectPolicy):
    """Refuses a host that is not in known_hosts; the message has the command that adds it."""

    def __init__(self, name: str, hop: Hop) -> None:
        self._name = name
        self._hop = hop

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> NoReturn:
        hop = self._hop
        cause = f"the host key of {hop.host}:{hop.port} ({_fingerprint(key)}) is not in {hop.known_hosts[0]}"
        raise DeviceRefused(self._name, cause, f"if the key is correct, accept it with `{_add_key_command(hop)}`")


def _add_key_command(hop: Hop) -> str:
    """Return a command that adds the host's key: ssh-keyscan or, where that does not reach it, one that asks."""
    if hop.jump is None and hop.key_name == hop.host:
        file = shlex.quote(str(hop.known_hosts[0]))
        return f"ssh-keyscan -p {hop.port} {shlex.quote(hop.host)} >> {file}"
    return hop.accept_command  # ssh-keyscan supports neither jump hosts nor aliases


def _fingerprint(key: paramiko.PKey) -> str:
    return f"{key.get_name()} {key.fingerprint}"


def _transport_with_fast_cipher(*arguments: object, **options: object) -> paramiko.Transport:
    transport = paramiko.Transport(*arguments, **options)  # type: ignore[arg-type]
    security = transport.get_security_options()
    security.ciphers = sorted(security.ciphers, key=lambda cipher: cipher != _FIRST_CIPHER)
    return transport
