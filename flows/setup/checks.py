"""The set-up of this machine for `etfarm doctor`: each check returns lines `ok: ...` or `fix: ...` with what to do.

A check connects to no device, changes nothing, and returns nothing if it does not apply; a new one is added to CHECKS.
"""

import concurrent.futures
import contextvars
import importlib.metadata
import os
import re
import resource
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import ParamSpec

import httpx
import prefect

from devices.errors import DeviceRefused, FarmError
from devices.inventory import DeviceSpec, adb_serial, load_inventory, ssh_address
from devices.platform import PLATFORMS, Platform
from flows.server.watch import ServerGoneError, check_server, client_without_retries
from flows.server.worker import POOL, online_labs
from flows.setup.doctor import Finding
from tasks.runner.bundle import runners_of
from tasks.runner.toolchain import find_cmake, host_platform, toolchain_for
from tasks.runner.wheel import installed_wheel
from tasks.var import Var

Devices = Sequence[DeviceSpec]

_LONGEST_S = 12.0  # more than the 8 s in which a Prefect server must answer
_START_WORKER = "run `etfarm worker`"
_PAIR = ("executorch", "torch")
_INSTALL_PAIR = "run `pip install '.[export]'`"
# A sweep of 24 local devices opened 91 files, of one device 21; connections with jump hosts need a few more.
_P = ParamSpec("_P")
_FILES, _FILES_PER_DEVICE = 128, 16
_MIN_FREE_BYTES = 5_000_000_000
_MAX_AHEAD_S = 60.0


def check_setup(places: Var, inventory: Path) -> list[Finding]:
    """Run all checks side by side; one that has not ended after 12 seconds is a finding.

    Raises InputError if the inventory cannot be read.
    """
    listed = load_inventory(inventory)
    started = [(check.__name__, _start(check, places, listed.reached)) for check in CHECKS]
    started.append(("lab_workers", _start(lab_workers, listed.labs)))
    ended, _ = concurrent.futures.wait([future for _, future in started], _LONGEST_S)
    found: list[Finding] = []
    for name, future in started:
        late = f"the check `{name}` did not end within {_LONGEST_S:g} s; check the network and the disks, then retry"
        found += future.result() if future in ended else [_fix(late)]
    return found


def prefect_server(_places: Var, _devices: Devices) -> list[Finding]:
    """Whether the server at PREFECT_API_URL answers and has this client's major and minor version."""
    if "PREFECT_API_URL" not in os.environ:
        return []
    try:
        check_server()
        with client_without_retries() as client:
            server = client.api_version()
    except ServerGoneError as gone:
        return [_fix(str(gone))]
    except (httpx.HTTPError, ValueError) as error:
        return [_fix(f"the Prefect server does not tell its version ({error}); start one of {prefect.__version__}")]
    if server.split(".")[:2] != prefect.__version__.split(".")[:2]:
        text = f"the Prefect server is {server}, the client of this machine {prefect.__version__}"
        return [_fix(f"{text}; install prefect {prefect.__version__} for the server and restart it")]
    return [_ok(f"Prefect server {server} answers; the client is {prefect.__version__}")]


def prefect_worker(_places: Var, _devices: Devices) -> list[Finding]:
    """Whether a worker of the work pool has sent a heartbeat lately; nothing if there is no server to ask."""
    if "PREFECT_API_URL" not in os.environ:
        return []
    try:
        with client_without_retries() as client:
            workers = client.read_workers_for_work_pool(POOL)
    except httpx.HTTPStatusError as error:
        if error.response.status_code == httpx.codes.UNAUTHORIZED:
            return []  # reported by `prefect_server`
        if error.response.status_code != httpx.codes.NOT_FOUND:
            cause = f"HTTP status {error.response.status_code}"
            return [_fix(f"the Prefect server does not list its workers ({cause}); read its log")]
        workers = []  # the work pool does not exist
    except (httpx.HTTPError, OSError, ValueError):
        return []  # reported by `prefect_server`
    online = sum(worker.status == "ONLINE" for worker in workers)
    if online:
        return [_ok(f"{online} of {len(workers)} workers of the work pool `{POOL}` online")]
    beats = [worker.last_heartbeat_time for worker in workers if worker.last_heartbeat_time]
    last = f"last heartbeat {max(beats):%Y-%m-%d %H:%M} UTC" if beats else "never a heartbeat"
    text = f"0 workers of the work pool `{POOL}` online ({last}): scheduled sweeps will not start; {_START_WORKER}"
    return [_fix(text)]


