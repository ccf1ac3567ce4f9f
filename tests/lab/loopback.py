"""The lab's daemons without root: a real sshd, a real adbd and an adb server on loopback ports of this machine.

They serve this machine's shell: adbd to every local user, sshd to the holder of a key that is made for it. Each is a
context manager that ends what it started and removes its folder.
"""

import contextlib
import functools
import ipaddress
import os
import pwd
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tests.lab import adb_server as adb
from tests.lab import processes
from tests.lab.journal import LabError, run_tool
from tests.lab.packages import Packages, own_loader
from tests.lab.ssh_access import host_entry

_READY_S = 60.0
_PORTS_TRIED = 5
_END_S = 30.0
_LOOPBACK = ipaddress.ip_address("::ffff:127.0.0.1").packed
_T = TypeVar("_T")


@dataclass(frozen=True)
class Sshd:
    """A running sshd and how to reach it; its host in `ssh_config` is `loopback`.

    `program` is the path of sshd; `programs` is an empty folder, the first one that its commands search.
    """

    program: str
    config: Path
    port: int
    user: str
    identity_file: Path
    known_hosts: Path
    ssh_config: Path
    programs: Path


@dataclass(frozen=True)
class Adbd:
    port: int


_SSHD = """ListenAddress 127.0.0.1:{port}
HostKey "{folder}/host_key"
AuthorizedKeysFile "{folder}/authorized_keys"
PidFile none
StrictModes no
UsePAM {pam}
# With a level, bash skips the user's start-up file, which may be slow, print or lock.
SetEnv SHLVL=1 "PATH={folder}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
UseDNS no
PasswordAuthentication no
KbdInteractiveAuthentication no
MaxSessions 100
MaxStartups 100
Subsystem sftp internal-sftp
LogLevel VERBOSE
"""


def sshd() -> AbstractContextManager[Sshd]:
    """Run this machine's sshd for this user on a free loopback port; LabError if openssh-server is not installed."""
    return _on_free_port(_sshd)


def adbd(packages: Packages) -> AbstractContextManager[Adbd]:
    """Run the downloaded adbd on a free loopback port; it serves this machine's shell."""
    return _on_free_port(functools.partial(_adbd, packages))


def adb_server() -> AbstractContextManager[int]:
    """Run a private adb server on a free loopback port and yield the port."""
    return _on_free_port(_adb_server)


@contextlib.contextmanager
def _on_free_port(run: Callable[[int], AbstractContextManager[_T]]) -> Iterator[_T]:
    """Run a daemon on a free port, and on the next if another program takes it before the daemon."""
    with contextlib.ExitStack() as stack:
        for attempt in reversed(range(_PORTS_TRIED)):
            try:
                daemon = stack.enter_context(run(free_port()))
                break
            except LabError:
                if attempt == 0:
                    raise
        yield daemon


@contextlib.contextmanager
def _sshd(port: int) -> Iterator[Sshd]:
    program = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if not program:
        raise LabError("sshd is not installed: run `apt-get install openssh-server`")
    with _folder("sshd") as folder:
        user = pwd.getpwuid(os.geteuid()).pw_name
        _write_sshd_files(program, folder, port, user)
        names = ("id_ed25519", "known_hosts", "ssh_config", "bin")
        server = Sshd(program, folder / "sshd_config", port, user, *(folder / name for name in names))
        command = [program, "-D", "-e", "-f", str(server.config)]
        with running(command, folder / "sshd.log", lambda: listens(port)):
            yield server


@contextlib.contextmanager
def _adbd(packages: Packages, port: int) -> Iterator[Adbd]:
    tree = packages.tree("phone-amd64")
    with _folder("adbd") as folder:
        libraries = folder / "lib"
        libraries.mkdir()
        _write_loopback_libc(tree / "usr/lib/x86_64-linux-gnu/libc.so.6", libraries / "libc.so.6")
        loader, option, path = own_loader(tree)
        program = tree / "usr/lib/android-sdk/platform-tools/adbd"
        command = [loader, option, f"{libraries}:{path}", str(program)]
        environment = {**os.environ, "ADBD_PORT": str(port)}
        with running(command, folder / "adbd.log", lambda: listens(port), environment):
            yield Adbd(port)


