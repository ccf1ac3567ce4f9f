"""Checks of connections to phones and SSH hosts for `etfarm doctor`: adb servers, host keys, private keys."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from devices.errors import DeviceError, DeviceRefused
from devices.inventory import DeviceSpec, adb_serial, adb_server, ssh_address
from devices.ssh.config import SshAddress
from flows.setup.leftovers import Finding, fix, ok
from tasks.store.workspace import Workspace

Devices = Sequence[DeviceSpec]
_AT_ONCE = 64


def adb(_workspace: Workspace, devices: Devices) -> list[Finding]:
    """Whether each adb server, here and on lab hosts, can be used, and which phones wait for a confirmation."""
    by_server: dict[object, list[DeviceSpec]] = {}
    for spec in devices:
        if spec.transport == "adb":
            by_server.setdefault((spec.via, spec.adb_server_port), []).append(spec)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return [line for lines in pool.map(_check_adb_server, by_server.values()) for line in lines]


def ssh(_workspace: Workspace, devices: Devices) -> list[Finding]:
    """Whether each SSH host, also those of phones, has a known host key and a private key."""
    hosts = [(spec.name, ssh_address(spec)) for spec in devices if spec.transport == "ssh"]
    hosts += [(name, via) for via, name in {spec.via: spec.name for spec in reversed(devices) if spec.via}.items()]
    if not hosts:
        return []
    errors = [fix(text) for name, where in hosts if (text := _find_ssh_error(name, where))]
    good = len(hosts) - len(errors)
    return [
        *errors,
        *([ok(f"{good} of {len(hosts)} SSH hosts with a known host key and a private key")] if good else []),
    ]


def _find_ssh_error(name: str, where: SshAddress) -> str | None:
    """Return why a host cannot be connected to: no known host key, or no private key. None if it has both."""
    from devices.ssh.connect import check_keys  # cryptography is slow to import, and many farms have no SSH host

    try:
        check_keys(name, where)
    except DeviceRefused as refused:
        return str(refused)
    return None


def _check_adb_server(phones: Devices) -> list[Finding]:
    from adbutils import AdbError, adb_path  # slow to import, and many farms have no phone

    if phones[0].via and _find_ssh_error(phones[0].name, phones[0].via):
        return []  # reported by `ssh`
    server = adb_server(phones[0])
    try:
        states = server.states()
    except DeviceError as error:
        names = ", ".join(spec.name for spec in phones)
        return [fix(str(DeviceError(names, error.cause, error.remedy)))]
    except (AdbError, EOFError, OSError) as error:
        text = f"what listens on {server.where} does not answer as an adb server ({str(error) or type(error).__name__})"
        return [fix(f"{text}; end that process, then run `adb devices`")]
    finally:
        server.close()
    if states is None:
        text = f"no adb server on {server.where}"
        if phones[0].via:
            return [ok(f"{text}; a sweep starts it there")]
        try:
            return [ok(f"{text}; a sweep starts {adb_path()}")]
        except AdbError:
            return [fix(f"{text} and no program `adb`; install Android's platform-tools")]
    by_name = {spec.name: states.get(adb_serial(spec)) for spec in phones}
    waiting = [
        fix(f"{name}: {state} at the adb server on {server.where}; unlock it and confirm the request on its screen")
        for name, state in by_name.items()
        if state in ("unauthorized", "authorizing", "offline")
    ]
    ready = sum(state == "device" for state in by_name.values())
    return waiting or [ok(f"{ready} of {len(phones)} phones connected to the adb server on {server.where}")]
