"""Open streams to a phone: the adb server, the connection to a phone on the network, its states."""

import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from adbutils import AdbClient, AdbError, AdbTimeout, adb_path

from devices.errors import DeviceLost, DeviceRefused

# Longest wait for one answer of the adb server or the phone.
ANSWER_S = 8.0
_START_SERVER_S = 20.0
_SETTLE_S = 5.0
_POLL_S = 0.05

_ALLOW = "unlock it and allow USB debugging from this computer"
_WAYS_ON = {
    "unauthorized": _ALLOW,
    "authorizing": _ALLOW,
    "failed to authenticate": _ALLOW,
    "offline": "check its cable or network, or restart it",
    "not found": "check its cable or address, and that USB debugging is on",
    "failed to connect": "check its address, and that debugging over the network is on",
}


@dataclass(frozen=True)
class AdbServer:
    """An adb server's port, and the state of each phone by its serial; None if no server runs."""

    port: int
    states: dict[str, str] | None


def look_at_server(port: int | None) -> AdbServer:
    """Ask the adb server which phones it lists, without starting it; `port` None means adb's setting.

    Raises AdbError or OSError if the program on that port does not answer as an adb server.
    """
    client = AdbClient(port=port, socket_timeout=ANSWER_S)
    if not _is_listening(client):
        return AdbServer(client.port, None)
    return AdbServer(client.port, {phone.serial: phone.state for phone in client.list()})


def _is_listening(client: AdbClient) -> bool:
    with suppress(OSError):
        socket.create_connection((client.host, client.port), 1).close()
        return True
    return False


class AdbLink:
    """The link to one phone by its serial; for a phone on the network the serial is `host:port`.

    A phone on the network is connected if it is not, and reconnected after it was lost: a stale connection would
    discard all data for a minute. `server_port` None means adb's setting, usually 5037.
    """

    def __init__(self, name: str, serial: str, *, network: bool, server_port: int | None) -> None:
        self.name = name
        self._serial = serial
        self._network = network
        self._client = AdbClient(port=server_port, socket_timeout=ANSWER_S)
        self._lock = threading.Lock()
        self._stale = False
        self._connections = 0

    @contextmanager
    def open(self, service: str) -> Iterator[socket.socket]:
        """Yield a stream to a service of the phone's adbd; errors of the stream are raised as DeviceLost.

        Raises DeviceRefused while the phone is unauthorized, offline or not found.
        """
        stream = self._open_stream(service)
        try:
            yield stream
        except (AdbError, EOFError, OSError) as error:
            raise self.lost(str(error) or type(error).__name__) from None
        finally:
            stream.close()

    def lost(self, cause: str) -> DeviceLost:
        """Return the error to raise when the phone stopped answering; the next stream opens a new connection."""
        self._stale = True
        return DeviceLost(self.name, f"stopped answering ({cause})", "check its cable or network, and its power")

    def _open_stream(self, service: str) -> socket.socket:
        known = self._connections
        try:
            is_new = self._start_server()
            if self._stale:
                return self._reconnect_and_request(service, known)
            try:
                return self._request(f"host:transport:{self._serial}", service)
            except AdbError as error:
                # A request does not bring back a phone without a cable, unless a new server is still looking for it.
                recoverable = ("not found", "offline") if self._network or is_new else ("offline",)
                if not any(state in str(error) for state in recoverable):
                    raise
                return self._reconnect_and_request(service, known)
        except (AdbError, EOFError, OSError) as error:
            cause = " ".join(str(error).split()) or type(error).__name__
            for state, way_on in _WAYS_ON.items():
                if state in cause:
                    raise DeviceRefused(self.name, f"cannot be used ({cause})", way_on) from None
            raise self.lost(cause) from None

    def _reconnect_and_request(self, service: str, known: int) -> socket.socket:
        """Reconnect unless another thread did since `known`: that would end the streams that it has opened."""
        with self._lock:
            if self._connections == known:
                self._reconnect()
                self._connections += 1
                self._stale = False
        return self._request(f"host:transport:{self._serial}", service)

    def _request(self, *services: str) -> socket.socket:
        """Return a new stream to the adb server on which each of `services` was accepted in turn."""
        connection: Any = self._client.make_connection()
        stream: socket.socket = connection.conn
        try:
            for service in services:
                words = service.encode()
                stream.sendall(f"{len(words):04x}".encode() + words)
                connection.check_okay()
        except BaseException:
            stream.close()
            raise
        return stream

    def _start_server(self) -> bool:
        """Start the adb server unless it runs; return whether it was started. adbutils would use the default port."""
        if _is_listening(self._client):
            return False
        command = [adb_path(), "-P", str(self._client.port), "start-server"]
        try:
            subprocess.run(command, capture_output=True, timeout=_START_SERVER_S, check=True)
        except (OSError, subprocess.SubprocessError):
            cause = f"the adb server on port {self._client.port} does not answer and could not be started"
            raise DeviceLost(self.name, cause, f"run `{' '.join(command)}` to see why") from None
        return True

    def _reconnect(self) -> None:
        """Make the adb server drop the phone's connection and open it again; AdbError if that fails."""
        answer = ""
        end = time.monotonic() + _SETTLE_S
        if self._network:
            self._client.disconnect(self._serial)
            with suppress(AdbTimeout):  # the phone does not answer; its state is read below
                answer = self._client.connect(self._serial, timeout=_SETTLE_S)
        else:
            with suppress(AdbError):  # a phone that is not connected cannot be reconnected
                self._request(f"host-serial:{self._serial}:reconnect").close()
        while (state := self._state()) != "device":
            final = "unauthorized" in state or "failed to" in answer
            if final or time.monotonic() >= end:
                raise AdbError(answer if "failed to" in answer else state)
            time.sleep(_POLL_S)

    def _state(self) -> str:
        """Return `device` if the phone can be used, otherwise another state or adb's error message."""
        connection: Any = self._client.make_connection()
        try:
            connection.send_command(f"host-serial:{self._serial}:get-state")
            connection.check_okay()
            return str(connection.read_string_block())
        except AdbError as error:
            return str(error) or "offline"
        finally:
            connection.conn.close()
