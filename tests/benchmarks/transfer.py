"""100 MB to a host over SSH and to a phone over adb, beside `scp` and `adb push`: new, a second time, at 40 ms.

Run: python tests/benchmarks/transfer.py

Needs sshd, scp and the virtual lab's packages (fetched once); whatever is missing is said and left out. Both daemons
are on this machine's loopback address, and 40 ms is the round trip of a proxy in front of them.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from adbutils import adb_path

from devices.device import Device
from devices.inventory import DeviceSpec, open_device
from devices.ondevice.store import put, remove
from devices.reconnect import probe
from tasks.store.files import sha256_of
from tests.lab import adb_server, loopback
from tests.lab.journal import LabError
from tests.lab.link_proxy import LinkProxy
from tests.lab.packages import PackageError, Packages, default_cache

SIZE_BYTES = 100_000_000
TIMES = 3
ROUND_TRIP_S = 0.04


@dataclass(frozen=True)
class Way:
    """One kind of device: how the farm reaches it, and the tool that a person would use instead."""

    tool: str
    device: Device
    push_with_tool: Callable[[Path, str], None]


def main() -> None:
    """Print seconds and ratios for each kind of device, direct and through a slow link."""
    print(f"{SIZE_BYTES // 10**6} MB of random bytes to daemons on this machine, one run, median of {TIMES} in turn")
    print("sent: as the tool sends it; push: with its hash checked on the device, and the rename; second: again")
    columns = ("way", "link", "tool", "sent", "sent/tool", "push", "push/tool", "second")
    print("{:>4} {:>6} {:>8} {:>8} {:>9} {:>8} {:>9} {:>8}".format(*columns))
    with tempfile.TemporaryDirectory(prefix="etfarm-transfer-") as folder:
        for name, way_through in (("ssh", over_ssh), ("adb", over_adb)):
            for delay_s in (0.0, ROUND_TRIP_S / 2):
                try:
                    with way_through(Path(folder), delay_s) as way:
                        report(name, way, Path(folder), delay_s)
                except (LabError, PackageError) as error:
                    print(f"{name:>4} left out: {error}")


def report(name: str, way: Way, folder: Path, delay_s: float) -> None:
    """Time the tool and the farm in turn, each time with new content, then the farm's second push of it."""
    device, target = way.device, f"{way.device.root}/sent"
    probe(device)
    times: dict[str, list[float]] = {"tool": [], "sent": [], "push": [], "second": []}
    source = folder / "content"
    for _ in range(TIMES):
        source.write_bytes(os.urandom(SIZE_BYTES))
        sha256 = sha256_of(source)
        times["tool"].append(seconds(partial(way.push_with_tool, source, target)))
        remove(device, target)
        times["sent"].append(seconds(partial(device.upload, source, target)))
        remove(device, target)
        for column in ("push", "second"):
            times[column].append(seconds(partial(put, device, source, sha256)))
        remove(device, f"{device.root}/blobs/{sha256}")
    tool, sent, push, second = (sorted(column)[TIMES // 2] for column in times.values())
    link = f"{2e3 * delay_s:.0f} ms" if delay_s else "direct"
    figures = f"{tool:6.2f} s {sent:6.2f} s {sent / tool:8.2f}x {push:6.2f} s {push / tool:8.2f}x {second:6.2f} s"
    print(f"{name:>4} {link:>6} {figures}  ({way.tool})")


@contextmanager
def over_ssh(folder: Path, delay_s: float) -> Iterator[Way]:
    """This machine's sshd, through the farm and through scp with the same key."""
    if not shutil.which("scp"):
        raise LabError("there is no scp: apt-get install openssh-client")
    with loopback.sshd() as server, slowed(server.port, delay_s) as port, ExitStack() as stack:
        known_hosts = folder / "known_hosts"
        key = server.known_hosts.read_text(encoding="utf-8").split(" ", 1)[1]
        known_hosts.write_text(f"[127.0.0.1]:{port} {key}", encoding="utf-8")
        spec = DeviceSpec(
            name="ssh",
            transport="ssh",
            address="127.0.0.1",
            port=port,
            root=str(server.root),
            identity_file=server.identity_file,
            known_hosts=known_hosts,
        )
        options = ["-q", "-P", str(port), "-i", str(server.identity_file), "-o", f"UserKnownHostsFile={known_hosts}"]

        def scp(source: Path, target: str) -> None:
            subprocess.run(["scp", *options, str(source), f"{server.user}@127.0.0.1:{target}"], check=True)

        yield Way("scp", stack.enter_context(open_device(spec)), scp)


@contextmanager
def over_adb(folder: Path, delay_s: float) -> Iterator[Way]:
    """The real adbd, through the farm and through `adb push` with the same adb server."""
    packages = Packages(default_cache())
    with (
        loopback.adbd(packages) as phone,
        loopback.adb_server() as server_port,
        slowed(phone.port, delay_s) as port,
    ):
        serial = f"127.0.0.1:{port}"
        if adb_server.connect(serial, server_port) != "device":
            raise LabError(f"adb cannot use {serial}")
        spec = DeviceSpec(
            name="adb", transport="adb", address=serial, adb_server_port=server_port, root=str(phone.root)
        )
        command = [adb_path(), "-P", str(server_port), "-s", serial, "push"]

        def push(source: Path, target: str) -> None:
            subprocess.run([*command, str(source), target], check=True, capture_output=True)

        with open_device(spec) as device:
            yield Way("adb push", device, push)


@contextmanager
def slowed(port: int, delay_s: float) -> Iterator[int]:
    """The port itself, or one of a proxy that delivers every byte so much later."""
    if not delay_s:
        yield port
        return
    with LinkProxy("127.0.0.1", port) as link:
        link.delay_s = delay_s
        yield link.port


def seconds(work: Callable[[], object]) -> float:
    """Return the wall time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
