"""Checks of this machine for `etfarm doctor`: findings `ok: ...`, or `fix: ...` with the next step.

A finding that needs no step, but is not ok, is `note: ...`. A check changes nothing, and returns nothing if it does
not apply. To add a check, add it to CHECKS.
"""

import contextlib
import contextvars
import importlib.metadata
import os
import re
import resource
import shutil
import time
from collections.abc import Callable, Mapping
from functools import partial
from multiprocessing import TimeoutError as NotInTimeError
from multiprocessing.pool import ThreadPool
from pathlib import Path

import httpx
import prefect

from devices.errors import FarmError, InputError
from devices.inventory import Inventory, load_inventory
from devices.platform import PLATFORMS, Platform
from devices.settings import BUILT_IN_INVENTORY, setting_origins, settings
from flows.json_log import CREDENTIALS
from flows.server.connection import (
    ServerGoneError,
    check_server,
    client_without_retries,
    clock_difference_s,
    clock_warning,
)
from flows.server.shared_server import POOL, online_labs
from flows.setup.connections import Devices, adb, connect_devices
from flows.setup.leftovers import Finding, find_leftovers, fix, note, ok
from sql.cage.confine import missing_parts
from tasks.runner.build_inputs import installed_wheel
from tasks.runner.manifest import list_runners
from tasks.runner.toolchain import find_cmake, find_toolchain, host_platform
from tasks.store.workspace import Workspace

_MAX_CHECK_S = 12.0  # more than the 8 s in which a Prefect server must answer
_START_WORKER = "run `etfarm server worker`"
_PINNED = ("executorch", "torch")
_INSTALL_PINNED = "run `pip install 'etfarm[export]'`"
# A sweep of 24 local devices opened 91 files, of one device 21; connections with jump hosts need a few more.
_FILES, _FILES_PER_DEVICE = 128, 16
_MIN_FREE_BYTES = 5_000_000_000
_MAX_AHEAD_S = 60.0


def check_all(workspace: Workspace, inventory: Path) -> list[Finding]:
    """Return what killed sweeps left, the state of all devices, and the results of CHECKS."""
    entries, mistakes = _read_inventory(inventory)
    left = find_leftovers(workspace, [spec.name for spec in entries.devices])
    checked = check_setup(workspace, entries)
    refused = {name for finding in checked for name in finding.devices}  # of which the check has named the cause
    connected = connect_devices(entries.reached)
    return [*mistakes, *left, *(each for each in connected if not refused.intersection(each.devices)), *checked]


def _read_inventory(path: Path) -> tuple[Inventory, list[Finding]]:
    """Return the inventory; without devices, and with its mistakes, if it cannot be read."""
    try:
        return load_inventory(path), []
    except InputError as error:
        empty = Inventory.model_construct(labs=[], devices=[])
        return empty, [*map(fix, error.sentences), note("no device was checked, as the inventory cannot be read")]


def list_settings(passed: Mapping[str, object]) -> list[Finding]:
    """Return a line for each setting with its value, masked if it is secret, and where it comes from."""
    present, origins = settings().model_copy(update=passed), setting_origins()
    origins |= {name: f"--{name.replace('_', '-')}" for name in passed}
    values = {name: CREDENTIALS.sub("***@", str(getattr(present, name) or "")) for name in origins}
    if present.inventory == BUILT_IN_INVENTORY:
        values["inventory"] = "this machine, built in"
    return [
        Finding(f"{name} = {values[name] or 'not set'} ({origin})", needs_user=False)
        for name, origin in sorted(origins.items())
    ]


def check_setup(workspace: Workspace, entries: Inventory) -> list[Finding]:
    """Run all checks in parallel; one that has not ended after 12 s becomes a finding."""
    calls = {check.__name__: partial(check, workspace, entries.reached) for check in CHECKS}
    calls["lab_workers"] = partial(lab_workers, entries.labs)
    pool = ThreadPool(len(calls))  # of daemon threads: one that hangs does not keep the process alive
    started = {name: pool.apply_async(contextvars.copy_context().run, [call]) for name, call in calls.items()}
    end = time.monotonic() + _MAX_CHECK_S
    findings: list[Finding] = []
    for name, result in started.items():
        try:
            findings += result.get(max(end - time.monotonic(), 0))
        except NotInTimeError:
            late = f"the check `{name}` did not end within {_MAX_CHECK_S:g} s"
            findings.append(fix(f"{late}; check the network and the disks, then retry"))
    return findings


