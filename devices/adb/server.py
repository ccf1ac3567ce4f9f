"""The adb server that reaches a phone: where it listens, and how it is started."""

import os
import socket
import subprocess
from abc import ABC, abstractmethod
from typing import Any

from adbutils import AdbClient, AdbConnection, adb_path

from devices.errors import DeviceLost

# Longest wait for one answer of the adb server or the phone.
ANSWER_S = 8.0
START_SERVER_S = 20.0
DEFAULT_PORT = 5037


class AdbServer(ABC):
    """One phone's way to its adb server: `name` is the phone's, `port` the server's, `where` a part of messages.

    `starts` counts how often the server had to be started; `check_first` is what to check when the phone is lost.
    """

    check_first = "its cable or network, and its power"

    def __init__(self, name: str, port: int, where: str) -> None:
        self.name = name
        self.port = port
        self.where = where
        self.starts = 0

    def client(self) -> AdbClient:
        """Return the client of adbutils over this way; its first connection starts the server if none listens."""
        return _Client(self)

    def states(self) -> dict[str, str] | None:
        """Return the state of each phone by its serial, without starting the server; None if none listens.

        Raises AdbError, EOFError or OSError if what listens does not answer as an adb server.
        """
        try:
            self.dial().close()
        except ConnectionRefusedError:
            return None
        return {phone.serial: phone.state for phone in self.client().list()}

    @abstractmethod
    def dial(self) -> socket.socket:
        """Return a new stream to the server; raises ConnectionRefusedError if none listens."""

    @abstractmethod
    def start(self) -> None:
        """Start the server; raises DeviceLost or DeviceRefused with the phone's name."""

    @abstractmethod
    def close(self) -> None:
        """Release the way to the server; the next stream opens it again. The server keeps running."""


class LocalServer(AdbServer):
    """The adb server of this machine; `port` None means adb's setting, usually 5037."""

    def __init__(self, name: str, port: int | None) -> None:
        chosen = port or int(os.environ.get("ANDROID_ADB_SERVER_PORT", DEFAULT_PORT))
        super().__init__(name, chosen, f"port {chosen}")
        self._host = os.environ.get("ANDROID_ADB_SERVER_HOST", "127.0.0.1")

    def dial(self) -> socket.socket:
        """See AdbServer.dial."""
        return socket.create_connection((self._host, self.port), ANSWER_S)

    def start(self) -> None:
        """See AdbServer.start."""
        command = [adb_path(), "-P", str(self.port), "start-server"]
        try:
            subprocess.run(command, capture_output=True, timeout=START_SERVER_S, check=True)
        except (OSError, subprocess.SubprocessError):
            cause = f"the adb server on {self.where} does not answer and could not be started"
            raise DeviceLost(self.name, cause, f"run `{' '.join(command)}` to see why") from None

    def close(self) -> None:
        """Do nothing: every stream has a connection of its own."""


class _Client(AdbClient):  # type: ignore[misc] # adbutils has no types
    """adbutils itself would start a server on the default port of this machine."""

    def __init__(self, server: AdbServer) -> None:
        super().__init__(port=server.port)
        self._server = server

    def make_connection(self, timeout: float | None = None) -> AdbConnection:
        try:
            stream = self._server.dial()
        except ConnectionRefusedError:
            self._server.start()
            self._server.starts += 1
            stream = self._server.dial()
        stream.settimeout(timeout or ANSWER_S)
        return _Connection(stream)


class _Connection(AdbConnection):  # type: ignore[misc]
    def __init__(self, stream: socket.socket) -> None:
        self._stream = stream
        super().__init__("", 0)

    def _safe_connect(self) -> Any:
        return self._stream
