"""Open streams to a phone: the adb server, the connection to a phone on the network, its states."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from adbutils import AdbError, AdbTimeout

from devices.adb.server import AdbServer
from devices.errors import DeviceLost, DeviceRefused

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


class AdbLink:
    """The link to one phone by its serial; for a phone on the network the serial is `host:port`.

    A phone on the network is connected if it is not, and reconnected after it was lost: a stale connection would
    discard all data for a minute. An adb server that does not run is started.
    """

    def __init__(self, serial: str, *, network: bool, server: AdbServer) -> None:
        self.name = server.name
        self._serial = serial
        self._network = network
        self._server = server
        self._client = server.client()
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
        return DeviceLost(self.name, f"stopped answering ({cause})", f"check {self._server.check_first}")

    def close(self) -> None:
        """Release the way to the adb server; the phone's connection belongs to that server and stays."""
        self._server.close()

    def _open_stream(self, service: str) -> socket.socket:
        known, starts = self._connections, self._server.starts
        try:
            if self._stale:
                return self._reconnect_and_request(service, known)
            try:
                return self._request(f"host:transport:{self._serial}", service)
            except AdbError as error:
                # A request does not bring back a phone without a cable, unless a new server is still looking for it.
                is_new = self._server.starts > starts
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
        try:
            return str(self._client.device(self._serial).get_state())
        except AdbError as error:
            return str(error) or "offline"
