"""The inventory file lists the devices of a farm: YAML -> checked entries -> devices."""

import getpass
import re
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from devices.checked_yaml import load_checked
from devices.device import Device
from devices.errors import DeviceRefused, InputError
from devices.local import LocalDevice
from devices.platform import SIMULATED, Platform
from devices.ssh.config import IdentityFile, KnownHosts, Port, ProxyJump, SshAddress, SshConfig, User, resolve
from devices.start_limits import Limits
from devices.suggest import did_you_mean

if TYPE_CHECKING:
    from devices.adb.server import AdbServer

Transport = Literal["local", "ssh", "adb", "simulated"]

# The keys that only some transports have. A new transport is a package like devices/adb, its keys here, and its
# branch of `open_device`.
TRANSPORT_KEYS: dict[Transport, set[str]] = {
    "local": set(),
    "ssh": set(SshAddress.model_fields),
    "adb": {"address", "serial", "adb_server_port", "via"},
    "simulated": {"count", "seconds"},
}

# For the runner of a simulated device: how many seconds a session lasts.
SECONDS_VARIABLE = "ETFARM_SIMULATED_SECONDS"


# Names the lab that this machine belongs to: it reaches the devices of that lab itself.
SITE_VARIABLE = "ETFARM_SITE"


class DeviceSpec(BaseModel):
    """A device of the inventory or, with `count`, several simulated ones."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(description="Permanent name; results are stored under it.", examples=["pixel-1"])
    transport: Transport = Field(
        description="How it is reached: local is this machine; ssh, adb; simulated replays a session.", examples=["ssh"]
    )
    labels: dict[str, str] = Field(
        default_factory=dict, description="Labels by which sweeps select devices.", examples=[{"tier": "nightly"}]
    )
    site: str | None = Field(
        default=None,
        description="Where the device is; a worker reaches that of a lab, see `labs`.",
        examples=["berlin"],
    )
    root: str | None = Field(
        default=None,
        description="Absolute folder on the device that belongs to the farm. Default: one in its temporary folder.",
        examples=["/data/local/tmp/etfarm"],
    )
    launcher: list[str] = Field(
        default_factory=list,
        description="Words before every runner command. They belong to the cell.",
        examples=[["nice", "-n", "10"]],
    )
    cpu_affinity: list[Annotated[int, Field(ge=0)]] = Field(
        default_factory=list,
        description="Cores that runners are bound to, on Linux and Android. They belong to the cell.",
        examples=[[4, 5]],
    )
    platform: Platform | None = Field(
        default=None,
        description="Platform of its runner. Default: that of the device.",
        examples=["linux-aarch64"],
    )
    emulated: bool = Field(
        default=False,
        description="Whether its times are meaningless; they are never ranked. Default of simulated devices: true.",
        examples=[True],
    )
    limits: Limits = Field(
        default=Limits(),
        description="Conditions that it must stay within; a limit of the sweep replaces the same one here.",
        examples=[{"min_battery_percent": 50}],
    )
    store_limit_bytes: Annotated[int, Field(gt=0)] = Field(
        default=4 << 30,
        description="Space on the device for runners and models; the least recently used are removed first.",
        examples=[2_000_000_000],
    )

    address: str | None = Field(
        default=None,
        description="Host name or alias of ssh_config; of a phone on the network host:port, 5555 without a port.",
        examples=["mac-m4.lab"],
    )
    port: Port = None
    user: User = None
    identity_file: IdentityFile = None
    known_hosts: KnownHosts = None
    ssh_config: SshConfig = None
    proxy_jump: ProxyJump = None
    serial: str | None = Field(
        default=None, description="Serial number, as `adb devices` lists it.", examples=["8A1X0EXMPL"]
    )
    adb_server_port: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        default=None, description="Port of a private adb server. Default: adb's setting, usually 5037.", examples=[5038]
    )
    via: SshAddress | None = Field(
        default=None,
        description="SSH host whose adb server has the phone: [user@]host[:port], or keys as of ssh.",
        examples=["lab@bench-7.example.org"],
    )
    count: Annotated[int, Field(ge=1, le=9999)] | None = Field(
        default=None,
        description="So many devices instead of one; their names end with -001, -002, ...",
        examples=[100],
    )
    seconds: Annotated[float, Field(ge=0, le=3600)] = Field(
        default=1.0, description="How long each session lasts.", examples=[0.2]
    )

    @model_validator(mode="before")
    @classmethod
    def _simulated_is_emulated_by_default(cls, entry: Any) -> Any:
        is_simulated = isinstance(entry, dict) and entry.get("transport") == SIMULATED
        return {"emulated": True, **entry} if is_simulated else entry

    @field_validator("name")
    @classmethod
    def _plain_name(cls, name: str) -> str:
        return check_name(name, "device")

    @field_validator("root")
    @classmethod
    def _absolute_root(cls, root: str | None) -> str | None:
        if root is not None and not re.fullmatch(r"/.*[^/]", root):
            raise ValueError("the root must be an absolute folder below /, such as /data/local/tmp/etfarm")
        return root

    @model_validator(mode="after")
    def _keys_fit_transport(self) -> Self:
        restricted = set().union(*TRANSPORT_KEYS.values())
        for field in sorted((restricted - TRANSPORT_KEYS[self.transport]) & self.model_fields_set):
            owners = " and ".join(name for name, fields in TRANSPORT_KEYS.items() if field in fields)
            raise ValueError(f"`{field}` is for {owners} devices, but `{self.name}` is {self.transport}; remove it")
        if self.transport == "ssh" and not self.address:
            raise ValueError(f"the ssh device `{self.name}` needs an `address`: a host name or an ssh_config alias")
        if self.transport == "adb" and (self.serial is None) == (self.address is None):
            raise ValueError(f"the adb device `{self.name}` needs either a `serial` or an `address` (host:port)")
        return self

    @model_validator(mode="after")
    def _only_simulated_has_simulated_name(self) -> Self:
        # Results are stored and shown under the name, so no time of a simulated device is taken for a measurement.
        if (self.transport == SIMULATED) != self.name.startswith(SIMULATED):
            remedy = f"begin with `{SIMULATED}`, such as `{SIMULATED}-a`, and no other name does"
            raise ValueError(f"names of simulated devices {remedy}; `{self.name}` is {self.transport}: rename it")
        if self.transport == SIMULATED and (self.platform or not self.emulated):
            field = "platform" if self.platform else "emulated"
            raise ValueError(f"`{field}` cannot be set for the simulated device `{self.name}`; remove it")
        return self

    def expand(self) -> "list[DeviceSpec]":
        """Return the devices that the entry stands for: itself or, with `count`, so many with numbered names."""
        if self.count is None:
            return [self]
        names = [f"{self.name}-{number:03}" for number in range(1, self.count + 1)]
        return [self.model_copy(update={"name": name, "count": None}) for name in names]

    @property
    def implied_platform(self) -> Platform | None:
        """The platform that the entry tells before the device answers: what adb reaches is Android."""
        return self.platform or ("android-arm64" if self.transport == "adb" else None)

    def selectable_labels(self) -> dict[str, str]:
        """Return what a sweep's selector can match: labels, and name, transport and site, which replace such labels."""
        named = {"name": self.name, "transport": self.transport} | ({"site": self.site} if self.site else {})
        return {**self.labels, **named}


