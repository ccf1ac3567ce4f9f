"""The adb server that reaches a phone, on this machine or on a lab host: where it listens, and how it is started."""

import os
import re
import socket
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from adbutils import AdbClient, AdbConnection, adb_path

from devices import retry
from devices.errors import DeadlineExceeded, DeviceError, DeviceLost, DeviceRefused
from devices.ssh.config import SshAddress
from devices.untrusted import excerpt

DEFAULT_PORT = 5037
_NOT_FOUND = 127


class AdbServer(AdbClient, ABC):  # type: ignore[misc] # adbutils has no types
    """The adb server of one phone, as a client of adbutils; a connection starts the server if none listens.

    `name` is the phone's name and `where` the server's place, both for messages. `starts` counts how often the server
    was started; `check_first` is what to check when the phone is lost.
    """

    check_first = "its cable or network, and its power"

    def __init__(self, name: str, port: int, where: str) -> None:
        super().__init__(port=port)
        self.name = name
        self.where = where
        self.starts = 0

    def make_connection(self, timeout: float | None = None) -> AdbConnection:
        """See adbutils, which would start a server on this machine's default port. `timeout`: default ADB_ANSWER."""
        try:
            stream = self.dial()
        except ConnectionRefusedError:
            self.start()
            self.starts += 1
            stream = self.dial()
        stream.settimeout(timeout or retry.ADB_ANSWER.timeout_s)
        return _Connection(stream)

    def states(self) -> dict[str, str] | None:
        """Return the state of each phone by its serial, without starting the server; None if none listens.

        Raises AdbError, EOFError or OSError if what listens does not answer as an adb server.
        """
        try:
            self.dial().close()
        except ConnectionRefusedError:
            return None
        return {phone.serial: phone.state for phone in self.list()}

    @abstractmethod
    def dial(self) -> socket.socket:
        """Return a new stream to the server; raises ConnectionRefusedError if none listens."""

    @abstractmethod
    def start(self) -> None:
        """Start the server; raises DeviceLost or DeviceRefused with the phone's name."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection to the server, which keeps running; the next stream opens another one."""


class _Connection(AdbConnection):  # type: ignore[misc]
    """A connection of adbutils over a stream that is already open."""

    def __init__(self, stream: socket.socket) -> None:  # the base class would dial
        self.stream = stream

    @property
    def conn(self) -> socket.socket:
        return self.stream

    def close(self) -> None:
        self.stream.close()


class LocalServer(AdbServer):
    """The adb server of this machine; `port` None means that of ANDROID_ADB_SERVER_PORT, or else 5037."""

    def __init__(self, name: str, port: int | None) -> None:
        default = os.environ.get("ANDROID_ADB_SERVER_PORT") or str(DEFAULT_PORT)
        if port is None and not (re.fullmatch("[0-9]{1,5}", default) and 0 < int(default) < 1 << 16):
            cause = f"ANDROID_ADB_SERVER_PORT={excerpt(default, 40)} is not a port"
            raise DeviceRefused(name, cause, "set it to a number from 1 to 65535, or unset it")
        used_port = port or int(default)
        super().__init__(name, used_port, f"port {used_port}")

    def dial(self) -> socket.socket:
        return socket.create_connection((self.host, self.port), retry.ADB_ANSWER.timeout_s)

    def start(self) -> None:
        command = [adb_path(), "-P", str(self.port), "start-server"]
        try:
            subprocess.run(command, capture_output=True, timeout=retry.ADB_SERVER_START.timeout_s, check=True)
        except (OSError, subprocess.SubprocessError):
            cause = f"the adb server on {self.where} does not answer and could not be started"
            raise DeviceLost(self.name, cause, f"run `{' '.join(command)}` to see why") from None

    def close(self) -> None:
        """Do nothing: every stream is a separate connection."""


class LabHostServer(AdbServer):
    """The adb server on 127.0.0.1 of a lab host, through its one SSH connection; errors name phone and host."""

    def __init__(self, name: str, via: SshAddress, port: int | None) -> None:
        from devices.ssh.device import shared_host  # cryptography is slow to import, and many farms have no SSH host

        super().__init__(name, port or DEFAULT_PORT, f"port {port or DEFAULT_PORT} of {via.address}")
        self.check_first = f"its cable or network, its power, and its host {via.address}"
        self._ssh = shared_host(via)

    def dial(self) -> socket.socket:
        """See AdbServer.dial; a channel of paramiko has the methods of a socket that the transport needs."""
        with self._host_errors_as_phone_errors():
            return cast("socket.socket", self._ssh.open_stream(self, self.port))

    def start(self) -> None:
        command = ["adb", "-P", str(self.port), "start-server"]
        why = f"run `{' '.join(command)}` there to see why"
        failed = f"the adb server on port {self.port} does not run and could not be started"
        with self._host_errors_as_phone_errors():
            try:
                ended = self._ssh.run(command, deadline_s=retry.ADB_SERVER_START.timeout_s)
            except DeadlineExceeded as error:
                raise DeviceLost(self.name, f"{failed} ({error.cause})", why) from None
            if ended.exit_code == _NOT_FOUND:
                remedy = "install Android's platform-tools there, with `adb` in the PATH of commands over SSH"
                raise DeviceRefused(self.name, "program `adb` not found", remedy)
            if ended.exit_code != 0:
                printed = excerpt(ended.stderr.decode(errors="replace")) or "it printed nothing"
                raise DeviceLost(self.name, f"{failed} ({printed})", why)

    def close(self) -> None:
        """See AdbServer.close; the SSH connection ends with its last phone."""
        self._ssh.release(self)

    @contextmanager
    def _host_errors_as_phone_errors(self) -> Iterator[None]:
        """Raise an error of the host inside the block as the same error of the phone; its cause names the host."""
        try:
            yield
        except DeviceError as error:
            raise type(error)(self.name, f"host {self._ssh.name}: {error.cause}", error.remedy) from None