@contextlib.contextmanager
def _adb_server(port: int) -> Iterator[int]:
    with _folder("adb") as folder:
        command = adb.server_command(port)
        environment = adb.server_environment(folder / "home")
        with running(command, folder / "adb.log", lambda: adb.answers(port), environment):
            yield port
            adb.stop(port)  # a client may have replaced it by another one


@contextlib.contextmanager
def running(
    command: list[str], log: Path, ready: Callable[[], bool], environment: dict[str, str] | None = None
) -> Iterator[None]:
    """Run `command` until the block ends, then end it and its descendants; begins the block once it is ready.

    Raises LabError with the last line of its log if it is not ready within a minute.
    """
    with log.open("wb") as output:
        options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output, "cwd": log.parent}
        process = subprocess.Popen(command, env=environment, start_new_session=True, **options)
    try:
        end = time.monotonic() + _READY_S
        while not ready():
            if process.poll() is not None or time.monotonic() > end:
                lines = log.read_text(errors="replace").strip().splitlines() or ["it printed nothing"]
                raise LabError(f"{Path(command[0]).name} did not start: {lines[-1]}")
            time.sleep(0.01)
        yield
    finally:
        descendants = processes.descendants(process.pid)
        process.kill()
        process.wait(_END_S)
        for pid in descendants:
            processes.kill(pid)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def _folder(name: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix=f"etfarm-{name}-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _write_sshd_files(program: str, folder: Path, port: int, user: str) -> None:
    (folder / "bin").mkdir()
    for name in ("host_key", "id_ed25519"):
        run_tool("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "etfarm loopback", "-f", folder / name)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # sshd requires it; its package's service creates it too
    config = _SSHD.format(port=port, folder=folder, pam="yes" if _is_locked(user) else "no")
    if _version(program) >= (9, 8):
        config += "PerSourcePenalties no\n"
    (folder / "sshd_config").write_text(config)
    (folder / "ssh_config").write_text(host_entry("loopback", "127.0.0.1", port, user, folder))
    (folder / "authorized_keys").write_text((folder / "id_ed25519.pub").read_text())
    key = " ".join((folder / "host_key.pub").read_text().split()[:2])
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {key}\n")


def _write_loopback_libc(libc: Path, into: Path) -> None:
    """Write a copy of `libc` whose "any address" is the loopback address.

    adbd listens on every address of the machine, and Debian's accepts every client: started on your machine, it would
    give the network your shell. It has no option for its address; it passes the C library's constant `in6addr_any` to
    bind(). LIEF finds the constant, but would rearrange a file that it writes.
    """
    import lief  # the lab's `down` also runs under a Python that does not have it

    binary = lief.ELF.parse(libc)
    constant = binary.get_dynamic_symbol("in6addr_any") if binary else None
    place = binary.virtual_address_to_offset(constant.value) if binary and constant else None
    if not isinstance(place, int):
        raise LabError(f"{libc} does not define in6addr_any")
    data = bytearray(libc.read_bytes())
    data[place : place + len(_LOOPBACK)] = _LOOPBACK
    into.write_bytes(data)


def _version(program: str) -> tuple[int, int]:
    """Return sshd's version; before 9.2 it rejects -V, with its version in the error message."""
    done = subprocess.run([program, "-V"], capture_output=True, text=True, check=False)
    found = re.search(r"OpenSSH_(\d+)\.(\d+)", done.stderr + done.stdout)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _is_locked(user: str) -> bool:
    """Return whether the account has no password: without PAM, sshd then rejects its keys as well."""
    try:
        lines = Path("/etc/shadow").read_text().splitlines()
    except PermissionError:
        return False  # a sshd of this user cannot read it either
    return any(line.startswith(f"{user}:!") for line in lines)


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
