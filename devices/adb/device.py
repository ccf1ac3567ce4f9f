"""An Android phone over adb as a device, and the link to it: its states, and the reconnect after a loss."""

import socket
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from adbutils import AdbConnection, AdbError, AdbTimeout

from devices import retry
from devices.adb.server import AdbServer
from devices.adb.stream import CHUNK_BYTES, ShellOutput, SyncRefused, SyncStream
from devices.device import FILE_LIMIT_BYTES, CommandResult, Device
from devices.errors import DeviceError, DeviceLost, DeviceRefused, FileMissing, NoSpaceOnDevice, TransferFailed
from devices.shell import call, command_line, end_group_words, remove_path, split_status
from devices.untrusted import check_fetchable, read_local, save_fetched

# adbd accepts about 64 KB, older versions less.
_MAX_LINE_BYTES = 32_000
_REGULAR_FILE = 0o100644  # with rw-r--r--; SEND takes the mode in decimal
_ALLOW = "unlock it and allow USB debugging from this computer"
_REMEDIES = {
    "unauthorized": _ALLOW,
    "authorizing": _ALLOW,
    "failed to authenticate": _ALLOW,
    "offline": "check its cable or network, or restart it",
    "not found": "check its cable or address, and that USB debugging is on",
    "failed to connect": "check its address, and that debugging over the network is on",
}


class AdbLink:
    """The link to one phone by its serial; for a phone on the network the serial is `host:port`.

    It connects a phone on the network that is not connected. After a loss it has the adb server open a new connection:
    a stale one discards all data for a minute. It starts the adb server if none runs.
    """

    def __init__(self, serial: str, *, network: bool, server: AdbServer) -> None:
        self.name = server.name
        self._serial = serial
        self._network = network
        self._server = server
        self._lock = threading.Lock()
        self._stale = False
        self._connections = 0

    @contextmanager
    def open(self, service: str) -> Iterator[socket.socket]:
        """Yield a stream to a service of the phone's adbd for the block; errors of the stream are raised as DeviceLost.

        Opening it reconnects the phone if its connection is stale; raises DeviceRefused for the states in _REMEDIES,
        DeviceLost for other causes.
        """
        connections, starts, was_stale = self._connections, self._server.starts, self._stale
        try:
            try:
                if not was_stale:
                    stream = self._request(f"host:transport:{self._serial}", service)
                else:
                    stream = self._reconnect_and_request(service, connections)
            except AdbError as error:
                # A request does not bring back a phone without a cable, unless a new server is still looking for it.
                is_new = self._server.starts > starts
                recoverable = ("not found", "offline") if self._network or is_new else ("offline",)
                if was_stale or not any(state in str(error) for state in recoverable):
                    raise
                stream = self._reconnect_and_request(service, connections)
        except (AdbError, EOFError, OSError) as error:
            cause = " ".join(str(error).split()) or type(error).__name__
            for state, remedy in _REMEDIES.items():
                if state in cause:
                    raise DeviceRefused(self.name, f"cannot be used ({cause})", remedy) from None
            raise self.lost(cause) from None
        try:
            yield stream
        except (AdbError, EOFError, OSError) as error:
            raise self.lost(str(error) or type(error).__name__) from None
        finally:
            with suppress(AdbError, EOFError, OSError):  # the link may be cut
                stream.close()

    def lost(self, cause: str) -> DeviceLost:
        """Mark the connection as stale, so that the next stream reconnects; return the error to raise."""
        self._stale = True
        return DeviceLost(self.name, f"stopped answering ({cause})", f"check {self._server.check_first}")

    def close(self) -> None:
        """Close the connection to the adb server; that server's connection to the phone stays."""
        self._server.close()

    def _request(self, *services: str) -> socket.socket:
        """Return a new stream to the adb server, on which `services` were accepted in turn; else raise AdbError."""
        connection: AdbConnection = self._server.make_connection()
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

    def _reconnect_and_request(self, service: str, connections: int) -> socket.socket:
        """Return a stream after the server dropped the phone's connection and opened it again.

        If there have been more than `connections` already, another thread has reconnected: doing it again would end its
        streams. Raises AdbError if the phone cannot be used in time.
        """
        with self._lock:
            if self._connections == connections:
                self._reconnect()
                self._connections += 1
                self._stale = False
        return self._request(f"host:transport:{self._serial}", service)

    def _reconnect(self) -> None:
        """Have the server connect the phone again; AdbError if that is refused, or it is not usable in time."""
        answer = ""
        attempts = retry.Attempts(retry.ADB_RECONNECT)
        if self._network:
            self._server.disconnect(self._serial)
            with suppress(AdbTimeout):  # the phone does not answer; its state is read below
                answer = self._server.connect(self._serial, timeout=retry.ADB_RECONNECT.within_s)
        else:
            with suppress(AdbError):  # a phone that is not connected cannot be reconnected
                self._request(f"host-serial:{self._serial}:reconnect").close()
        while True:
            try:
                state = str(self._server.device(self._serial).get_state())
            except AdbError as error:
                state = str(error) or "offline"
            if state == "device":
                return
            if "unauthorized" in state or "failed to" in answer or attempts.left_s <= 0:
                raise AdbError(answer if "failed to" in answer else state)
            attempts.pause()


