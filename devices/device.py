"""The one contract that this machine, hosts over SSH and phones over adb satisfy."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self


@dataclass(frozen=True)
class CommandResult:
    """How a command ended: either `exit_code` or `signal` is None, both streams are complete."""

    argv: tuple[str, ...]
    exit_code: int | None
    signal: int | None
    stdout: bytes
    stderr: bytes
    wall_s: float


class Device(ABC):
    """A machine that runs commands and whose files can be written and read; it speaks POSIX sh.

    The four methods below are all that a new transport has to provide. What the farm keeps and runs on a device (its
    store, jobs, lease, facts and conditions, in `devices/ondevice/`) are functions over them and scripts for `sh`, so
    a kind of device without a shell needs a second contract, not a fifth method.

    Connections open on first use and again after DeviceLost, so a device object outlives a network blip.
    `root` is the absolute folder on the device that belongs to the farm. `platform` is None for a device that
    runs what it is; an inventory entry that launches programs through an emulator names what those are built for.
    `store_limit_bytes` is what the store is pruned to whenever something new was added to it; None for never.
    Methods may be called from several threads.
    """

    store_limit_bytes: int | None = None

    def __init__(self, name: str, root: str, platform: str | None = None) -> None:
        self.name = name
        self.root = root
        self.platform = platform

    @abstractmethod
    def run(
        self,
        argv: Sequence[str],
        *,
        deadline_s: float,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> CommandResult:
        """Run a command to its end with an empty standard input; a non-zero exit is a result, not an error.

        A missing program or `cwd` is exit code 127, as in a shell. `deadline_s` is wall-clock time: at its end the
        process group is killed and DeadlineExceeded raised. DeviceLost if the device stops answering.
        """

    @abstractmethod
    def upload(self, local: Path, remote: str) -> None:
        """Copy a file to the device, written aside and renamed; parent folders are made.

        Raises TransferFailed, NoSpaceOnDevice, DeviceLost; no partial file is left under `remote`.
        """

    @abstractmethod
    def fetch(self, remote: str, local: Path) -> None:
        """Copy a file from the device; `local` is complete or untouched. FileMissing, TransferFailed, DeviceLost."""

    @abstractmethod
    def close(self) -> None:
        """End the connection; the next call opens a new one."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
