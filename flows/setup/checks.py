"""Checks of this machine for `etfarm doctor`: findings `ok: ...`, or `fix: ...` with the next step.

A finding that needs no step, but is not ok, has no prefix. A check changes nothing, and returns nothing if it does
not apply. It connects to no device, only to the hosts of adb servers. To add a check, add it to CHECKS.
"""

import contextlib
import contextvars
import importlib.metadata
import os
import re
import resource
import shutil
import time
from collections.abc import Callable
from functools import partial
from multiprocessing import TimeoutError as NotInTimeError
from multiprocessing.pool import ThreadPool
from pathlib import Path

import httpx
import prefect

from devices.errors import FarmError
from devices.inventory import load_inventory
from devices.platform import PLATFORMS, Platform
from devices.settings import PREFIX, settings
from flows.server.connection import (
    ServerGoneError,
    check_server,
    client_without_retries,
    clock_difference_s,
    clock_warning,
)
from flows.server.shared_server import POOL, online_labs
from flows.setup.connections import Devices, adb, ssh
from flows.setup.leftovers import Finding, fix, ok
from sql.cage.confine import missing_parts
from tasks.runner.build_inputs import installed_wheel
from tasks.runner.manifest import list_runners
from tasks.runner.toolchain import find_cmake, find_toolchain, host_platform
from tasks.store.workspace import Workspace

_MAX_CHECK_S = 12.0  # more than the 8 s in which a Prefect server must answer
_START_WORKER = "run `etfarm server worker`"
_PINNED = ("executorch", "torch")
_INSTALL_PINNED = "run `pip install '.[export]'`"
# A sweep of 24 local devices opened 91 files, of one device 21; connections with jump hosts need a few more.
_FILES, _FILES_PER_DEVICE = 128, 16
_MIN_FREE_BYTES = 5_000_000_000
_MAX_AHEAD_S = 60.0


def check_setup(workspace: Workspace, inventory: Path) -> list[Finding]:
    """Run all checks in parallel; one that has not ended after 12 s becomes a finding. InputError of the inventory."""
    entries = load_inventory(inventory)
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

    If it cannot, the finding has no prefix: the queries still run, and the user need not act.
    """
    if missing := missing_parts():
        lacks = f"this machine lacks {' and '.join(missing)}"
        rest = "a list of allowed functions and limits of time and memory still hold"
        return [Finding(f"queries run in a process that is not confined: {lacks}; {rest}", needs_user=False)]
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


def set_variables(_workspace: Workspace, _devices: Devices) -> list[Finding]:
    """The settings that environment variables set; secrets are masked."""
    present = settings()
    words = [f"{PREFIX}{name.upper()}={getattr(present, name)}" for name in sorted(present.model_fields_set)]
    return [ok(f"settings of the environment: {', '.join(words)}")] if words else []


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
    free = shutil.disk_usage(workspace.root).free
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
    ssh,
    disk,
    server_clock,
    clock,
    compilers,
    confined_queries,
    set_variables,
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
