"""The one contract that this machine, hosts over SSH and phones over adb satisfy."""

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from devices.errors import DeadlineExceeded, OutputTooLong

# The limit of a fetched file for which the caller gives none.
FILE_LIMIT_BYTES = 256 << 20


@dataclass(frozen=True)
class CommandResult:
    """How a command ended: either `exit_code` or `signal` is None; both streams are complete."""

    exit_code: int | None
    signal: int | None
    stdout: bytes
    stderr: bytes


@dataclass(frozen=True)
class Verified:
    """The states of files in the store, a line each, when they were those of their contents; read by job_run.sh."""

    files: str
    """Their paths under the root, a line each."""
    states: str
    until_s: float
    """When they may have to be marked as used again (monotonic clock)."""


class Device(ABC):
    """A machine that runs commands through POSIX sh and whose files can be written and read.

    The four abstract methods are all that a new transport has to provide. The store, jobs, lease, facts and conditions
    (`devices/ondevice/`) are functions that use these methods and scripts for `sh`. A kind of device without a shell
    needs a second contract, not a fifth method.

    Connections open on first use and again after DeviceLost, so a device object survives a short network outage.
    `root` is the absolute folder on the device that belongs to the farm. `platform` is the platform of the programs
    that the device runs; it is set only where the inventory launches them through an emulator, and None otherwise.
    The store is pruned to `store_limit_bytes` after every addition; None means never.
    A command may print `output_limit_bytes` to both streams together; more is never kept in memory.
    `collected` are folders of jobs that are not needed any more: the call before the next job removes them, or the
    release of the lease.
    `verified` are the states of files in its store, by the hashes of their contents; see `devices/ondevice/job.py`.
    `lease_token` is the lease that `devices/ondevice/lease.py` holds on the machine; no job starts after it was lost.
    `waiting_priority` is the highest that waited for the machine when the lease was last used; None if nobody did.
    `is_remote`: a call needs a network or a cable, so several calls are better joined into one.
    `machine_folder` is a folder of the machine that all farms share; "" is the default, and tests set another one.
    Methods may be called from several threads.
    """

    is_remote: bool = True
    lease_token: str | None = None
    waiting_priority: int | None = None
    # Not a setting of `devices/settings.py`: only tests set it, before this class is made.
    machine_folder: str = os.environ.get("ETFARM_MACHINE_FOLDER", "")
    store_limit_bytes: int | None = None
    output_limit_bytes: int = 32 << 20

    def __init__(self, name: str, root: str, platform: str | None = None) -> None:
        self.name = name
        self.root = root
        self.platform = platform
        self.collected: list[str] = []
        self.verified: dict[str, Verified] = {}

    @abstractmethod
    def run(self, argv: Sequence[str], *, deadline_s: float) -> CommandResult:
        """Run a command to its end with an empty standard input; a non-zero exit is a result, not an error.

        A missing program is exit code 127, as in a shell. `deadline_s` is wall-clock time without the time to connect:
        at its end the process group is killed and DeadlineExceeded raised. A command that prints more than
        `output_limit_bytes` is killed in the same way: OutputTooLong. DeviceLost if the device stops answering.
        """

    @abstractmethod
    def upload(self, local: Path, remote: str) -> None:
        """Copy a file, complete or not at all, with its folders; TransferFailed, NoSpaceOnDevice or DeviceLost."""

    @abstractmethod
    def fetch(self, remote: str, local: Path, *, limit_bytes: int = FILE_LIMIT_BYTES) -> None:
        """Copy a regular file of at most `limit_bytes` from the device; `local` is complete or untouched.

        The limit is enforced while the content arrives: more is neither kept in memory nor written. Raises FileRefused
        for a larger file, a link or a folder, FileMissing, TransferFailed, DeviceLost.
        """

    @abstractmethod
    def close(self) -> None:
        """End the connection; the next call opens a new one."""

    def deadline_error(self, argv: Sequence[str], deadline_s: float) -> DeadlineExceeded:
        cause = f"`{argv[0]}` ran longer than its deadline of {deadline_s:g} s and was killed"
        return DeadlineExceeded(self.name, cause)

    def output_error(self, argv: Sequence[str]) -> OutputTooLong:
        """Return the error of a command that was killed because it printed more than `output_limit_bytes`."""
        cause = f"`{argv[0]}` printed more than its limit of {self.output_limit_bytes} bytes and was killed"
        return OutputTooLong(self.name, cause)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
