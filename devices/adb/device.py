"""An Android phone over adb as a device."""

import select
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from devices.adb.connect import AdbLink
from devices.adb.stream import CHUNK_BYTES, ShellOutput, SyncRefused, SyncStream
from devices.device import CommandResult, Device
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

# A phone that says nothing for so long is asked whether it is still there.
SILENCE_S = 6.0
# adbd takes some 64 KB; older ones less.
_LONGEST_LINE_BYTES = 32_000
_REGULAR_FILE = 0o100644


class AdbDevice(Device):
    """Runs commands through an adb server; every command and transfer is a stream of its own."""

    def __init__(self, name: str, root: str, link: AdbLink, platform: str | None = None) -> None:
        super().__init__(name, root, platform)
        self._link = link

    def run(
        self,
        argv: Sequence[str],
        *,
        deadline_s: float,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> CommandResult:
        """See Device.run. A program that ends with 129 to 159 is taken for killed: adb cannot tell the difference."""
        begun = time.monotonic()
        output = self._shell(command_line(argv, env, cwd), begun + deadline_s)
        if output.status is None:
            self._end_group(output.pid)
            cause = f"`{argv[0]}` ran longer than its deadline of {deadline_s:g} s and was killed"
            raise DeadlineExceeded(self.name, cause)
        code, number = split_status(output.status)
        out, err = bytes(output.stdout), bytes(output.stderr)
        return CommandResult(tuple(argv), code, number, out, err, time.monotonic() - begun)

    def upload(self, local: Path, remote: str) -> None:
        """See Device.upload; adbd itself makes the parent folders."""
        part = f"{remote}.{uuid.uuid4().hex[:8]}.part"
        if not local.is_file():
            raise TransferFailed(self.name, f"there is no local file {local} to upload")
        try:
            self._send(local, part)
            call(self, ["mv", "-f", "--", part, remote])
        except DeviceLost:
            raise
        except DeviceError:
            with suppress(DeviceError):
                remove_path(self, part)
            raise

    def fetch(self, remote: str, local: Path) -> None:
        """See Device.fetch."""
        part = local.with_name(f".{uuid.uuid4().hex}.part")
        try:
            local.parent.mkdir(parents=True, exist_ok=True)
            self._receive(remote, part)
            part.replace(local)
        except OSError as error:
            raise TransferFailed(self.name, f"cannot write {local} ({error.strerror})") from None
        finally:
            part.unlink(missing_ok=True)

    def close(self) -> None:
        """Nothing to end: the connection to the phone is the adb server's, which others may share."""

    def _send(self, local: Path, remote: str) -> None:
        try:
            with local.open("rb") as source, self._sync("SEND", f"{remote},{_REGULAR_FILE}") as stream:
                while block := source.read(16 * CHUNK_BYTES):
                    stream.send(block)
                stream.finish(int(local.stat().st_mtime))
        except SyncRefused as refused:
            if "No space left" in str(refused):
                raise NoSpaceOnDevice(self.name, f"no space left for {remote}", "free space there") from None
            raise TransferFailed(self.name, f"cannot upload {local} to {remote} ({refused})") from None

    def _receive(self, remote: str, local: Path) -> None:
        try:
            with local.open("wb") as target, self._sync("RECV", remote) as stream:
                for chunk in stream.chunks():
                    try:
                        target.write(chunk)
                    except OSError as error:
                        raise TransferFailed(self.name, f"cannot write {local} ({error.strerror})") from None
        except SyncRefused as refused:
            if "No such file" in str(refused) or "Is a directory" in str(refused):
                raise FileMissing(self.name, f"has no file {remote}") from None
            raise TransferFailed(self.name, f"cannot fetch {remote} ({refused})") from None

    @contextmanager
    def _sync(self, kind: str, path: str) -> Iterator[SyncStream]:
        with self._link.open("sync:") as stream:
            sync = SyncStream(stream)
            sync.ask(kind, path)
            yield sync

    def _shell(self, line: str, end: float) -> ShellOutput:
        """Run a line until it ends or the moment `end` has come, which leaves `status` None."""
        if len(line.encode()) > _LONGEST_LINE_BYTES:
            raise DeviceRefused(self.name, f"takes no command line of {len(line.encode())} bytes", "pass a file")
        output = ShellOutput(self.name)
        with self._link.open(f"shell,v2,raw:{line}") as stream:
            heard = time.monotonic()
            while output.status is None and (now := time.monotonic()) < end:
                if select.select([stream], [], [], min(end - now, SILENCE_S))[0]:
                    received = stream.recv(CHUNK_BYTES)
                    if not received:
                        raise EOFError("the connection ended during a command")
                    output.feed(received)
                    heard = time.monotonic()
                elif time.monotonic() - heard >= SILENCE_S:
                    self._demand_answer()
                    heard = time.monotonic()
        return output

    def _demand_answer(self) -> None:
        """Ask adbd itself, which costs the phone no process; a link that only swallows is found so."""
        with self._sync("STAT", "/") as stream:
            stream.read(16)

    def _end_group(self, pid: int | None) -> None:
        """Kill the process group; a phone that cannot even do that is lost."""
        if pid is None:
            raise self._link.lost("a command did not start before its deadline")
        if self._shell(end_group_line(pid), time.monotonic() + SILENCE_S).status is None:
            raise self._link.lost("a command over its deadline could not be killed")
