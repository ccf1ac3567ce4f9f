"""A macOS or Linux host over SSH as a device, and a host whose connection several users share to reach its ports."""

import threading
import time
import uuid
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

import paramiko
from paramiko.common import OPEN_FAILED_CONNECT_FAILED

from devices import retry
from devices.device import FILE_LIMIT_BYTES, CommandResult, Device
from devices.errors import DeviceLost, DeviceRefused, FileMissing, NoSpaceOnDevice, TransferFailed
from devices.shell import available_bytes, call, end_group_words
from devices.ssh.config import SshAddress
from devices.ssh.connect import Connection, connect
from devices.ssh.shell import RemoteShell, answer_within
from devices.untrusted import check_fetchable, save_fetched

# The longest answer of OpenSSH's SFTP server. With it a download needs no read-ahead, whose thread in paramiko prints
# a trace if the link breaks.
_CHUNK = 255 << 10
_LOOPBACK = "127.0.0.1"
# The hosts in use, so that all phones of a lab host share one connection to it.
_hosts: "weakref.WeakValueDictionary[SshAddress, SharedHost]" = weakref.WeakValueDictionary()
_hosts_lock = threading.Lock()


class SshDevice(Device):
    """Runs commands in a shell over one connection, which is opened on first use and reopened after it broke.

    Commands of several threads run in a shell each; one shell is kept for the next command.
    """

    def __init__(self, name: str, root: str, where: SshAddress, platform: str | None = None) -> None:
        super().__init__(name, root, platform)
        self._where = where
        self._lock = threading.Lock()
        # Held during a transfer: several threads on one SFTP session would take each other's answers.
        self._transferring = threading.Lock()
        self._connection: Connection | None = None
        self._sftp: paramiko.SFTPClient | None = None
        self._idle: RemoteShell | None = None

    def run(self, argv: Sequence[str], *, deadline_s: float) -> CommandResult:
        with self._live_transport() as transport:
            end = time.monotonic() + deadline_s
            with self._shell(transport) as shell:
                if shell.run(argv, end, self.output_limit_bytes):
                    return shell.result()
                if shell.pid is None:
                    raise TimeoutError("a command did not start before its deadline")
                with self._shell(transport) as other:  # kills the first one with all that it started
                    end = time.monotonic() + retry.SSH_SILENCE.timeout_s
                    if not other.run(end_group_words(shell.pid), end, self.output_limit_bytes):
                        raise TimeoutError("a command over its deadline could not be killed")
                is_long = shell.size_bytes > self.output_limit_bytes
                raise self.output_error(argv) if is_long else self.deadline_error(argv, deadline_s)

    def upload(self, local: Path, remote: str) -> None:
        part = f"{remote}.{uuid.uuid4().hex[:8]}.part"
        try:
            with local.open("rb") as source, self._transfer() as sftp:
                try:
                    sftp.putfo(source, part)
                except FileNotFoundError:
                    call(self, ["mkdir", "-p", "--", str(PurePosixPath(remote).parent)])
                    source.seek(0)
                    sftp.putfo(source, part)
                sftp.posix_rename(part, remote)
        except OSError as error:
            if local.is_file():
                with suppress(OSError, DeviceLost), self._transfer() as sftp:
                    sftp.remove(part)
                # SFTP reports a full disk only as `Failure`.
                df = self.run(["df", "-Pk", "--", str(PurePosixPath(remote).parent)], deadline_s=retry.SCRIPT.timeout_s)
                free = available_bytes(df.stdout.decode(errors="replace"))
                if free is not None and free < local.stat().st_size:
                    raise NoSpaceOnDevice(self.name, f"no space left for {remote}", "free space there") from None
            raise TransferFailed(self.name, f"cannot upload the local file {local} to {remote} ({error})") from None

    def fetch(self, remote: str, local: Path, *, limit_bytes: int = FILE_LIMIT_BYTES) -> None:
        try:
            with self._transfer() as sftp:
                status = sftp.lstat(remote)
                size_bytes = status.st_size or 0
                check_fetchable(self.name, remote, status.st_mode or 0, size_bytes, limit_bytes)
                with sftp.open(remote, "rb") as file:
                    file.MAX_REQUEST_SIZE = _CHUNK
                    save_fetched(self.name, remote, _chunks(file, size_bytes), local, limit_bytes)
        except FileNotFoundError:
            raise FileMissing(self.name, f"file {remote} does not exist on the device") from None
        except OSError as error:
            raise TransferFailed(self.name, f"cannot fetch {remote} to {local} ({error})") from None

    def close(self) -> None:
        with self._lock:
            self._disconnect()

    def _disconnect(self) -> None:
        """Close the connection if there is one; the caller holds `_lock`."""
        if self._connection is not None:
            self._connection.close()
        self._connection = self._sftp = self._idle = None

    @contextmanager
    def _live_transport(self) -> Iterator[paramiko.Transport]:
        """Yield an active transport; connection errors are raised as DeviceLost, and the next use reconnects."""
        with self._lock:
            if self._connection is None or not self._connection.transport.is_active():
                self._disconnect()
                self._connection = connect(self.name, self._where)
                self._connection.transport.set_keepalive(int(retry.SSH_KEEPALIVE.within_s))
            transport = self._connection.transport
        try:
            yield transport
        except (paramiko.SSHException, paramiko.SFTPError, EOFError, TimeoutError, ConnectionError) as error:
            transport.close()
            cause = str(error) or type(error).__name__
            raise DeviceLost(self.name, f"stopped answering ({cause})", "check its network and power") from None

    @contextmanager
    def _transfer(self) -> Iterator[paramiko.SFTPClient]:
        """Yield the SFTP session of the connection; errors of the remote file system are raised as OSError."""
        with self._transferring, self._live_transport() as transport:
            with self._lock:
                sftp = self._sftp
                if sftp is None or sftp.get_channel().closed:  # type: ignore[union-attr]
                    sftp = self._sftp = self._open_sftp(transport)
            # A frozen host costs this time twice: in the transfer, and when paramiko closes the file afterwards.
            sftp.get_channel().settimeout(retry.SSH_SILENCE.timeout_s)  # type: ignore[union-attr]
            try:
                yield sftp
            except OSError:
                if not transport.is_active() or sftp.get_channel().closed:  # type: ignore[union-attr]
                    raise EOFError("the connection ended during a transfer") from None
                raise

    def _open_sftp(self, transport: paramiko.Transport) -> paramiko.SFTPClient:
        """Open an SFTP session; raises DeviceRefused if the server offers none, or no further session."""
        try:
            with answer_within(transport):
                sftp = paramiko.SFTPClient.from_transport(transport)
            if sftp is None:
                raise EOFError("the SFTP session could not be opened")
            return sftp
        except paramiko.ChannelException as error:
            raise self._too_many_sessions(error) from None
        except (paramiko.SSHException, paramiko.SFTPError, EOFError) as error:
            if not transport.is_active():
                raise
            cause = f"its SSH server does not offer SFTP ({error or 'no answer'})"
            remedy = "enable `Subsystem sftp internal-sftp` in the host's sshd_config"
            raise DeviceRefused(self.name, cause, remedy) from None

    def _too_many_sessions(self, error: paramiko.ChannelException) -> DeviceRefused:
        cause = f"its SSH server refuses another session on the same connection ({error.text})"
        return DeviceRefused(self.name, cause, "set `MaxSessions 10` or more in the host's sshd_config")

    @contextmanager
    def _shell(self, transport: paramiko.Transport) -> Iterator[RemoteShell]:
        """Yield a shell that no other thread uses. After an error it is closed, otherwise the next command gets it."""
        with self._lock:
            shell, self._idle = self._idle, None
        if shell is None or not shell.is_alive():
            try:
                shell = RemoteShell(self.name, transport)
            except paramiko.ChannelException as error:
                raise self._too_many_sessions(error) from None
        try:
            yield shell
        except BaseException:
            shell.close()
            raise
        with self._lock:
            shell, self._idle = self._idle, shell
        if shell is not None:
            shell.close()


