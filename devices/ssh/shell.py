"""A `sh` on a host that stays and runs one command after the other: a login shell's start-up files are read once.

Each command is a child of that shell, in its process group. Its output is framed by a random marker on both streams;
the one that ends stdout is followed by the exit status.
"""

import secrets
import shlex
import threading
from collections.abc import Mapping, Sequence

import paramiko

from devices.shell import command_words, take_pid

# The first line of stdout is the process id. What the shell itself prints about killed commands is discarded.
SHELL_LINE = "exec sh -c 'echo $$; exec 3>&2 2>/dev/null; exec sh'"
_CHUNK = 1 << 18
# A blank, three digits and a line feed.
_STATUS_BYTES = 5


class RemoteShell:
    """The shell on its channel; `pid` is its process id and that of its group, None until it runs."""

    def __init__(self, name: str, channel: paramiko.Channel, silence_s: float) -> None:
        self.pid: int | None = None
        self._name = name
        self._channel = channel
        self._out, self._err = Framed(), Framed()
        channel.settimeout(silence_s)
        self._arrived = Arrived()
        channel.in_buffer.set_event(self._arrived)
        channel.in_stderr_buffer.set_event(self._arrived)

    def begin(self, argv: Sequence[str], env: Mapping[str, str] | None, cwd: str | None) -> None:
        """Start a command. The one before must be complete."""
        marker = secrets.token_hex(16)
        self._out, self._err = Framed(marker.encode()), Framed(marker.encode())
        words = shlex.join(command_words(argv, env, cwd))
        # Both streams are framed at once: what an earlier command left may still print.
        request = f"echo {marker}; echo {marker} >&3; (exec {words}) </dev/null 2>&3 3>&-\n"
        self._channel.sendall(f"{request}echo {marker} $?; echo {marker} 0 >&3\n".encode())

    def is_ready(self) -> bool:
        """Return whether the shell runs; raises EOFError if its channel was closed."""
        if self.pid is None:
            self.pid = take_pid(self._name, self._out.data)
        return self.pid is not None or self._is_open()

    def is_complete(self) -> bool:
        """Return whether the command ended and all of its output was read; raises EOFError if it never will be."""
        return (self._out.status is not None and self._err.status is not None) or self._is_open()

    def is_alive(self) -> bool:
        """Return whether another command can be started."""
        return not (self._channel.closed or self._channel.eof_received)

    @property
    def size_bytes(self) -> int:
        """How much of the output is in memory."""
        return self._out.size_bytes + self._err.size_bytes

    def read(self, wait_s: float) -> bool:
        """Wait up to `wait_s` for output and read it; return whether there was any."""
        channel = self._channel
        self._arrived.clear_first()
        if self.is_alive() and not channel.recv_ready() and not channel.recv_stderr_ready():
            self._arrived.wait(wait_s)
        has_out, has_err = channel.recv_ready(), channel.recv_stderr_ready()
        if has_out:
            self._out.feed(channel.recv(_CHUNK))
        if has_err:
            self._err.feed(channel.recv_stderr(_CHUNK))
        return has_out or has_err

    def result(self) -> tuple[int, bytes, bytes]:
        """Return exit status, stdout and stderr of the command that is complete."""
        return int(self._out.status or 0), bytes(self._out.data), bytes(self._err.data)

    def close(self) -> None:
        """End the shell; a command that still runs is not ended."""
        self._channel.close()

    def _is_open(self) -> bool:
        """Return False while output may still arrive; raises EOFError otherwise."""
        channel = self._channel
        if not self.is_alive() and not channel.recv_ready() and not channel.recv_stderr_ready():
            raise EOFError("the connection ended during a command")
        return False


class Arrived(threading.Event):
    """Set when a stream gets output or ends.

    paramiko's own file descriptor misses output of one stream that arrives while the other one is read. It would also
    clear this event then; only who waits may do so, before looking.
    """

    def clear(self) -> None:
        """Ignore what paramiko wants when it has read all of one stream."""

    def clear_first(self) -> None:
        """Clear the event, before looking for output."""
        super().clear()


class Framed:
    """One stream: `data` is the output of the command, between the markers; `status` follows the last one."""

    def __init__(self, marker: bytes = b"") -> None:
        self.data = bytearray()
        self.status: bytes | None = None
        self._marker = marker
        self._has_begun = not marker
        self._searched = 0

    @property
    def size_bytes(self) -> int:
        """How much of the output is in memory, without what may be a part of the last marker and its line."""
        return len(self.data) if self.status is not None else max(0, len(self.data) - len(self._marker) - _STATUS_BYTES)

    def feed(self, block: bytes) -> None:
        """Process the next bytes of the stream."""
        self.data += block
        if not self._has_begun:
            _stray, begin, rest = self.data.partition(self._marker + b"\n")
            self._has_begun = bool(begin)
            if begin:
                self.data = rest
        if not self._marker or not self._has_begun or self.status is not None:
            return
        at = self.data.find(self._marker, self._searched)
        if at < 0:
            self._searched = max(0, len(self.data) - len(self._marker))
            return
        self._searched = at
        line, end, _ = self.data[at:].partition(b"\n")
        if end:
            self.status = bytes(line.split()[1])
            del self.data[at:]
