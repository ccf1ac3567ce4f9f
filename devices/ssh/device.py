"""A macOS or Linux host over SSH as a device."""

import select
import signal
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

import paramiko

from devices.bounded import check_fetchable, save
from devices.device import FILE_LIMIT_BYTES, CommandResult, Device
from devices.errors import DeadlineExceeded, DeviceLost, DeviceRefused, FileMissing, NoSpaceOnDevice, TransferFailed
from devices.shell import command_line, end_group_line, free_bytes, make_folder, take_pid
from devices.ssh.config import SshAddress
from devices.ssh.connect import Connection, connect

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
    """Runs commands over channels of one connection, which is opened on first use and reopened after it broke."""

    def __init__(self, name: str, root: str, where: SshAddress, platform: str | None = None) -> None:
        super().__init__(name, root, platform)
        self._where = where
        self._lock = threading.Lock()
        # Several threads that wait for answers of one SFTP session would take each other's.
        self._transferring = threading.Lock()
        self._connection: Connection | None = None
        self._sftp: paramiko.SFTPClient | None = None

    def run(
        self,
        argv: Sequence[str],
        *,
        deadline_s: float,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> CommandResult:
        """See Device.run."""
        begun = time.monotonic()
        with self._live_transport() as transport:
            end = time.monotonic() + deadline_s
            channel = self._start(transport, command_line(argv, env, cwd))
            try:
                streams = _Streams(self.name, channel, self.output_limit_bytes)
                if not self._read_until_end(transport, streams, end):
                    self._end_group(transport, streams.pid)
                    if streams.too_long():
                        raise self.too_long(argv)
                    cause = f"`{argv[0]}` ran longer than its deadline of {deadline_s:g} s and was killed"
                    raise DeadlineExceeded(self.name, cause)
                code, number = self._exit_of(channel)
            finally:
                channel.close()
        out, err = bytes(streams.stdout), bytes(streams.stderr)
        return CommandResult(tuple(argv), code, number, out, err, time.monotonic() - begun)

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
                    save(self.name, remote, _chunks(file, size_bytes), local, limit_bytes)
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
        self._connection = self._sftp = None

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

    def _start(self, transport: paramiko.Transport, line: str) -> paramiko.Channel:
        try:
            channel = transport.open_session(timeout=SILENCE_S)
        except paramiko.ChannelException as error:
            raise self._too_many_sessions(error) from None
        with _answer_within(transport, SILENCE_S):
            channel.exec_command(line)
        return channel

    def _read_until_end(self, transport: paramiko.Transport, streams: "_Streams", end: float) -> bool:
        """Read both streams until the command ends; False if `end` (monotonic, seconds) or their limit comes first."""
        last_received = time.monotonic()
        while not streams.complete():
            now = time.monotonic()
            if now >= end or streams.too_long():
                return False
            if now - last_received > SILENCE_S:
                # The SSH server answers without starting a process; detects a link that discards all data.
                with _answer_within(transport, SILENCE_S):
                    transport.global_request("keepalive@openssh.com", wait=True)
                last_received = time.monotonic()
            if streams.read(min(end - now, SILENCE_S)):
                last_received = time.monotonic()
        return True

    def _exit_of(self, channel: paramiko.Channel) -> tuple[int | None, int | None]:
        """Return (exit code, signal); raises EOFError if the channel closed without either."""
        name = getattr(channel, "exit_signal", None)
        if name is not None:
            return None, getattr(signal, f"SIG{name}", signal.SIGKILL).value
        status = channel.recv_exit_status()
        if status < 0:
            raise EOFError("the connection ended during a command")
        return status, None

    def _end_group(self, transport: paramiko.Transport, pid: int | None) -> None:
        """Kill the process group over another channel; raises TimeoutError if the host does not do it."""
        if pid is None:
            raise TimeoutError("a command did not start before its deadline")
        channel = self._start(transport, end_group_line(pid))
        try:
            streams = _Streams(self.name, channel, self.output_limit_bytes)
            if not self._read_until_end(transport, streams, time.monotonic() + SILENCE_S):
                raise TimeoutError("a command over its deadline could not be killed")
        finally:
            channel.close()

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
def _answer_within(transport: paramiko.Transport, wait_s: float) -> Iterator[None]:
    """Close the connection if a request in the block has no answer within `wait_s`; paramiko has no timeout for it."""
    timer = threading.Timer(wait_s, transport.close)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
    if not transport.is_active():
        raise EOFError(f"no answer within {wait_s:g} s")


class _Streams:
    """The output of a command on its channel so far. The process id was the first line of stdout and is removed."""

    def __init__(self, name: str, channel: paramiko.Channel, limit_bytes: int) -> None:
        self.pid: int | None = None
        self._name = name
        self._limit_bytes = limit_bytes
        self.stdout = bytearray()
        self.stderr = bytearray()
        self._channel = channel

    def complete(self) -> bool:
        """Return whether the command ended and all of its output was read."""
        channel = self._channel
        unread = channel.recv_ready() or channel.recv_stderr_ready()
        ended = channel.closed or (channel.eof_received and channel.exit_status_ready())
        return bool(ended and not unread and not channel.recv_ready() and not channel.recv_stderr_ready())

    def too_long(self) -> bool:
        """Return whether more than the limit was printed."""
        return len(self.stdout) + len(self.stderr) > self._limit_bytes

    def read(self, wait_s: float) -> bool:
        """Wait up to `wait_s` for output and read it; return whether there was any."""
        channel = self._channel
        if channel.eof_received:
            channel.status_event.wait(0.05)  # the descriptor stays readable after the end of the streams
        else:
            select.select([channel], [], [], wait_s)
        before = len(self.stdout) + len(self.stderr)
        if channel.recv_ready():
            self.stdout += channel.recv(_CHUNK)
        if channel.recv_stderr_ready():
            self.stderr += channel.recv_stderr(_CHUNK)
        received = len(self.stdout) + len(self.stderr) > before
        if self.pid is None:
            self.pid = take_pid(self._name, self.stdout)
        return received
