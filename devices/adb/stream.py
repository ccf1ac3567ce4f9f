"""The two protocols of adbd's streams: `shell,v2` for commands, `sync` for files.

adbutils is not used here: its timeout limits idle time instead of total time, and it returns nothing before a command
ends.
"""

import socket
import struct
from collections.abc import Iterator

from devices.errors import DeviceError
from devices.shell import take_pid

CHUNK_BYTES = 1 << 16
_STDOUT, _STDERR, _EXIT = 1, 2, 3


class SyncRefused(Exception):
    """adbd refused a file transfer; the text is adbd's message."""


class ShellOutput:
    """The output of a command so far, read from packets of kind (1 byte), length (4, little-endian), data.

    `status` is None until the command ended. The process id was the first line of stdout and is removed from it.
    """

    def __init__(self, name: str) -> None:
        self.pid: int | None = None
        self.status: int | None = None
        self.stdout = bytearray()
        self.stderr = bytearray()
        self._name = name
        self._unread = bytearray()

    @property
    def size_bytes(self) -> int:
        """Bytes in memory: the output and the part of an incomplete packet."""
        return len(self.stdout) + len(self.stderr) + len(self._unread)

    def feed(self, received: bytes) -> None:
        """Process the next bytes of the stream; DeviceRefused if the first line is not a process id."""
        self._unread += received
        start = 0
        while len(self._unread) >= start + 5:
            kind, length = struct.unpack_from("<BI", self._unread, start)
            end = start + 5 + length
            if len(self._unread) < end:
                break
            self._add_packet(kind, self._unread[start + 5 : end])
            start = end
        del self._unread[:start]

    def _add_packet(self, kind: int, data: bytearray) -> None:
        if kind == _STDOUT:
            self.stdout += data
            if self.pid is None:
                self.pid = take_pid(self._name, self.stdout)
        elif kind == _STDERR:
            self.stderr += data
        elif kind == _EXIT:
            if not data:
                cause = "adbd sent an exit packet without a status"
                raise DeviceError(self._name, cause, "restart the phone, or use another adbd")
            self.status = data[0]


class SyncStream:
    """Requests and answers about files; raises EOFError when the stream ends, SyncRefused when adbd refuses.

    adbd sends at most 64 KB at once; a longer part is refused before it is read.
    """

    def __init__(self, stream: socket.socket) -> None:
        self._stream = stream

    def request(self, kind: str, path: str) -> None:
        self._stream.sendall(_encode_part(kind, path.encode()))

    def send(self, block: bytes) -> None:
        """Send a part of a file in one call, split into chunks of 64 KB, adbd's limit."""
        chunks = (block[start : start + CHUNK_BYTES] for start in range(0, len(block), CHUNK_BYTES))
        self._stream.sendall(b"".join(_encode_part("DATA", chunk) for chunk in chunks))

    def status(self, path: str) -> tuple[int, int]:
        """Return (mode, size modulo 2^32) of a file, of the link itself if it is one; (0, 0) if it does not exist."""
        self.request("STAT", path)
        _, mode, size_bytes, _ = struct.unpack("<4sIII", self.read(16))
        return mode, size_bytes

    def finish(self, modified_s: int) -> None:
        """End a sent file, with its modification time; raises SyncRefused if adbd could not store it."""
        self._stream.sendall(b"DONE" + struct.pack("<I", modified_s))
        kind, length = self._read_head()
        if kind != b"OKAY":
            raise SyncRefused(self.read(length).decode(errors="replace"))

    def chunks(self) -> Iterator[bytes]:
        """Yield the content of the file that `RECV` requested."""
        while True:
            kind, length = self._read_head()
            if kind == b"DONE":
                return
            data = self.read(length)
            if kind != b"DATA":
                raise SyncRefused(data.decode(errors="replace"))
            yield data

    def read(self, count: int) -> bytes:
        """Return exactly `count` bytes."""
        data = bytearray()
        while len(data) < count:
            received = self._stream.recv(min(count - len(data), CHUNK_BYTES))
            if not received:
                raise EOFError("the connection ended during a transfer")
            data += received
        return bytes(data)

    def _read_head(self) -> tuple[bytes, int]:
        """Return (kind, length) of the next part of an answer, which `read` continues with."""
        kind, length = struct.unpack("<4sI", self.read(8))
        if kind != b"DONE" and length > CHUNK_BYTES:  # after DONE, the number is not a length
            raise SyncRefused(f"a part of {length} bytes is longer than the limit of {CHUNK_BYTES}")
        return kind, length


def _encode_part(kind: str, data: bytes) -> bytes:
    return kind.encode() + struct.pack("<I", len(data)) + data
