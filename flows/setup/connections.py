"""Connections of `etfarm doctor`: adb servers and their phones, then every device, with what is left on it."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from devices.errors import DeviceError
from devices.inventory import DeviceSpec, adb_serial, adb_server, open_device
from devices.ondevice.diagnostics import read_leftovers
from devices.ondevice.lease import current_holder, has_ended
from devices.retry import probe
from flows.setup.leftovers import Finding, fix, note, ok
from tasks.bundle.sizes import size_text
from tasks.results.text import numbered
from tasks.store.workspace import Workspace

Devices = Sequence[DeviceSpec]
_AT_ONCE = 64
_CONFIRM = "unlock it and confirm the request on its screen"
_PHONE_REMEDIES = {
    "unauthorized": _CONFIRM,
    "authorizing": _CONFIRM,
    "offline": "reconnect its cable or its network, or restart it",
}


def adb(_workspace: Workspace, devices: Devices) -> list[Finding]:
    """Whether each adb server, here and on lab hosts, can be used, and which phones wait for a confirmation."""
    by_server: dict[object, list[DeviceSpec]] = {}
    for spec in devices:
        if spec.transport == "adb":
            by_server.setdefault((spec.via, spec.adb_server_port), []).append(spec)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return [line for lines in pool.map(_check_adb_server, by_server.values()) for line in lines]


def connect_devices(devices: Devices) -> list[Finding]:
    """Connect to each device: why one cannot be used, what killed sweeps left on it, and how many answer."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        findings = [finding for each in pool.map(_connect, devices) for finding in each]
    good = len(devices) - len({name for finding in findings for name in finding.devices})
    return [*findings, *([ok(f"{good} of {len(devices)} devices answer")] if good else [])]


def _connect(spec: DeviceSpec) -> list[Finding]:
    """Return findings about jobs and session folders left on a device; none while a running process holds it."""
    try:
        with open_device(spec) as device:
            probe(device)
            holder = current_holder(device)
            if holder is not None and not has_ended(holder):
                return []
            left = read_leftovers(device)
    except DeviceError as error:
        return [fix(str(error), spec.name)]
    findings = []
    if left.jobs:
        text = f"{spec.name}: {numbered(left.jobs, 'job')} of a killed sweep; the next sweep that uses it ends them"
        findings.append(note(text))
    if left.sessions:
        folders = f"{numbered(left.sessions, 'session folder')} ({size_text(left.sessions_bytes)})"
        # The folders of every data folder that used the device are here, so they may be somebody else's.
        where = f"{spec.name}: {folders} of stopped sweeps, of any data folder, in {device.root}/sessions"
        findings.append(
            note(f"{where}; `etfarm sweep FILE` collects those of a sweep that you resume; remove the rest")
        )
    return findings


def _check_adb_server(phones: Devices) -> list[Finding]:
    from adbutils import AdbError, adb_path  # slow to import, and many farms have no phone

    names = [spec.name for spec in phones]
    server = adb_server(phones[0])
    try:
        states = server.states()
    except DeviceError as error:
        return [fix(str(DeviceError(", ".join(names), error.cause, error.remedy)), *names)]
    except (AdbError, EOFError, OSError) as error:
        text = f"what listens on {server.where} does not answer as an adb server ({str(error) or type(error).__name__})"
        return [fix(f"{text}; end that process, then run `adb devices`", *names)]
    finally:
        server.close()
    if states is None:
        text = f"no adb server on {server.where}"
        if phones[0].via:
            return [ok(f"{text}; a sweep starts it there")]
        try:
            return [ok(f"{text}; a sweep starts {adb_path()}")]
        except AdbError:
            return [fix(f"{text} and no program `adb`; install Android's platform-tools", *names)]
    by_name = {spec.name: states.get(adb_serial(spec)) for spec in phones}
    waiting = [
        fix(f"{name}: {state} at the adb server on {server.where}; {_PHONE_REMEDIES[state]}", name)
        for name, state in by_name.items()
        if state in _PHONE_REMEDIES
    ]
    ready = sum(state == "device" for state in by_name.values())
    connected = ok if ready == len(phones) else note  # connect_devices names the others
    return waiting or [connected(f"{ready} of {len(phones)} phones connected to the adb server on {server.where}")]
