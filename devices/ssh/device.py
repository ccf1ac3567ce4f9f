"""A macOS or Linux host over SSH as a device."""

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

import paramiko

from devices.device import FILE_LIMIT_BYTES, Device, Ended
from devices.errors import DeadlineExceeded, DeviceLost, DeviceRefused, FileMissing, NoSpaceOnDevice, TransferFailed
from devices.shell import free_bytes, make_folder, script_text, split_status
from devices.ssh.config import SshAddress
from devices.ssh.connect import Connection, connect
from devices.ssh.shell import SHELL_LINE, RemoteShell
from devices.untrusted import check_fetchable, save_fetched

# After so much silence the farm checks whether the host still answers, and waits as long for the answer.
SILENCE_S = 6.0
_CHUNK = 1 << 18
_prefetch = paramiko.SFTPFile._prefetch_thread  # type: ignore[attr-defined]


def _prefetch_quietly(file: paramiko.SFTPFile, *arguments: object) -> None:
    """Suppress errors in paramiko's prefetch thread, which prints them; the download reports a broken link itself."""
    with suppress(EOFError, OSError, paramiko.SSHException):
        _prefetch(file, *arguments)


paramiko.SFTPFile._prefetch_thread = _prefetch_quietly  # type: ignore[attr-defined]


