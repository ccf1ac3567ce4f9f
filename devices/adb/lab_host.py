"""The adb server of a lab host, reached through an SSH connection that all phones of that host share."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from devices.adb.server import DEFAULT_PORT, START_SERVER_S, AdbServer
from devices.errors import DeadlineExceeded, DeviceError, DeviceLost, DeviceRefused
from devices.ssh.config import SshAddress
from devices.ssh.forward import shared_host
from devices.untrusted import excerpt

_NOT_FOUND = 127


class LabHostServer(AdbServer):
    """The adb server on 127.0.0.1 of a lab host; errors have the name of the phone and of the host."""

    def __init__(self, name: str, via: SshAddress, port: int | None) -> None:
        super().__init__(name, port or DEFAULT_PORT, f"port {port or DEFAULT_PORT} of {via.address}")
        self.check_first = f"its cable or network, its power, and its host {via.address}"
        self._host = shared_host(via)

    def dial(self) -> socket.socket:
        """See AdbServer.dial; a channel of paramiko has the methods of a socket that the transport needs."""
        with self._errors_of_the_phone():
            return cast("socket.socket", self._host.open_stream(self, self.port))

    def start(self) -> None:
        """See AdbServer.start."""
        command = ["adb", "-P", str(self.port), "start-server"]
        why = f"run `{' '.join(command)}` there to see why"
        failed = f"the adb server on port {self.port} does not run and could not be started"
        with self._errors_of_the_phone():
            try:
                ended = self._host.run(command, deadline_s=START_SERVER_S)
            except DeadlineExceeded as error:
                raise DeviceLost(self.name, f"{failed} ({error.cause})", why) from None
            if ended.exit_code == _NOT_FOUND:
                way_on = "install Android's platform-tools there, with `adb` in the PATH of commands over SSH"
                raise DeviceRefused(self.name, "program `adb` not found", way_on)
            if ended.exit_code != 0:
                printed = excerpt(ended.stderr.decode(errors="replace")) or "it printed nothing"
                raise DeviceLost(self.name, f"{failed} ({printed})", why)

    def close(self) -> None:
        """See AdbServer.close: the connection ends with its last phone."""
        self._host.release(self)

    @contextmanager
    def _errors_of_the_phone(self) -> Iterator[None]:
        try:
            yield
        except DeviceError as error:
            raise type(error)(self.name, f"host {self._host.name}: {error.cause}", error.way_on) from None
