"""The device that is certified: a folder below its root on the device, and a folder for the results."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path, PurePosixPath
from typing import Literal

from devices import retry
from devices.device import Device
from devices.inventory import DeviceSpec, open_device
from devices.ondevice.diagnostics import remove_small_disk
from devices.ondevice.facts import Facts
from devices.ondevice.lease import Lease, acquire
from devices.shell import remove_path
from tasks.bundle.cell import Mode, Use, Variant
from tasks.measure.health import Registry
from tasks.runner.manifest import Runner, find_runner
from tasks.store.workspace import Workspace

_LEASE_S = 300.0
_WAIT_S = 10.0


@dataclass(frozen=True)
class Finding:
    """Result of a check; `text` is one line: figures first, or the reason."""

    status: Literal["passed", "failed", "not tried"]
    text: str


@dataclass
class Subject:
    """A device under certification, and what the checks have learned of it."""

    spec: DeviceSpec
    """As in the inventory, but with a folder below the device's root as its root."""
    device: Device
    workspace: Workspace
    """The results of this certification, apart from those of sweeps."""
    night: date
    facts: Facts = field(default_factory=Facts)
    proof_sweep: str | None = None
    """The id of the sweep that measured the variants and the noise."""

    @property
    def small_disk(self) -> str:
        """Where a small disk is mounted on the device."""
        return f"{self.device.root}/small-disk"

    @property
    def platform(self) -> str | None:
        """From the inventory, else from the facts; None if unknown."""
        return self.spec.platform or self.facts.platform

    def runner(self, variant: Variant = "sme2_off", mode: Mode = "timing") -> Runner | None:
        return find_runner(self.workspace.runners, self.platform or "", Use(variant, mode))

    def leased(self) -> Lease:
        """Hold the device for a `with` block; raises DeviceBusy with the name of the holder after 10 s."""
        return acquire(self.device, "etfarm devices certify", ttl_s=_LEASE_S, wait_s=_WAIT_S)

    def clear(self) -> None:
        """Remove everything of a certification from the device; raises DeviceError."""
        root = self.device.root
        remove_small_disk(self.device, self.small_disk)
        remove_path(self.device, root)
        # The farm's root itself stays if it contains anything else.
        self.device.run(["rmdir", str(PurePosixPath(root).parent)], deadline_s=retry.SCRIPT.timeout_s)


@contextlib.contextmanager
def open_subject(spec: DeviceSpec, data_dir: Path, night: date) -> Iterator[Subject]:
    """Yield the subject, whose results go to `data_dir`/certify/<name>, without strikes, with shared exports."""
    workspace = Workspace(data_dir.absolute() / "certify" / spec.name)
    workspace.root.mkdir(parents=True, exist_ok=True)
    for shared in (Workspace(data_dir.absolute()).exports, Workspace(data_dir.absolute()).runners):
        shared.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            (workspace.root / shared.name).symlink_to(shared, target_is_directory=True)
    Registry(workspace.registry).release(spec.name)
    with open_device(spec) as device:
        below = spec.model_copy(update={"root": f"{device.root}/certify"})
    with open_device(below) as device:
        yield Subject(below, device, workspace, night)
