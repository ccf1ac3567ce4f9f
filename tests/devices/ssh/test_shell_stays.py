"""The shell on a host that runs one command after the other."""

import os
import signal
from collections.abc import Callable, Iterator

import pytest
from paramiko.buffered_pipe import BufferedPipe

from devices.device import Device
from devices.errors import DeadlineExceeded
from devices.inventory import DeviceSpec, open_device
from devices.ssh.shell import Arrived, Framed
from tests.fixtures.waiting import ENOUGH_S, SCALE, wait_for

PARENT = ["sh", "-c", "echo $PPID"]


@pytest.fixture
def host(make_spec: Callable[..., DeviceSpec]) -> Iterator[Device]:
    with open_device(make_spec("ssh")) as device:
        yield device


def shell_of(device: Device) -> int:
    return int(device.run(PARENT, deadline_s=ENOUGH_S).stdout)


@pytest.mark.lab
def test_commands_share_a_shell_and_nothing_else(host: Device) -> None:
    shell = shell_of(host)
    assert host.run(["sh", "-c", "export LEFT=1; cd /; exit 3"], deadline_s=ENOUGH_S).exit_code == 3
    result = host.run(["sh", "-c", 'echo $PPID "$LEFT" "$PWD"'], deadline_s=ENOUGH_S)
    assert result.stdout.decode().split() == [str(shell), os.path.expanduser("~")]  # noqa: PTH111
    assert result.stderr == b""


@pytest.mark.lab
@pytest.mark.fault
def test_a_shell_that_a_deadline_ended_or_that_was_killed_is_replaced(
    host: Device, alive: Callable[[int], bool]
) -> None:
    first = shell_of(host)
    with pytest.raises(DeadlineExceeded):
        host.run(["sleep", "60"], deadline_s=0.5 * SCALE)
    wait_for(lambda: not alive(first), "the shell to end")
    second = shell_of(host)
    os.kill(second, signal.SIGKILL)
    wait_for(lambda: not host._idle.is_alive(), "its end to arrive")  # type: ignore[attr-defined]
    assert len({first, second, shell_of(host)}) == 3


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("output", [b"", b"plain\n", b"mark", b"\0mark 0", b"marke 0\nmarker"])
def test_output_is_what_is_between_the_markers_however_it_is_cut(output: bytes, size: int) -> None:
    stream = Framed(b"marker-1")
    received = b"stray of an earlier command\nmarker-1\n" + output + b"marker-1 37\n"
    for start in range(0, len(received), size):
        assert stream.status is None
        stream.feed(received[start : start + size])
    assert bytes(stream.data) == output
    assert stream.status == 37


def test_output_of_one_stream_that_arrives_while_the_other_is_read_is_noticed() -> None:
    # given a command that has written to both streams
    arrived, out, err = Arrived(), BufferedPipe(), BufferedPipe()
    for pipe in (out, err):
        pipe.set_event(arrived)
    err.feed(b"e")  # type: ignore[arg-type]
    arrived.clear_first()
    # when output arrives on one of them, and then all of the other is read
    out.feed(b"o")  # type: ignore[arg-type]
    assert len(err.read(10)) == 1
    # then the output is noticed without waiting
    assert arrived.wait(0)