def lab_workers(labs: list[str]) -> list[Finding]:
    """Whether the worker of each lab of the inventory is online; nothing if there is no server to ask."""
    online = online_labs() if labs else None
    if online is None:
        return []
    return [
        _ok(f"the worker of lab {lab} is online")
        if lab in online
        else _fix(f"the worker of lab {lab} is not online; run `etfarm lab {lab}` on the machine of that lab")
        for lab in labs
    ]


def versions(_places: Var, _devices: Devices) -> list[Finding]:
    """Whether executorch and torch are the pair that etfarm pins; a machine without both only cannot export."""
    installed = {name: version for name in _PAIR if (version := _installed(name))}
    if not installed:
        text = "executorch and torch are not installed: this machine cannot export models"
        return [_ok(f"{text}; to export, {_INSTALL_PAIR}")]
    pinned = _pinned()
    found = ", ".join(f"{name} {installed.get(name, 'missing')}" for name in _PAIR)
    if {name: version.partition("+")[0] for name, version in installed.items()} == pinned:
        return [_ok(f"{found}: the pinned versions")]
    wanted = ", ".join(f"{name} {version}" for name, version in pinned.items())
    return [_fix(f"{found}; pinned are {wanted}: {_INSTALL_PAIR}")]


def open_files(_places: Var, devices: Devices) -> list[Finding]:
    """Whether this process may open enough files for all devices at once."""
    needed = _FILES + _FILES_PER_DEVICE * len(devices)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = "unlimited" if soft == resource.RLIM_INFINITY else str(soft)
    text = f"{allowed} open files allowed, {needed} needed (devices: {len(devices)})"
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return [_ok(text)]
    if hard == resource.RLIM_INFINITY or hard >= needed:
        return [_fix(f"{text}; run `ulimit -n {needed}` before etfarm")]
    return [_fix(f"{text}; raise this user's hard limit, {hard}, as the administrator")]


def adb(_places: Var, devices: Devices) -> list[Finding]:
    """Whether adb can be used, and which phones wait for a confirmation on their screens."""
    phones = [spec for spec in devices if spec.transport == "adb"]
    ports = dict.fromkeys(spec.adb_server_port for spec in phones)
    return [line for port in ports for line in _adb_at(port, [spec for spec in phones if spec.adb_server_port == port])]


def ssh(_places: Var, devices: Devices) -> list[Finding]:
    """Whether each SSH host has a known host key and there is a private key for it."""
    hosts = [spec for spec in devices if spec.transport == "ssh"]
    if not hosts:
        return []
    from devices.ssh.connect import check_entry  # cryptography is slow to import, and many farms have no SSH host

    found = []
    for spec in hosts:
        try:
            check_entry(spec.name, ssh_address(spec))
        except DeviceRefused as refused:
            found.append(_fix(str(refused)))
    good = len(hosts) - len(found)
    return [
        *found,
        *([_ok(f"{good} of {len(hosts)} SSH hosts with a known host key and a private key")] if good else []),
    ]


def disk(places: Var, _devices: Devices) -> list[Finding]:
    """Whether the disk of the var folder has space for a sweep."""
    free = shutil.disk_usage(places.root).free
    text = f"{free / 1e9:.1f} GB free in {places.root}"
    if free >= _MIN_FREE_BYTES:
        return [_ok(text)]
    return [_fix(f"{text}, {_MIN_FREE_BYTES / 1e9:g} GB needed; free space, for example with `etfarm prune`")]