def check_name(name: str, kind: str) -> str:
    """Return the name of a device or a lab; raises ValueError unless it can be a part of a file name."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise ValueError(f"a {kind}'s name consists of letters, digits, dots, dashes and underscores")
    return name


class Inventory(BaseModel):
    """All devices of one file; their names are unique."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    labs: list[str] = Field(
        default_factory=list,
        description="Sites whose devices are reached by a worker there: `etfarm server lab SITE`.",
        examples=[["berlin"]],
    )
    devices: list[DeviceSpec] = Field(
        min_length=1, description="The devices.", examples=[[{"name": "this-machine", "transport": "local"}]]
    )

    @field_validator("labs")
    @classmethod
    def _plain_labs(cls, labs: list[str]) -> list[str]:
        for lab in labs:
            check_name(lab, "lab")
        return labs

    @model_validator(mode="after")
    def _labs_have_devices(self) -> Self:
        sites = {device.site for device in self.devices}
        for lab in self.labs:
            if lab not in sites:
                raise ValueError(f"lab `{lab}` has no devices; set `site: {lab}` at its devices, or remove it")
        return self

    @property
    def reached(self) -> list[DeviceSpec]:
        """The devices that this machine itself reaches: those outside `labs`."""
        return [device for device in self.devices if device.site not in self.labs]

    @field_validator("devices")
    @classmethod
    def _expand_entries(cls, entries: list[DeviceSpec]) -> list[DeviceSpec]:
        """Return the devices of all entries; raises ValueError if two have one name."""
        devices = [device for entry in entries for device in entry.expand()]
        for name, count in Counter(device.name for device in devices).items():
            if count > 1:
                raise ValueError(f"{count} devices are named `{name}`; give each a different name")
        return devices