class AdbDevice(Device):
    """Runs commands through an adb server; every command and transfer uses a separate stream."""

    def __init__(self, name: str, root: str, link: AdbLink, platform: str | None = None) -> None:
        super().__init__(name, root, platform)
        self._link = link

    def run(self, argv: Sequence[str], *, deadline_s: float) -> CommandResult:
        """See Device.run. Exit codes 129 to 159 are reported as signals: adb does not distinguish them."""
        output = self._shell(command_line(argv), deadline_s)
        if output.size_bytes > self.output_limit_bytes:
            self._end_group(output.pid)
            raise self.output_error(argv)
        if output.status is None:
            self._end_group(output.pid)
            raise self.deadline_error(argv, deadline_s)
        code, number = split_status(output.status)
        return CommandResult(code, number, bytes(output.stdout), bytes(output.stderr))

    def upload(self, local: Path, remote: str) -> None:
        """See Device.upload; adbd creates the parent folders."""
        part = f"{remote}.{uuid.uuid4().hex[:8]}.part"
        content = read_local(self.name, local, 16 * CHUNK_BYTES)
        try:
            with self._link.open("sync:") as stream:
                sync = SyncStream(stream)
                sync.request("SEND", f"{part},{_REGULAR_FILE}")
                for block in content:
                    sync.send(block)
                sync.finish(int(time.time()))
            call(self, ["mv", "-f", "--", part, remote])
        except DeviceLost:
            raise
        except (SyncRefused, DeviceError) as error:
            with suppress(DeviceError):
                remove_path(self, part)
            if isinstance(error, DeviceError):
                raise
            if "No space left" in str(error):
                raise NoSpaceOnDevice(self.name, f"no space left for {part}", "free space there") from None
            raise TransferFailed(self.name, f"cannot upload {local} to {part} ({error})") from None

    def fetch(self, remote: str, local: Path, *, limit_bytes: int = FILE_LIMIT_BYTES) -> None:
        try:
            with self._link.open("sync:") as stream:
                sync = SyncStream(stream)
                mode, size_bytes = sync.status(remote)
                if not mode:
                    raise FileMissing(self.name, f"file {remote} does not exist on the device")
                check_fetchable(self.name, remote, mode, size_bytes, limit_bytes)
                sync.request("RECV", remote)
                save_fetched(self.name, remote, sync.chunks(), local, limit_bytes)
        except SyncRefused as refused:
            if "No such file" in str(refused):
                raise FileMissing(self.name, f"file {remote} does not exist on the device") from None
            raise TransferFailed(self.name, f"cannot fetch {remote} ({refused})") from None

    def close(self) -> None:
        """See Device.close; the phone's connection to the adb server stays: other processes may use it."""
        self._link.close()

    def _shell(self, line: str, deadline_s: float) -> ShellOutput:
        """Run a command line until it ends, prints more than the limit, or reaches `deadline_s` (without connecting).

        `status` is None unless it ended. Raises DeviceLost if a silent phone gives no sign of life.
        """
        size_bytes = len(line.encode())
        if size_bytes > _MAX_LINE_BYTES:
            cause = f"a command line of {size_bytes} bytes is longer than the limit of {_MAX_LINE_BYTES}"
            raise DeviceRefused(self.name, cause, "pass the data in a file")
        output, silence_s = ShellOutput(self.name), retry.ADB_SILENCE.timeout_s
        with self._link.open(f"shell,v2,raw:{line}") as stream:
            last_received = time.monotonic()
            end = last_received + deadline_s
            while output.status is None and (now := time.monotonic()) < end:
                # Not select: closing a channel of paramiko while data arrives for its file descriptor, which another
                # file may have by then, ends the connection of all phones of the host.
                stream.settimeout(min(end - now, silence_s))
                try:
                    received = stream.recv(CHUNK_BYTES)
                except TimeoutError:
                    if time.monotonic() - last_received >= silence_s:
                        with self._link.open("sync:") as other:  # adbd answers without starting a process on the phone
                            SyncStream(other).status("/")
                        last_received = time.monotonic()
                    continue
                if not received:
                    raise EOFError("the connection ended during a command")
                output.feed(received)
                if output.size_bytes > self.output_limit_bytes:
                    break
                last_received = time.monotonic()
        return output

    def _end_group(self, pid: int | None) -> None:
        """Kill the process group; raises DeviceLost if the phone does not do it, or if `pid` never arrived."""
        if pid is None:
            raise self._link.lost("a command did not start before its deadline")
        if self._shell(command_line(end_group_words(pid)), retry.ADB_SILENCE.timeout_s).status is None:
            raise self._link.lost("a command over its deadline could not be killed")