def clock(places: Var, _devices: Devices) -> list[Finding]:
    """Whether this machine's clock is behind the newest bundle; nothing without bundles."""
    written = [path.stat().st_mtime for path in places.bundles.glob("[!.]*/[!.]*/session.json")]
    if not written:
        return []
    ahead_s = max(written) - time.time()
    if ahead_s <= _MAX_AHEAD_S:
        return [_ok("the clock is not behind the newest bundle")]
    text = f"the newest bundle in {places.bundles} is {ahead_s:.0f} s in the future"
    return [_fix(f"{text}; correct this machine's clock, for example with NTP")]


def compilers(places: Var, devices: Devices) -> list[Finding]:
    """Whether the runner of each platform can be built or is there; an SSH host's platform must be in the inventory."""
    wanted: set[Platform] = {spec.platform for spec in devices if spec.platform}
    found = []
    if any(spec.platform is None and spec.transport in ("local", "simulated") for spec in devices):
        try:
            wanted.add(host_platform())
        except FarmError as error:
            found.append(_fix(str(error)))
    if any(spec.platform is None and spec.transport == "adb" for spec in devices):
        wanted.add("android-arm64")
    return found + [_compiler(platform, places) for platform in PLATFORMS if platform in wanted]


CHECKS: tuple[Callable[[Var, Devices], list[Finding]], ...] = (
    prefect_server,
    prefect_worker,
    versions,
    open_files,
    adb,
    ssh,
    disk,
    clock,
    compilers,
)


def _ok(text: str) -> Finding:
    return Finding(f"ok: {text}", needs_user=False)


def _fix(text: str) -> Finding:
    return Finding(f"fix: {text}", needs_user=True)


def _start(check: Callable[_P, list[Finding]], *given: _P.args, **named: _P.kwargs) -> "Future[list[Finding]]":
    """Run a check in a thread that does not keep the process alive, with Prefect's settings of this one."""
    future: Future[list[Finding]] = Future()
    settings = contextvars.copy_context()

    def run() -> None:
        try:
            future.set_result(settings.run(check, *given, **named))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def _installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _pinned() -> dict[str, str]:
    """Return the versions of executorch and torch that the export extra of etfarm requires."""
    words = [re.match(r"([\w-]+)==([\w.]+)", line) for line in importlib.metadata.requires("etfarm") or []]
    versions = {word[1]: word[2] for word in words if word}
    return {name: versions[name] for name in _PAIR}


def _adb_at(port: int | None, phones: Devices) -> list[Finding]:
    from adbutils import AdbError, adb_path

    from devices.adb.connect import look_at_server  # adbutils is slow to import, and many farms have no phone

    try:
        server = look_at_server(port)
    except (AdbError, EOFError, OSError) as error:
        where = f"port {port}" if port else "adb's port"
        text = f"what listens on {where} does not answer as an adb server ({str(error) or type(error).__name__})"
        return [_fix(f"{text}; end that process, then run `adb devices`")]
    if server.states is None:
        try:
            return [_ok(f"no adb server on port {server.port}; a sweep starts {adb_path()}")]
        except AdbError:
            text = f"no adb server on port {server.port} and no program `adb`"
            return [_fix(f"{text}; install Android's platform-tools")]
    states = {spec.name: server.states.get(adb_serial(spec)) for spec in phones}
    waiting = [
        _fix(
            f"{name}: {state} at the adb server on port {server.port}; unlock it and confirm the request on its screen"
        )
        for name, state in states.items()
        if state in ("unauthorized", "authorizing", "offline")
    ]
    ready = sum(state == "device" for state in states.values())
    return waiting or [_ok(f"{ready} of {len(phones)} phones connected to the adb server on port {server.port}")]


def _compiler(platform: Platform, places: Var) -> Finding:
    try:
        toolchain = toolchain_for(platform, places.runners.absolute().parent / "cache")
        find_cmake()
        installed_wheel()
    except FarmError as error:
        if kept := len(runners_of(places.runners, platform)):
            return _ok(f"{platform}: runners are in {places.runners / platform} ({kept}); to build new ones: {error}")
        return _fix(f"{platform}: {error}")
    return _ok(f"{platform}: a runner can be built with {toolchain.version}")
