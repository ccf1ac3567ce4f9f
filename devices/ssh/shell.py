"""A `sh` on a host that stays and runs one command after the other: a login shell's start-up files are read once.

Each command is a child of that shell, in its process group. Its output is framed by a random marker on both streams;
the one that ends stdout is followed by the exit status.
"""

import re
import secrets
import shlex
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import paramiko

from devices import retry
from devices.device import CommandResult
from devices.shell import command_words, split_status, take_pid

# The first line of stdout is the process id. What the shell itself prints about killed commands is discarded.
_SHELL_LINE = "exec sh -c 'echo $$; exec 3>&2 2>/dev/null; exec sh'"
_CHUNK = 1 << 18
# A blank, three digits and a line feed.
_STATUS_BYTES = 5


class RemoteShell:
    """A shell on a new channel of a connection; `pid` is its process id and that of its group, None until it runs."""

    def __init__(self, name: str, transport: paramiko.Transport) -> None:
        self.pid: int | None = None
        self._name = name
        self._transport = transport
        self._channel = transport.open_session(timeout=retry.SSH_SILENCE.timeout_s)
        with answer_within(transport):
            self._channel.exec_command(_SHELL_LINE)
        self._out, self._err = Framed(), Framed()
        self._channel.settimeout(retry.SSH_SILENCE.timeout_s)
        self._arrived = Arrived()
        self._channel.in_buffer.set_event(self._arrived)
        self._channel.in_stderr_buffer.set_event(self._arrived)

    def run(self, argv: Sequence[str], end: float, max_bytes: int) -> bool:
        """Run a command; return whether it ended before `end` (monotonic, s) and within the limit; EOFError if lost."""
        silence_s, last_received = retry.SSH_SILENCE.timeout_s, time.monotonic()
        has_begun = False
        while True:
            if self.pid is None:
                self.pid = take_pid(self._name, self._out.data)
            if self.pid is not None and not has_begun:
                self._begin(argv)
                has_begun, last_received = True, time.monotonic()
            if has_begun and self._out.status is not None and self._err.status is not None:
                return self.size_bytes <= max_bytes
            now = time.monotonic()
            if now >= end or self.size_bytes > max_bytes:
                return False
            if not self.is_alive() and not self._has_output():
                raise EOFError("the connection ended during a command")
            if now - last_received > silence_s:
                # The SSH server answers without starting a process; detects a link that discards all data.
                with answer_within(self._transport, silent_since=last_received):
                    self._transport.global_request("keepalive@openssh.com", wait=True)
                last_received = time.monotonic()
            if self._read(min(end - now, silence_s)):
                last_received = time.monotonic()

    def result(self) -> CommandResult:
        """Return how the command ended, once `run` returned True; the shell reports signal n as 128 + n."""
        code, number = split_status(self._out.status or 0)
        return CommandResult(code, number, bytes(self._out.data), bytes(self._err.data))

    def is_alive(self) -> bool:
        """Return whether another command can be started."""
        return not (self._channel.closed or self._channel.eof_received)

    @property
    def size_bytes(self) -> int:
        """Bytes of the output in memory."""
        return self._out.size_bytes + self._err.size_bytes

    def close(self) -> None:
        """End the shell; a command that still runs is not ended."""
        self._channel.close()

    def _begin(self, argv: Sequence[str]) -> None:
        """Send a command to the shell, and read its output between new markers."""
        marker = secrets.token_hex(16)
        self._out, self._err = Framed(marker.encode()), Framed(marker.encode())
        words = shlex.join(command_words(argv))
        # Both streams are framed at once: what an earlier command left may still print.
        request = f"echo {marker}; echo {marker} >&3; (exec {words}) </dev/null 2>&3 3>&-\n"
        self._channel.sendall(f"{request}echo {marker} $?; echo {marker} 0 >&3\n".encode())

    def _has_output(self) -> bool:
        return self._channel.recv_ready() or self._channel.recv_stderr_ready()

    def _read(self, wait_s: float) -> bool:
        """Wait up to `wait_s` for output and read it; return whether there was any."""
        self._arrived.clear_first()
        if self.is_alive() and not self._has_output():
            self._arrived.wait(wait_s)
        has_out, has_err = self._channel.recv_ready(), self._channel.recv_stderr_ready()
        if has_out:
            self._out.feed(self._channel.recv(_CHUNK))
        if has_err:
            self._err.feed(self._channel.recv_stderr(_CHUNK))
        return has_out or has_err


@contextmanager
def answer_within(transport: paramiko.Transport, silent_since: float | None = None) -> Iterator[None]:
    """Close the connection and raise EOFError if the block takes too long; paramiko has no timeout for such requests.

    The error states how long the peer was silent: since the block began, or since `silent_since` (monotonic, seconds).
    """
    silent_since = time.monotonic() if silent_since is None else silent_since
    is_late = threading.Event()

    def give_up() -> None:
        is_late.set()
        transport.close()

    timer = threading.Timer(retry.SSH_SILENCE.timeout_s, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
    if is_late.is_set():
        raise EOFError(f"no answer for {time.monotonic() - silent_since:.0f} s")
    if not transport.is_active():
        raise EOFError("the connection ended")


class Arrived(threading.Event):
    """Set when a stream gets output or ends.

    paramiko's file descriptor misses output of one stream that arrives while the other one is read. It would also
    clear this event then; only who waits may do so, before looking.
    """

    def clear(self) -> None:
        """Do nothing: paramiko calls this when it has read all of one stream."""

    def clear_first(self) -> None:
        super().clear()


class Framed:
    """One stream: `data` is the output between the markers, `status` follows. EOFError if something else does."""

    def __init__(self, marker: bytes = b"") -> None:
        self.data = bytearray()
        self.status: int | None = None
        self._marker = marker
        self._has_begun = not marker
        self._searched = 0

    @property
    def size_bytes(self) -> int:
        """Bytes of the output in memory, without what may be a part of the last marker and its line."""
        return len(self.data) if self.status is not None else max(0, len(self.data) - len(self._marker) - _STATUS_BYTES)

    def feed(self, block: bytes) -> None:
        """Process the next bytes; what comes before the first marker is discarded."""
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
            status = re.fullmatch(rb" ([0-9]{1,3})", line[len(self._marker) :])
            if not status:
                raise EOFError(f"its shell printed {bytes(line[:60])!r} instead of an exit status")
            self.status = int(status[1])
            del self.data[at:]