def _chunks(file: paramiko.SFTPFile, size_bytes: int) -> Iterator[bytes]:
    """Yield the content of a file; OSError if it is shorter than `size_bytes`."""
    received = 0
    while chunk := file.read(_CHUNK):
        received += len(chunk)
        yield chunk
    if received < size_bytes:
        raise OSError(f"{received} of {size_bytes} bytes arrived")


class SharedHost(SshDevice):
    """An SSH host with several users; its connection is closed when the last of them releases it."""

    def __init__(self, where: SshAddress) -> None:
        super().__init__(where.address, "/", where)
        self._users: set[int] = set()
        # paramiko keeps one refusal for all channels that are being opened.
        self._opening = threading.Lock()
        self._without_delay: paramiko.Transport | None = None
        """The transport that has TCP_NODELAY."""

    def open_stream(self, user: object, port: int) -> paramiko.Channel:
        """Return a stream to a loopback port of the host, which `user` then uses until it releases the host.

        A connection that turns out to have ended since its last use is replaced once. Raises ConnectionRefusedError if
        nothing listens on the port, otherwise as `run`.
        """
        with self._lock:
            self._users.add(id(user))
            earlier = self._connection
        while True:
            with self._live_transport() as transport, self._opening:
                try:
                    return self._open_channel(transport, port)
                except paramiko.ChannelException as error:  # the connection is still usable
                    refusal = error
                    break
                except (paramiko.SSHException, EOFError, ConnectionError) as error:
                    # paramiko marks a broken connection as inactive only after its streams have failed.
                    is_silent = isinstance(error, paramiko.SSHException) and transport.is_active()
                    if is_silent or earlier is None or transport is not earlier.transport:
                        raise
                    transport.close()
                    earlier = None
        if refusal.code == OPEN_FAILED_CONNECT_FAILED:
            raise ConnectionRefusedError(f"nothing listens on port {port}")
        cause = f"its SSH server does not forward connections to port {port} ({refusal.text})"
        raise DeviceRefused(self.name, cause, "set `AllowTcpForwarding yes` in the host's sshd_config")

    def _open_channel(self, transport: paramiko.Transport, port: int) -> paramiko.Channel:
        """Return a channel to a loopback port of the host; only one thread may open channels at a time."""
        if self._without_delay is not transport:
            # OpenSSH sets TCP_NODELAY at the first command; without it, answers in two packets take 40 ms more.
            with self._shell(transport):
                pass
            self._without_delay = transport
        return transport.open_channel(
            "direct-tcpip", (_LOOPBACK, port), (_LOOPBACK, 0), timeout=retry.SSH_SILENCE.timeout_s
        )

    def release(self, user: object) -> None:
        """End the connection if `user` was the last one to use it."""
        with self._lock:
            self._users.discard(id(user))
            if not self._users:
                self._disconnect()


def shared_host(where: SshAddress) -> SharedHost:
    """Return the host at an address; the same object for all callers as long as one of them keeps it."""
    with _hosts_lock:
        host = _hosts.get(where)
        if host is None:
            host = _hosts[where] = SharedHost(where)
        return host
