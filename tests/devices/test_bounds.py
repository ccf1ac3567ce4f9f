"""No device can send more than its limit into memory or onto the disk: this machine, over SSH and over adb."""

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from devices.device import Device
from devices.errors import FileRefused, OutputTooLong
from devices.retry import probe
from tests.fixtures.waiting import ENOUGH_S, SCALE, wait_for

# The kernel states 0 bytes for this file, and it has more.
LONGER_THAN_STATED = "/proc/cpuinfo"


def a_file(device: Device, size_bytes: int) -> str:
    """A sparse file on the device."""
    path = Path(device.root) / "file"
    path.parent.mkdir(parents=True)
    with path.open("wb") as stream:
        stream.truncate(size_bytes)
    return str(path)


@pytest.mark.fault
def test_a_file_larger_than_its_limit_is_refused_and_leaves_nothing(device: Device, tmp_path: Path) -> None:
    # given a sparse file, and a local file that it would replace
    remote, local = a_file(device, 1 << 40), tmp_path / "here" / "local"
    local.parent.mkdir()
    local.write_text("precious")
    with pytest.raises(FileRefused, match=rf"^{device.name}: {remote} has (1099511627776|more than 1000) bytes"):
        # adb states sizes modulo 2^32, here 0: this file is refused while it arrives
        device.fetch(remote, local, limit_bytes=1000)
    assert [path.read_text() for path in local.parent.iterdir()] == ["precious"]


@pytest.mark.fault
def test_a_file_longer_than_the_device_states_is_refused_while_it_arrives(device: Device, tmp_path: Path) -> None:
    with pytest.raises(FileRefused, match=rf"^{device.name}: {LONGER_THAN_STATED} has more than 16 bytes"):
        device.fetch(LONGER_THAN_STATED, tmp_path / "here" / "local", limit_bytes=16)
    assert list((tmp_path / "here").iterdir()) == []


@pytest.mark.fault
@pytest.mark.parametrize("what", ["a link to /dev/zero", "a link to /proc/cpuinfo", "a link to /usr", "a pipe"])
def test_what_is_not_a_file_is_refused_and_not_waited_for(device: Device, tmp_path: Path, what: str) -> None:
    path = Path(device.root) / "model.etdump"
    path.parent.mkdir(parents=True)
    if what == "a pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(what.removeprefix("a link to "))
    with pytest.raises(FileRefused, match=r"model\.etdump is not a regular file"):
        device.fetch(str(path), tmp_path / "here" / "local", limit_bytes=1 << 20)
    assert not (tmp_path / "here").exists()


@pytest.mark.fault
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_command_that_prints_without_end_is_killed(
    device: Device, alive: Callable[[int], bool], monkeypatch: pytest.MonkeyPatch, stream: str
) -> None:
    # given a command that leaves its process id and then prints for longer than it may run
    monkeypatch.setattr(device, "output_limit_bytes", 4 << 20)
    probe(device)
    pid = Path(device.root) / "pid"
    pid.parent.mkdir(parents=True)
    script = 'echo $$ >"$1"; exec cat /dev/zero' + (" >&2" if stream == "stderr" else "")
    begun, peak_kb = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(OutputTooLong, match=rf"^{device.name}: `sh` printed more than its limit of 4194304 bytes"):
        device.run(["sh", "-c", script, "sh", str(pid)], deadline_s=ENOUGH_S)
    # then it is dead, soon, and no more than a few times the limit was in memory
    assert time.monotonic() - begun < 10 * SCALE
    wait_for(lambda: not alive(int(pid.read_text())), "the command to end")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak_kb < 64 << 10


def test_a_command_may_print_as_much_as_its_limit(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "output_limit_bytes", 1 << 20)
    result = device.run(["sh", "-c", "head -c 1048576 /dev/zero"], deadline_s=ENOUGH_S)
    assert len(result.stdout) == 1 << 20
