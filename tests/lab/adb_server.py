"""The lab's private adb server: separate port and home, without USB, emulators and discovery on the network."""

import contextlib
import os
import socket
import time
from pathlib import Path

PORT = 15037


class AdbServerError(Exception):
    """The adb server does not answer, or rejected a request; the text is one sentence."""


def server_command(port: int) -> list[str]:
    """Return the command that serves loopback port `port` in the foreground, with the farm's own adb."""
    from adbutils import adb_path  # `down` also runs under a Python that does not have it

    return [adb_path(), "-P", str(port), "nodaemon", "server"]


def server_environment(home: Path) -> dict[str, str]:
    """Return an environment that isolates a server: keys in `home`, and none of this machine's real phones."""
    home.mkdir(parents=True, exist_ok=True)
    isolated = {"ADB_MDNS": "0", "ADB_MDNS_OPENSCREEN": "0", "ADB_USB": "0", "ADB_EMU": "0"}
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(home), "TMPDIR": str(home), **isolated}


def ask(request: str, port: int = PORT, *, answer_s: float = 5.0) -> str:
    """Send one request of adb's host protocol (`host:version`, `host:connect:ADDRESS`) and return the answer.

    Raises AdbServerError if there is no server, or with the server's message if it rejects the request.
    """
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=answer_s) as server:
            server.sendall(f"{len(request):04x}{request}".encode())
            stream = server.makefile("rb")
            verdict = stream.read(4)
            answer = stream.read(int(stream.read(4) or b"0", 16)).decode(errors="replace").strip()
    except OSError as error:
        raise AdbServerError(f"the adb server on port {port} does not answer ({error})") from None
    if verdict != b"OKAY":
        raise AdbServerError(answer or f"the adb server on port {port} closed the connection")
    return answer


def answers(port: int = PORT) -> bool:
    try:
        ask("host:version", port)
    except AdbServerError:
        return False
    return True


def state_of(serial: str, port: int = PORT) -> str:
    """Return the phone's state as adb lists it (device, offline, unauthorized), or `absent`."""
    try:
        listed = ask("host:devices", port)
    except AdbServerError:
        return "absent"
    return dict(line.split("\t", 1) for line in listed.splitlines()).get(serial, "absent")


def connect(serial: str, port: int = PORT, *, wait_s: float = 10.0) -> str:
    """Make the server connect to `serial` (host:port); returns the state after at most `wait_s` seconds.

    It reconnects until the state is `device`: the server reports "connected" for a phone that is still offline, and
    keeps stale connections.
    """
    end = time.monotonic() + wait_s
    while (state := state_of(serial, port)) != "device" and time.monotonic() < end:
        with contextlib.suppress(AdbServerError):
            ask(f"host:disconnect:{serial}", port)
        with contextlib.suppress(AdbServerError):
            ask(f"host:connect:{serial}", port)
        settled = time.monotonic() + 1
        while state_of(serial, port) == "offline" and time.monotonic() < settled:
            time.sleep(0.02)
        time.sleep(0.05)
    return state


def stop(port: int = PORT) -> None:
    """End the server, if there is one."""
    with contextlib.suppress(AdbServerError):
        ask("host:kill", port)
