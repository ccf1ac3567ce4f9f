"""How a stream to a phone comes to be: the adb server, the connection to a phone on the network, its states."""

import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from adbutils import AdbClient, AdbError, AdbTimeout, adb_path

from devices.errors import DeviceLost, DeviceRefused

# How long any single answer may take, from the adb server or from the phone.
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


class AdbLink:
    """The way to one phone by its serial, which for a phone on the network is `host:port`.

    Such a phone is connected when it is not there, and connected anew after it was lost: a stale connection would
    swallow everything for a minute. `server_port` None means adb's own setting, usually 5037.
    """

    def __init__(self, name: str, serial: str, *, network: bool, server_port: int | None) -> None:
        self.name = name
        self._serial = serial
        self._network = network
        self._client = AdbClient(port=server_port, socket_timeout=ANSWER_S)
        self._lock = threading.Lock()
        self._stale = False

    @contextmanager
    def open(self, service: str) -> Iterator[socket.socket]:
        """A stream to a service of the phone's adbd; whatever breaks it inside leaves as DeviceLost.

        Raises DeviceRefused while the phone is unauthorized, offline or not found.
        """
        stream = self._reach(service)
        try:
            yield stream
        except (AdbError, EOFError, OSError) as error:
            raise self.lost(str(error) or type(error).__name__) from None
        finally:
            stream.close()

    def lost(self, cause: str) -> DeviceLost:
        """The error to raise when the phone stopped answering; the next stream begins with a new connection."""
        self._stale = True
        return DeviceLost(self.name, f"stopped answering ({cause})", "check its cable or network, and its power")

    def _reach(self, service: str) -> socket.socket:
        try:
            is_new = self._start_server()
            if self._stale:
                return self._reconnect_and_ask(service)
            try:
                return self._ask(f"host:transport:{self._serial}", service)
            except AdbError as error:
                # A cable that is not there will not come back for being asked; a new server still looks for it.
                hope = ("not found", "offline") if self._network or is_new else ("offline",)
                if not any(word in str(error) for word in hope):
                    raise
                return self._reconnect_and_ask(service)
        except (AdbError, EOFError, OSError) as error:
            said = " ".join(str(error).split()) or type(error).__name__
            for state, way_on in _WAYS_ON.items():
                if state in said:
                    raise DeviceRefused(self.name, f"cannot be used ({said})", way_on) from None
            raise self.lost(said) from None

    def _reconnect_and_ask(self, service: str) -> socket.socket:
        with self._lock:
            self._reconnect()
            self._stale = False
        return self._ask(f"host:transport:{self._serial}", service)

    def _ask(self, *services: str) -> socket.socket:
        """A new stream to the adb server on which each of `services` was accepted in turn."""
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
        """Start the adb server unless it runs (adbutils would start one on adb's default port); whether it did."""
        with suppress(OSError):
            socket.create_connection((self._client.host, self._client.port), 1).close()
            return False
        command = [adb_path(), "-P", str(self._client.port), "start-server"]
        try:
            subprocess.run(command, capture_output=True, timeout=_START_SERVER_S, check=True)
        except (OSError, subprocess.SubprocessError):
            cause = f"no adb server answers on port {self._client.port} and none could be started"
            raise DeviceLost(self.name, cause, f"try `{' '.join(command)}`") from None
        return True

    def _reconnect(self) -> None:
        """Make the adb server forget the phone's connection and seek it again; AdbError if it stays away."""
        said = ""
        end = time.monotonic() + _SETTLE_S
        if self._network:
            self._client.disconnect(self._serial)
            with suppress(AdbTimeout):  # while it waits for a phone that is silent; its state says so
                said = self._client.connect(self._serial, timeout=_SETTLE_S)
        else:
            with suppress(AdbError):  # one that is not there cannot be told to come back
                self._ask(f"host-serial:{self._serial}:reconnect").close()
        while (state := self._state()) != "device":
            hopeless = "unauthorized" in state or "failed to" in said
            if hopeless or time.monotonic() >= end:
                raise AdbError(said if "failed to" in said else state)
            time.sleep(_POLL_S)

    def _state(self) -> str:
        """`device` when the phone can be used; other words of adb, or its sentence, when not."""
        connection: Any = self._client.make_connection()
        try:
            connection.send_command(f"host-serial:{self._serial}:get-state")
            connection.check_okay()
            return str(connection.read_string_block())
        except AdbError as error:
            return str(error) or "offline"
        finally:
            connection.conn.close()
