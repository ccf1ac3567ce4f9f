"""No device can send more than its limit into memory or onto the disk: this machine, over SSH and over adb."""

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from devices.device import Device
from devices.errors import FileRefused, OutputTooLong
from tests.fixtures.waiting import ENOUGH_S, SCALE, wait_for

pytestmark = pytest.mark.fault


def test_a_file_larger_than_its_limit_is_refused_and_leaves_nothing(device: Device, tmp_path: Path) -> None:
    # given a sparse file, one for which the kernel states 0 bytes, and a local file that they would replace
    remote, local = Path(device.root) / "file", tmp_path / "here" / "local"
    for path in (remote, local):
        path.parent.mkdir(parents=True)
    remote.touch()
    os.truncate(remote, 1 << 40)
    local.write_text("precious")
    with pytest.raises(FileRefused, match=rf"^{device.name}: {remote} has (1099511627776|more than 1000) bytes"):
        # adb states sizes modulo 2^32, here 0: this file is refused while it arrives
        device.fetch(str(remote), local, limit_bytes=1000)
    with pytest.raises(FileRefused, match=rf"^{device.name}: /proc/cpuinfo has more than 16 bytes"):
        device.fetch("/proc/cpuinfo", local, limit_bytes=16)
    assert [path.read_text() for path in local.parent.iterdir()] == ["precious"]


@pytest.mark.parametrize("what", ["a link to /dev/zero", "a link to /usr", "a pipe"])
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


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_command_that_prints_without_end_is_killed(
    device: Device, alive: Callable[[int], bool], monkeypatch: pytest.MonkeyPatch, stream: str
) -> None:
    # given a command that leaves its process id and then prints for longer than it may run
    monkeypatch.setattr(device, "output_limit_bytes", 4 << 20)
    assert len(device.run(["head", "-c", str(4 << 20), "/dev/zero"], deadline_s=ENOUGH_S).stdout) == 4 << 20
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
