"""This machine as a device."""

import errno
import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from devices.device import CommandResult, Device
from devices.errors import DeadlineExceeded, DeviceRefused, FileMissing, NoSpaceOnDevice, TransferFailed
from devices.shell import command_words

TERM_GRACE_S = 0.5


class LocalDevice(Device):
    """Runs commands as child processes, each in a separate session."""

    def run(
        self,
        argv: Sequence[str],
        *,
        deadline_s: float,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> CommandResult:
        """See Device.run."""
        begun = time.monotonic()
        try:
            process = subprocess.Popen(
                command_words(argv, env, cwd), stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
            )
        except OSError as error:
            raise DeviceRefused(self.name, f"cannot start `{argv[0]}` ({error.strerror})") from None
        try:
            stdout, stderr = process.communicate(timeout=deadline_s)
        except subprocess.TimeoutExpired:
            _end_group(process)
            cause = f"`{argv[0]}` ran longer than its deadline of {deadline_s:g} s and was killed"
            raise DeadlineExceeded(self.name, cause) from None
        except BaseException:
            _end_group(process)
            raise
        status = process.returncode
        code, number = (None, -status) if status < 0 else (status, None)
        return CommandResult(tuple(argv), code, number, stdout, stderr, time.monotonic() - begun)

    def upload(self, local: Path, remote: str) -> None:
        """See Device.upload."""
        if not local.is_file():
            raise TransferFailed(self.name, f"the local file {local} does not exist")
        self._copy(local, Path(remote))

    def fetch(self, remote: str, local: Path) -> None:
        """See Device.fetch."""
        if not Path(remote).is_file():
            raise FileMissing(self.name, f"file {remote} does not exist on the device")
        self._copy(Path(remote), local)

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def _copy(self, source: Path, target: Path) -> None:
        part = target.with_name(f".{uuid.uuid4().hex}.part")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, part)
            part.replace(target)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise NoSpaceOnDevice(self.name, f"no space left for {target}", "free space there") from None
            raise TransferFailed(self.name, f"cannot copy {source} to {target} ({error.strerror})") from None
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Send TERM, then KILL to the process group; close pipes that a descendant outside the group still holds open."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(TERM_GRACE_S)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
