"""The two protocols that adbd speaks on a stream: `shell,v2` for commands, `sync` for files.

Our own, because the timeout of adbutils is idle time and not a deadline, and it returns nothing before a command ends.
"""

import socket
import struct
from collections.abc import Iterator

from devices.shell import take_pid

CHUNK_BYTES = 1 << 16
_STDOUT, _STDERR, _EXIT = 1, 2, 3


class SyncRefused(Exception):
    """adbd said no to a file, in its own words."""


class ShellOutput:
    """What a command said so far, from packets of kind (1 byte), length (4, little-endian), data.

    `status` is None until it ended; the first line of stdout was its process id.
    """

    def __init__(self, name: str) -> None:
        self.pid: int | None = None
        self.status: int | None = None
        self.stdout = bytearray()
        self.stderr = bytearray()
        self._name = name
        self._unread = bytearray()

    def feed(self, received: bytes) -> None:
        """Take the next bytes of the stream."""
        self._unread += received
        start = 0
        while len(self._unread) >= start + 5:
            kind, length = struct.unpack_from("<BI", self._unread, start)
            end = start + 5 + length
            if len(self._unread) < end:
                break
            self._packet(kind, self._unread[start + 5 : end])
            start = end
        del self._unread[:start]

    def _packet(self, kind: int, data: bytearray) -> None:
        if kind == _STDOUT:
            self.stdout += data
            if self.pid is None:
                self.pid = take_pid(self._name, self.stdout)
        elif kind == _STDERR:
            self.stderr += data
        elif kind == _EXIT:
            self.status = data[0]


class SyncStream:
    """Requests and answers about files; EOFError when the stream ends, SyncRefused when adbd says no."""

    def __init__(self, stream: socket.socket) -> None:
        self._stream = stream

    def ask(self, kind: str, path: str) -> None:
        """Send a request."""
        self._stream.sendall(_packet(kind, path.encode()))

    def send(self, block: bytes) -> None:
        """Send a part of a file; adbd takes at most 64 KB at a time, but gets them in one go."""
        chunks = (block[start : start + CHUNK_BYTES] for start in range(0, len(block), CHUNK_BYTES))
        self._stream.sendall(b"".join(_packet("DATA", chunk) for chunk in chunks))

    def finish(self, modified_s: int) -> None:
        """End a file that was sent, with its modification time; SyncRefused if adbd could not keep it."""
        self._stream.sendall(b"DONE" + struct.pack("<I", modified_s))
        kind, length = self._head()
        if kind != b"OKAY":
            raise SyncRefused(self.read(length).decode(errors="replace"))

    def chunks(self) -> Iterator[bytes]:
        """The content of a file that was asked for."""
        while True:
            kind, length = self._head()
            if kind == b"DONE":
                return
            data = self.read(length)
            if kind != b"DATA":
                raise SyncRefused(data.decode(errors="replace"))
            yield data

    def read(self, count: int) -> bytes:
        """Exactly so many bytes."""
        data = bytearray()
        while len(data) < count:
            received = self._stream.recv(min(count - len(data), CHUNK_BYTES))
            if not received:
                raise EOFError("the connection ended during a transfer")
            data += received
        return bytes(data)

    def _head(self) -> tuple[bytes, int]:
        kind, length = struct.unpack("<4sI", self.read(8))
        return kind, length


def _packet(kind: str, data: bytes) -> bytes:
    return kind.encode() + struct.pack("<I", len(data)) + data