def prefect_server(_workspace: Workspace, _devices: Devices) -> list[Finding]:
    """Whether the server at PREFECT_API_URL answers and has this client's major and minor version."""
    if "PREFECT_API_URL" not in os.environ:
        return []
    try:
        check_server()
        with client_without_retries() as client:
            server = client.api_version()
    except ServerGoneError as gone:
        return [fix(str(gone))]
    except (httpx.HTTPError, ValueError) as error:
        return [fix(f"the Prefect server does not report its version ({error}); start one of {prefect.__version__}")]
    if server.split(".")[:2] != prefect.__version__.split(".")[:2]:
        text = f"the Prefect server is {server}, the client of this machine {prefect.__version__}"
        return [fix(f"{text}; install prefect {prefect.__version__} for the server and restart it")]
    return [ok(f"Prefect server {server} answers; the client is {prefect.__version__}")]


def confined_queries(_workspace: Workspace, _devices: Devices) -> list[Finding]:
    """Whether this machine can confine processes that run queries of agents or read a foreign warehouse.

    If it cannot, the finding is a note: the queries still run, and the user need not act.
    """
    if missing := missing_parts():
        lacks = f"this machine lacks {' and '.join(missing)}"
        rest = "a list of allowed functions and limits of time and memory still hold; Linux 5.13 or later has both"
        return [note(f"queries run in a process that is not confined: {lacks}; {rest}")]
    return [ok("queries run in a confined process")]


def prefect_worker(_workspace: Workspace, _devices: Devices) -> list[Finding]:
    """Whether a worker of the work pool is online; nothing if there is no server to ask."""
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
            return [fix(f"the Prefect server does not list its workers ({cause}); read its log")]
        workers = []  # the work pool does not exist
    except (httpx.HTTPError, OSError, ValueError):
        return []  # reported by `prefect_server`
    online = sum(worker.status == "ONLINE" for worker in workers)
    if online:
        return [ok(f"{online} of {len(workers)} workers of the work pool `{POOL}` online")]
    beats = [worker.last_heartbeat_time for worker in workers if worker.last_heartbeat_time]
    last = f"last heartbeat {max(beats):%Y-%m-%d %H:%M} UTC" if beats else "never a heartbeat"
    text = f"0 workers of the work pool `{POOL}` online ({last}): scheduled sweeps will not start; {_START_WORKER}"
    return [fix(text)]


def lab_workers(labs: list[str]) -> list[Finding]:
    """Whether the worker of each lab of the inventory is online; nothing if there is no server to ask."""
    online = online_labs() if labs else None
    if online is None:
        return []
    return [
        ok(f"the worker of lab {lab} is online")
        if lab in online
        else fix(f"the worker of lab {lab} is not online; run `etfarm server lab {lab}` on the machine of that lab")
        for lab in labs
    ]


def versions(_workspace: Workspace, _devices: Devices) -> list[Finding]:
    """Whether executorch and torch have the pinned versions. Without both a machine is ok, but cannot export."""
    installed: dict[str, str] = {}
    for name in _PINNED:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            installed[name] = importlib.metadata.version(name)
    if not installed:
        text = "executorch and torch are not installed: this machine cannot export models"
        return [ok(f"{text}; to export, {_INSTALL_PINNED}")]
    requirements = [re.match(r"([\w-]+)==([\w.]+)", line) for line in importlib.metadata.requires("etfarm") or []]
    pinned = {each[1]: each[2] for each in requirements if each and each[1] in _PINNED}
    installed_text = ", ".join(f"{name} {installed.get(name, 'missing')}" for name in _PINNED)
    if {name: version.partition("+")[0] for name, version in installed.items()} == pinned:
        return [ok(f"{installed_text}: the pinned versions")]
    pinned_text = ", ".join(f"{name} {pinned[name]}" for name in _PINNED)
    return [fix(f"{installed_text}; pinned are {pinned_text}: {_INSTALL_PINNED}")]


