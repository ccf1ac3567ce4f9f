"""Streams to the ports of an SSH host, over one connection for all who use that host."""

import threading
import weakref

import paramiko
from paramiko.common import OPEN_FAILED_CONNECT_FAILED

from devices.errors import DeviceRefused
from devices.ssh.config import SshAddress
from devices.ssh.device import SILENCE_S, SshDevice

_LOOPBACK = "127.0.0.1"
_hosts: "weakref.WeakValueDictionary[SshAddress, SharedHost]" = weakref.WeakValueDictionary()
_hosts_lock = threading.Lock()


class SharedHost(SshDevice):
    """An SSH host with several users; its connection is closed when the last of them releases it."""

    def __init__(self, where: SshAddress) -> None:
        super().__init__(where.address, "/", where)
        self._users: set[int] = set()
        # paramiko keeps one refusal for all channels that are being opened.
        self._opening = threading.Lock()
        self._prompt: paramiko.Transport | None = None

    def open_stream(self, user: object, port: int) -> paramiko.Channel:
        """Return a stream to a loopback port of the host, which `user` then uses until it releases the host.

        Raises ConnectionRefusedError if nothing listens there, otherwise as `run`.
        """
        with self._lock:
            self._users.add(id(user))
        with self._live_transport() as transport:
            opened = self._open(transport, port)
        if isinstance(opened, paramiko.Channel):
            return opened
        if opened.code == OPEN_FAILED_CONNECT_FAILED:
            raise ConnectionRefusedError(f"nothing listens on port {port}")
        cause = f"its SSH server does not forward connections to port {port} ({opened.text})"
        raise DeviceRefused(self.name, cause, "set `AllowTcpForwarding yes` in the host's sshd_config")

    def release(self, user: object) -> None:
        """End the connection if `user` was the last one to use it."""
        with self._lock:
            self._users.discard(id(user))
            if not self._users:
                self._disconnect()

    def _open(self, transport: paramiko.Transport, port: int) -> paramiko.Channel | paramiko.ChannelException:
        """Return the stream, or the host's refusal, after which the connection is as good as before."""
        here = (_LOOPBACK, 0)
        with self._opening:
            if self._prompt is not transport:
                # OpenSSH sets TCP_NODELAY at the first command; without it, answers in two packets take 40 ms more.
                self._open_shell(transport).close()
                self._prompt = transport
            try:
                return transport.open_channel("direct-tcpip", (_LOOPBACK, port), here, timeout=SILENCE_S)
            except paramiko.ChannelException as refused:
                return refused


def shared_host(where: SshAddress) -> SharedHost:
    """Return the host at an address; the same object for all who ask while one of them keeps it."""
    with _hosts_lock:
        host = _hosts.get(where)
        if host is None:
            host = _hosts[where] = SharedHost(where)
        return host
