"""The one contract that this machine, hosts over SSH and phones over adb satisfy."""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from devices.errors import (
    DeadlineExceeded,
    DeviceBusy,
    DeviceError,
    DeviceLost,
    DeviceRefused,
    FileMissing,
    LeaseLost,
    NoSpaceOnDevice,
    TransferFailed,
)
from devices.ondevice import conditions, facts, store

__all__ = [
    "CommandResult",
    "DeadlineExceeded",
    "Device",
    "DeviceBusy",
    "DeviceError",
    "DeviceLost",
    "DeviceRefused",
    "FileMissing",
    "LeaseLost",
    "NoSpaceOnDevice",
    "TransferFailed",
]

PROBE_DEADLINE_S = 3.0
RECONNECT_PAUSE_S = 1.0


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
    """Something the farm can run a command on and move files to and from.

    Connections open on first use and again after DeviceLost, so a device object outlives a network blip.
    `root` is the absolute folder on the device that belongs to the farm. `platform` is None for a device that
    runs what it is; an inventory entry that launches programs through an emulator names what those are built for.
    `store_limit_bytes` is what the store is pruned to whenever something new came into it; None for never.
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

        A program or `cwd` that is not there is exit code 127, as in a shell. `deadline_s` is wall-clock time:
        then the process group is killed and DeadlineExceeded raised. DeviceLost if the device stops answering.
        """

    @abstractmethod
    def upload(self, local: Path, remote: str) -> None:
        """Copy a file to the device, written aside and renamed; parent folders are made.

        Raises TransferFailed, NoSpaceOnDevice, DeviceLost; nothing half-written stays under `remote`.
        """

    @abstractmethod
    def fetch(self, remote: str, local: Path) -> None:
        """Copy a file from the device; `local` is whole or untouched. FileMissing, TransferFailed, DeviceLost."""

    @abstractmethod
    def close(self) -> None:
        """End the connection; the next call would open a new one."""

    def probe(self) -> None:
        """Ask the device for the least it can do, within three seconds; DeviceLost or DeviceRefused if it cannot.

        The connection, if it has to be made anew, has seconds of its own.
        """
        try:
            result = self.run(["true"], deadline_s=PROBE_DEADLINE_S)
        except DeadlineExceeded:
            raise DeviceLost(self.name, f"did not run `true` within {PROBE_DEADLINE_S:g} s") from None
        if result.exit_code != 0:
            said = result.stderr.decode(errors="replace").strip()
            raise DeviceRefused(self.name, f"`true` ended with {result.exit_code or result.signal} ({said})")

    def reconnect(self, within_s: float) -> None:
        """Probe until the device answers; DeviceLost if it does not within so many seconds."""
        end = time.monotonic() + within_s
        while True:
            try:
                self.probe()
                return
            except (DeviceLost, DeviceRefused) as error:
                if time.monotonic() >= end:
                    cause = f"is not back within {within_s:g} s ({error.cause})"
                    raise DeviceLost(self.name, cause, error.way_on) from None
            time.sleep(RECONNECT_PAUSE_S)

    def has(self, sha256: str) -> bool:
        """Whether the store on the device holds the file of this hash; marks it as used."""
        return store.has(self, sha256)

    def put(self, local: Path, sha256: str, *, executable: bool = False) -> str:
        """Bring a file into the store unless it is there, verified on the device; returns its remote path."""
        return store.put(self, local, sha256, executable=executable)

    def put_tree(self, files: Mapping[str, Path], tree_sha256: str) -> str:
        """Bring a folder (relative name -> local file) into the store, whole and verified; returns its remote path."""
        return store.put_tree(self, files, tree_sha256)

    def remove(self, remote: str) -> None:
        """Delete a file or folder inside the device's root; one that is not there is fine."""
        store.remove(self, remote)

    def facts(self) -> dict[str, Any]:
        """What the device is: see `devices.facts.read_facts` for the keys."""
        return facts.read_facts(self)

    def conditions(self) -> dict[str, Any]:
        """How the device is right now: see `devices.conditions.read_conditions` for the keys."""
        return conditions.read_conditions(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