class SshDevice(Device):
    """Runs commands in a shell over one connection, which is opened on first use and reopened after it broke.

    Commands of several threads run in a shell each; one shell is kept for the next command.
    """

    def __init__(self, name: str, root: str, where: SshAddress, platform: str | None = None) -> None:
        super().__init__(name, root, platform)
        self._where = where
        self._lock = threading.Lock()
        # Several threads that wait for answers of one SFTP session would take each other's.
        self._transferring = threading.Lock()
        self._connection: Connection | None = None
        self._sftp: paramiko.SFTPClient | None = None
        self._idle: RemoteShell | None = None

    def execute(self, argv: Sequence[str], deadline_s: float, env: Mapping[str, str] | None, cwd: str | None) -> Ended:
        """See Device.run. Exit codes 129 to 159 are reported as signals: the shell cannot tell the difference."""
        with self._live_transport() as transport:
            end = time.monotonic() + deadline_s
            with self._shell(transport) as shell:
                if not self._run_in(transport, shell, argv, env, cwd, end):
                    self._end_group(transport, shell.pid)
                    if shell.size_bytes > self.output_limit_bytes:
                        raise self.too_long(argv)
                    cause = f"`{argv[0]}` ran longer than its deadline of {deadline_s:g} s and was killed"
                    raise DeadlineExceeded(self.name, cause)
                status, out, err = shell.result()
        code, number = split_status(status)
        return code, number, out, err

    def upload(self, local: Path, remote: str) -> None:
        """See Device.upload."""
        part = f"{remote}.{uuid.uuid4().hex[:8]}.part"
        try:
            with local.open("rb") as source, self._transfer() as sftp:
                try:
                    sftp.putfo(source, part)
                except FileNotFoundError:
                    make_folder(self, str(PurePosixPath(remote).parent))
                    source.seek(0)
                    sftp.putfo(source, part)
                sftp.posix_rename(part, remote)
        except OSError as error:
            with suppress(OSError, DeviceLost), self._transfer() as sftp:
                sftp.remove(part)
            raise self._upload_error(local, remote, error) from None

    def fetch(self, remote: str, local: Path, *, limit_bytes: int = FILE_LIMIT_BYTES) -> None:
        """See Device.fetch."""
        try:
            with self._transfer() as sftp:
                status = sftp.lstat(remote)
                size_bytes = status.st_size or 0
                check_fetchable(self.name, remote, status.st_mode or 0, size_bytes, limit_bytes)
                with sftp.open(remote, "rb") as file:
                    save_fetched(self.name, remote, _chunks(file, size_bytes), local, limit_bytes)
        except FileNotFoundError:
            raise FileMissing(self.name, f"file {remote} does not exist on the device") from None
        except OSError as error:
            raise TransferFailed(self.name, f"cannot fetch {remote} to {local} ({error})") from None

    def close(self) -> None:
        """See Device.close."""
        with self._lock:
            self._disconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._sftp = self._idle = None

    def _transport(self) -> paramiko.Transport:
        with self._lock:
            if self._connection is None or not self._connection.transport.is_active():
                self._disconnect()
                self._connection = connect(self.name, self._where)
                self._connection.transport.set_keepalive(3)
            return self._connection.transport

    @contextmanager
    def _live_transport(self) -> Iterator[paramiko.Transport]:
        """Yield an active transport; connection errors are raised as DeviceLost, and the next use reconnects."""
        transport = self._transport()
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
                if self._sftp is None or self._sftp.get_channel().closed:  # type: ignore[union-attr]
                    self._sftp = self._open_sftp(transport)
                sftp = self._sftp
            if sftp is None:
                raise EOFError("the SFTP session could not be opened")
            # A frozen host costs this time twice: in the transfer, and when paramiko closes the file afterwards.
            sftp.get_channel().settimeout(SILENCE_S)  # type: ignore[union-attr]
            try:
                yield sftp
            except OSError:
                if not transport.is_active() or sftp.get_channel().closed:  # type: ignore[union-attr]
                    raise EOFError("the connection ended during a transfer") from None
                raise

    def _open_sftp(self, transport: paramiko.Transport) -> paramiko.SFTPClient | None:
        try:
            with _answer_within(transport, SILENCE_S):
                return paramiko.SFTPClient.from_transport(transport)
        except paramiko.ChannelException as error:
            raise self._too_many_sessions(error) from None
        except (paramiko.SSHException, paramiko.SFTPError, EOFError) as error:
            if not transport.is_active():
                raise
            way_on = "enable `Subsystem sftp internal-sftp` in the host's sshd_config"
            raise DeviceRefused(
                self.name, f"its SSH server does not offer SFTP ({error or 'no answer'})", way_on
            ) from None

    def _too_many_sessions(self, error: paramiko.ChannelException) -> DeviceRefused:
        cause = f"its SSH server refuses another session on the same connection ({error.text})"
        return DeviceRefused(self.name, cause, "set `MaxSessions 10` or more in the host's sshd_config")

    @contextmanager
    def _shell(self, transport: paramiko.Transport) -> Iterator[RemoteShell]:
        """Yield a shell that no other thread uses. After an error it is closed, otherwise the next command gets it."""
        with self._lock:
            shell, self._idle = self._idle, None
        if shell is None or not shell.is_alive():
            shell = self._open_shell(transport)
        try:
            yield shell
        except BaseException:
            shell.close()
            raise
        with self._lock:
            shell, self._idle = self._idle, shell
        if shell is not None:
            shell.close()

    def _open_shell(self, transport: paramiko.Transport) -> RemoteShell:
        try:
            channel = transport.open_session(timeout=SILENCE_S)
        except paramiko.ChannelException as error:
            raise self._too_many_sessions(error) from None
        with _answer_within(transport, SILENCE_S):
            channel.exec_command(SHELL_LINE)
        return RemoteShell(self.name, channel, SILENCE_S)

    def _run_in(
        self,
        transport: paramiko.Transport,
        shell: RemoteShell,
        argv: Sequence[str],
        env: Mapping[str, str] | None,
        cwd: str | None,
        end: float,
    ) -> bool:
        """Run a command in a shell; False if `end` (monotonic, seconds) or the limit of its output comes first."""
        if not self._read_until(shell.is_ready, transport, shell, end):
            return False
        shell.begin(argv, env, cwd)
        return self._read_until(shell.is_complete, transport, shell, end)

    def _read_until(
        self, is_reached: Callable[[], bool], transport: paramiko.Transport, shell: RemoteShell, end: float
    ) -> bool:
        """Read both streams until `is_reached`; False if `end` (monotonic, seconds) or their limit comes first."""
        last_received = time.monotonic()
        while not is_reached():
            now = time.monotonic()
            if now >= end or shell.size_bytes > self.output_limit_bytes:
                return False
            if now - last_received > SILENCE_S:
                # The SSH server answers without starting a process; detects a link that discards all data.
                with _answer_within(transport, SILENCE_S, silent_since=last_received):
                    transport.global_request("keepalive@openssh.com", wait=True)
                last_received = time.monotonic()
            if shell.read(min(end - now, SILENCE_S)):
                last_received = time.monotonic()
        return shell.size_bytes <= self.output_limit_bytes

    def _end_group(self, transport: paramiko.Transport, pid: int | None) -> None:
        """Kill a shell with all that it started, over another one; raises TimeoutError if the host does not do it."""
        if pid is None:
            raise TimeoutError("a command did not start before its deadline")
        with self._shell(transport) as shell:
            argv, end = ["sh", "-c", script_text("end_group"), "sh", str(pid)], time.monotonic() + SILENCE_S
            if not self._run_in(transport, shell, argv, None, None, end):
                raise TimeoutError("a command over its deadline could not be killed")

    def _upload_error(self, local: Path, remote: str, error: OSError) -> TransferFailed:
        """Return the error of an upload. SFTP reports a full disk only as `Failure`, so the free space is read."""
        if not local.is_file():
            return TransferFailed(self.name, f"the local file {local} does not exist")
        free = free_bytes(self, str(PurePosixPath(remote).parent))
        if free is not None and free < local.stat().st_size:
            return NoSpaceOnDevice(self.name, f"no space left for {remote}", "free space there")
        return TransferFailed(self.name, f"cannot upload {local} to {remote} ({error})")


def _chunks(file: paramiko.SFTPFile, size_bytes: int) -> Iterator[bytes]:
    """Yield the content of a file, of which the first `size_bytes` are requested ahead; OSError if it is shorter."""
    if size_bytes:
        file.prefetch(size_bytes)
    received = 0
    while chunk := file.read(_CHUNK):
        received += len(chunk)
        yield chunk
    if received < size_bytes:
        raise OSError(f"{received} of {size_bytes} bytes arrived")


@contextmanager
def _answer_within(transport: paramiko.Transport, wait_s: float, silent_since: float | None = None) -> Iterator[None]:
    """Close the connection if a request in the block has no answer within `wait_s`; paramiko has no timeout for it.

    The error states how long the peer was silent: since the block began, or since `silent_since` (monotonic, seconds).
    """
    silent_since = time.monotonic() if silent_since is None else silent_since
    is_late = threading.Event()

    def give_up() -> None:
        is_late.set()
        transport.close()

    timer = threading.Timer(wait_s, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
    if is_late.is_set():
        raise EOFError(f"no answer for {time.monotonic() - silent_since:.0f} s")
    if not transport.is_active():
        raise EOFError("the connection ended")
