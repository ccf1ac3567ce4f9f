"""This machine as a device."""

import errno
import os
import selectors
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from devices import retry
from devices.device import FILE_LIMIT_BYTES, CommandResult, Device
from devices.errors import DeviceRefused, FileMissing, NoSpaceOnDevice, TransferFailed
from devices.shell import command_words
from devices.untrusted import check_fetchable, save_fetched

# All that a program gets of the controller's environment, which may contain tokens of its user and of the farm.
_PASSED_VARIABLES = ("PATH", "HOME", "TMPDIR", "LANG")
_CHUNK_BYTES = 1 << 20


class LocalDevice(Device):
    """Runs commands as child processes, each in a separate session, with the environment `clean_environment`."""

    is_remote = False

    def run(self, argv: Sequence[str], *, deadline_s: float) -> CommandResult:
        end = time.monotonic() + deadline_s
        try:
            process = subprocess.Popen(
                command_words(argv),
                env=clean_environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise DeviceRefused(self.name, f"cannot start `{argv[0]}` ({error.strerror})", "correct PATH") from None
        with process:  # closes pipes that a descendant outside the group may still hold open
            try:
                stdout, stderr = self._read_until_end(process, argv, end)
            except BaseException as error:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(retry.TERM.timeout_s)
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                if isinstance(error, subprocess.TimeoutExpired):
                    raise self.deadline_error(argv, deadline_s) from None
                raise
        status = process.returncode
        code, number = (None, -status) if status < 0 else (status, None)
        return CommandResult(code, number, stdout, stderr)

    def upload(self, local: Path, remote: str) -> None:
        target = Path(remote)
        part = target.with_name(f".{uuid.uuid4().hex}.part")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(local, part)
            part.replace(target)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise NoSpaceOnDevice(self.name, f"no space left for {target}", "free space there") from None
            raise TransferFailed(
                self.name, f"cannot copy the local file {local} to {target} ({error.strerror})"
            ) from None
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)

    def fetch(self, remote: str, local: Path, *, limit_bytes: int = FILE_LIMIT_BYTES) -> None:
        try:
            status = Path(remote).lstat()
            check_fetchable(self.name, remote, status.st_mode, status.st_size, limit_bytes)
            with Path(remote).open("rb", buffering=0) as source:
                save_fetched(self.name, remote, iter(lambda: source.read(_CHUNK_BYTES), b""), local, limit_bytes)
        except (FileNotFoundError, NotADirectoryError):
            raise FileMissing(self.name, f"file {remote} does not exist on the device") from None
        except OSError as error:
            raise TransferFailed(self.name, f"cannot fetch {remote} ({error.strerror})") from None

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def _read_until_end(self, process: subprocess.Popen[bytes], argv: Sequence[str], end: float) -> tuple[bytes, bytes]:
        """Return both streams at the end; TimeoutExpired at `end` (monotonic, s), OutputTooLong above the limit."""
        streams = {stream.fileno(): bytearray() for stream in (process.stdout, process.stderr) if stream}
        with selectors.DefaultSelector() as selector:
            for descriptor in streams:
                selector.register(descriptor, selectors.EVENT_READ)
            while selector.get_map():
                left_s = end - time.monotonic()
                if left_s <= 0:
                    raise subprocess.TimeoutExpired(list(argv), 0)
                for key, _ in selector.select(left_s):
                    block = os.read(key.fd, _CHUNK_BYTES)
                    streams[key.fd] += block
                    if not block:
                        selector.unregister(key.fd)
                if sum(map(len, streams.values())) > self.output_limit_bytes:
                    raise self.output_error(argv)
        process.wait(max(end - time.monotonic(), 0.0))
        out, err = streams.values()
        return bytes(out), bytes(err)


def clean_environment() -> dict[str, str]:
    """Return the environment of a program that this machine runs as a device; a job sets more in its command."""
    return {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ}