def load_inventory(path: Path) -> Inventory:
    """Read an inventory, without this machine's lab (ETFARM_SITE) in `labs`; raises InputError with file and line."""
    if not path.exists():
        raise InputError(f"{path}: no such inventory; pass another with --inventory; `etfarm init FOLDER` writes one")
    from devices.settings import settings  # slow to import

    inventory = load_checked(path, Inventory)
    here = settings().site
    return inventory.model_copy(update={"labs": [lab for lab in inventory.labs if lab != here]})


def find_device(path: Path, name: str) -> DeviceSpec:
    """Return a device of an inventory file; raises InputError, which lists all names."""
    devices = {spec.name: spec for spec in load_inventory(path).devices}
    if name not in devices:
        names = ", ".join(devices)
        raise InputError(f"{path}: unknown device `{name}`; devices: {names}{did_you_mean(name, devices)}")
    return devices[name]


def reached_device(path: Path, name: str) -> DeviceSpec:
    """Return a device that this machine itself reaches; raises InputError, also if only the worker of a lab does."""
    spec = find_device(path, name)
    if spec.site in load_inventory(path).labs:
        remedy = f"run this command on the machine of that lab, with {SITE_VARIABLE}={spec.site}"
        raise InputError(f"{spec.name}: the device is in lab {spec.site}; {remedy}")
    return spec


def open_device(spec: DeviceSpec) -> Device:
    """Return the device of an inventory entry; it connects on first use.

    Default root: the temporary folder of this machine, /var/tmp of an SSH host (both with the user's name),
    /data/local/tmp of a phone. Raises DeviceRefused if ssh_config cannot be evaluated.
    """
    if spec.transport == "local":
        device: Device = LocalDevice(spec.name, spec.root or _local_root(), spec.platform)
    elif spec.transport == "simulated":  # a folder of this machine, with its own store, jobs and lease
        device = LocalDevice(spec.name, f"{spec.root or f'{_local_root()}-{SIMULATED}'}/{spec.name}", SIMULATED)
        device.machine_folder = f"{device.root}/machine"
    elif spec.transport == "ssh":
        from devices.ssh.device import SshDevice  # cryptography is slow to import, and many farms have no SSH host

        address = ssh_address(spec)
        root = spec.root or f"/var/tmp/etfarm-{resolve(spec.name, address).user}"
        device = SshDevice(spec.name, root, address, spec.platform)
    else:
        from devices.adb.device import AdbDevice, AdbLink

        link = AdbLink(adb_serial(spec), network=spec.address is not None, server=adb_server(spec))
        device = AdbDevice(spec.name, spec.root or "/data/local/tmp/etfarm", link, spec.platform)
    device.store_limit_bytes = spec.store_limit_bytes
    return device


def _local_root() -> str:
    return f"{tempfile.gettempdir()}/etfarm-{getpass.getuser()}"


def launch_prefix(spec: DeviceSpec, system: str | None) -> list[str]:
    """Return the words to put before a runner command on this device: the binding to cores, then the launcher.

    `system` is the device's fact `os`. Raises DeviceRefused for `cpu_affinity` on macOS, which cannot bind programs.
    The runner of a simulated device finds the length of its sessions in the environment.
    """
    simulated = ["env", f"{SECONDS_VARIABLE}={spec.seconds:g}"] if spec.transport == SIMULATED else []
    if not spec.cpu_affinity:
        return [*simulated, *spec.launcher]
    if system == "macos":
        raise DeviceRefused(spec.name, "macOS cannot bind programs to cores", "remove `cpu_affinity` from its entry")
    mask = sum(1 << core for core in set(spec.cpu_affinity))
    return ["taskset", f"{mask:x}", *simulated, *spec.launcher]


def ssh_address(spec: DeviceSpec) -> SshAddress:
    return SshAddress.model_validate(spec.model_dump(include=TRANSPORT_KEYS["ssh"]))


def adb_serial(spec: DeviceSpec) -> str:
    """Return what the adb server calls a phone: its serial, or `host:port` of one on the network (default: 5555)."""
    if spec.address and ":" not in spec.address:
        return f"{spec.address}:5555"
    return spec.serial or spec.address or ""


def adb_server(spec: DeviceSpec) -> "AdbServer":
    """Return the adb server of a phone, on this machine or on the lab host that the entry names."""
    from devices.adb.server import LabHostServer, LocalServer  # adbutils is slow to import, and many have no phone

    if spec.via is None:
        return LocalServer(spec.name, spec.adb_server_port)
    return LabHostServer(spec.name, spec.via, spec.adb_server_port)
