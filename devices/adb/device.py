"""An Android phone over adb as a device."""

import select
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from devices.adb.connect import AdbLink
from devices.adb.stream import CHUNK_BYTES, ShellOutput, SyncRefused, SyncStream
from devices.device import FILE_LIMIT_BYTES, Device, Ended
from devices.errors import (
    DeadlineExceeded,
    DeviceError,
    DeviceLost,
    DeviceRefused,
    FileMissing,
    NoSpaceOnDevice,
    TransferFailed,
)
from devices.shell import call, command_line, end_group_line, remove_path, split_status
from devices.untrusted import check_fetchable, save_fetched

# After so much silence the farm checks whether the phone still answers.
SILENCE_S = 6.0
# adbd accepts about 64 KB, older versions less.
_LONGEST_LINE_BYTES = 32_000
_REGULAR_FILE = 0o100644


class AdbDevice(Device):
    """Runs commands through an adb server; every command and transfer uses a separate stream."""

    def __init__(self, name: str, root: str, link: AdbLink, platform: str | None = None) -> None:
        super().__init__(name, root, platform)
        self._link = link

    def execute(self, argv: Sequence[str], deadline_s: float, env: Mapping[str, str] | None, cwd: str | None) -> Ended:
        """See Device.run. Exit codes 129 to 159 are reported as signals: adb cannot tell the difference."""
        output = self._shell(command_line(argv, env, cwd), deadline_s)
        if output.size_bytes > self.output_limit_bytes:
            self._end_group(output.pid)
            raise self.too_long(argv)
        if output.status is None:
            self._end_group(output.pid)
            cause = f"`{argv[0]}` ran longer than its deadline of {deadline_s:g} s and was killed"
            raise DeadlineExceeded(self.name, cause)
        code, number = split_status(output.status)
        return code, number, bytes(output.stdout), bytes(output.stderr)

    def upload(self, local: Path, remote: str) -> None:
        """See Device.upload; adbd creates the parent folders."""
        part = f"{remote}.{uuid.uuid4().hex[:8]}.part"
        if not local.is_file():
            raise TransferFailed(self.name, f"the local file {local} does not exist")
        try:
            self._send(local, part)
            call(self, ["mv", "-f", "--", part, remote])
        except DeviceLost:
            raise
        except DeviceError:
            with suppress(DeviceError):
                remove_path(self, part)
            raise

    def fetch(self, remote: str, local: Path, *, limit_bytes: int = FILE_LIMIT_BYTES) -> None:
        """See Device.fetch."""
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

    def _send(self, local: Path, remote: str) -> None:
        try:
            with local.open("rb") as source, self._link.open("sync:") as stream:
                sync = SyncStream(stream)
                sync.request("SEND", f"{remote},{_REGULAR_FILE}")
                while block := source.read(16 * CHUNK_BYTES):
                    sync.send(block)
                sync.finish(int(local.stat().st_mtime))
        except SyncRefused as refused:
            if "No space left" in str(refused):
                raise NoSpaceOnDevice(self.name, f"no space left for {remote}", "free space there") from None
            raise TransferFailed(self.name, f"cannot upload {local} to {remote} ({refused})") from None

    def _shell(self, line: str, deadline_s: float) -> ShellOutput:
        """Run a command line until it ends, or for `deadline_s` without connecting, or until it prints too much.

        Unless it ended, `status` is None.
        """
        size_bytes = len(line.encode())
        if size_bytes > _LONGEST_LINE_BYTES:
            cause = f"a command line of {size_bytes} bytes is longer than the limit of {_LONGEST_LINE_BYTES}"
            raise DeviceRefused(self.name, cause, "pass the data in a file")
        output = ShellOutput(self.name)
        with self._link.open(f"shell,v2,raw:{line}") as stream:
            last_received = time.monotonic()
            end = last_received + deadline_s
            while output.status is None and (now := time.monotonic()) < end:
                if select.select([stream], [], [], min(end - now, SILENCE_S))[0]:
                    received = stream.recv(CHUNK_BYTES)
                    if not received:
                        raise EOFError("the connection ended during a command")
                    output.feed(received)
                    if output.size_bytes > self.output_limit_bytes:
                        break
                    last_received = time.monotonic()
                elif time.monotonic() - last_received >= SILENCE_S:
                    self._ping()
                    last_received = time.monotonic()
        return output

    def _ping(self) -> None:
        """Make adbd answer without starting a process on the phone; detects a link that discards all data."""
        with self._link.open("sync:") as stream:
            SyncStream(stream).status("/")

    def _end_group(self, pid: int | None) -> None:
        """Kill the process group; raises DeviceLost if the phone does not do it."""
        if pid is None:
            raise self._link.lost("a command did not start before its deadline")
        if self._shell(end_group_line(pid), SILENCE_S).status is None:
            raise self._link.lost("a command over its deadline could not be killed")