def open_files(_workspace: Workspace, devices: Devices) -> list[Finding]:
    """Whether this process may open enough files for all devices at once."""
    needed = _FILES + _FILES_PER_DEVICE * len(devices)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = "unlimited" if soft == resource.RLIM_INFINITY else str(soft)
    text = f"{allowed} open files allowed, {needed} needed (devices: {len(devices)})"
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return [ok(text)]
    if hard == resource.RLIM_INFINITY or hard >= needed:
        return [fix(f"{text}; run `ulimit -n {needed}` before etfarm")]
    return [fix(f"{text}; raise this user's hard limit, {hard}, as the administrator")]


def disk(workspace: Workspace, _devices: Devices) -> list[Finding]:
    """Whether the disk of the data folder has 5 GB free."""
    exists = next(folder for folder in (workspace.root, *workspace.root.parents) if folder.exists())
    free = shutil.disk_usage(exists).free
    text = f"{free / 1e9:.1f} GB free in {workspace.root}"
    if free >= _MIN_FREE_BYTES:
        return [ok(text)]
    return [fix(f"{text}, {_MIN_FREE_BYTES / 1e9:g} GB needed; free space, for example with `etfarm warehouse prune`")]


def server_clock(_workspace: Workspace, _devices: Devices) -> list[Finding]:
    """Whether this machine's clock agrees with the Prefect server's; nothing if there is no server to ask."""
    if (ahead_s := clock_difference_s()) is None:
        return []
    warning = clock_warning(ahead_s)
    return [fix(warning) if warning else ok("the clock agrees with the Prefect server's")]


def clock(workspace: Workspace, _devices: Devices) -> list[Finding]:
    """Whether this machine's clock is more than a minute behind the newest bundle; nothing without bundles."""
    written = [path.stat().st_mtime for path in workspace.bundles.glob("[!.]*/[!.]*/session.json")]
    if not written:
        return []
    ahead_s = max(written) - time.time()
    if ahead_s <= _MAX_AHEAD_S:
        return [ok("the clock is not behind the newest bundle")]
    text = f"the newest bundle in {workspace.bundles} is {ahead_s:.0f} s in the future"
    return [fix(f"{text}; correct this machine's clock, for example with NTP")]


def compilers(workspace: Workspace, devices: Devices) -> list[Finding]:
    """Whether the runner of each platform exists or can be built; an SSH host's is that of the inventory."""
    platforms: set[Platform] = {spec.platform for spec in devices if spec.platform}
    findings = []
    if any(spec.platform is None and spec.transport in ("local", "simulated") for spec in devices):
        try:
            platforms.add(host_platform())
        except FarmError as error:
            findings.append(fix(str(error)))
    if any(spec.platform is None and spec.transport == "adb" for spec in devices):
        platforms.add("android-arm64")
    return findings + [_check_toolchain(platform, workspace) for platform in PLATFORMS if platform in platforms]


CHECKS: tuple[Callable[[Workspace, Devices], list[Finding]], ...] = (
    prefect_server,
    prefect_worker,
    versions,
    open_files,
    adb,
    disk,
    server_clock,
    clock,
    compilers,
    confined_queries,
)


def _check_toolchain(platform: Platform, workspace: Workspace) -> Finding:
    """Whether a runner can be built. If not, the user has to act only if there is no built one either."""
    try:
        toolchain = find_toolchain(platform, workspace.runners.absolute().parent / "cache")
        find_cmake()
        installed_wheel()
    except FarmError as error:
        if count := len(list_runners(workspace.runners, platform)):
            folder = workspace.runners / platform
            return ok(f"{platform}: runners are in {folder} ({count}); to build new ones: {error}")
        return fix(f"{platform}: {error}")
    return ok(f"{platform}: a runner can be built with {toolchain.version}")
