"""Jobs whose controller is killed or whose link is cut: ended at their deadline, collected once."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from devices.device import Device
from devices.errors import DeviceLost
from devices.ondevice.job import Job, run_job
from tests.fixtures.devices import LinkedDevice
from tests.fixtures.jobs import ending, in_background, start_long_job
from tests.fixtures.paths import ROOT
from tests.fixtures.waiting import ENOUGH_S, SCALE, wait_for

pytestmark = pytest.mark.fault
CONTROLLER = """
import sys
from devices.ondevice.job import Job, run_job
from devices.local import LocalDevice
run_job(LocalDevice("local", sys.argv[1]), Job(sys.argv[2], ["sh", "-c", sys.argv[3]], float(sys.argv[4])))
"""


def controller(device: Device, folder: Path, script: str, deadline_s: float) -> subprocess.Popen[bytes]:
    arguments = [device.root, str(folder), script, str(deadline_s)]
    return subprocess.Popen([sys.executable, "-c", CONTROLLER, *arguments], cwd=ROOT)


def test_the_deadline_holds_when_no_controller_is_left(local_device: Device, alive: Callable[[int], bool]) -> None:
    folder = Path(local_device.root) / "session"
    first = controller(local_device, folder, 'trap "" TERM; sleep 60; sleep 60', 0.6 * SCALE)
    wait_for((folder / "job" / "pid").exists, "the job to start")
    first.kill()
    first.wait()
    wait_for((folder / "job" / "rc").exists, "the job to end")
    pid = int((folder / "job" / "pid").read_text().split()[0])
    wait_for(lambda: not alive(pid), "the killed job to be gone")
    assert ending(run_job(local_device, Job(str(folder), ["true"], 1))) == (None, signal.SIGKILL, True)


@pytest.mark.lab
def test_a_link_that_blips_costs_nothing(linked: LinkedDevice) -> None:
    folder = Path(linked.device.root) / "session"
    script = "echo ran >>../count; until [ -e ../go ]; do sleep 0.02; done; exit 7"
    job = in_background(lambda: run_job(linked.device, Job(str(folder), ["sh", "-c", script], ENOUGH_S)))
    wait_for((folder.parent / "count").exists, "the job to run")
    linked.link.cut()
    (folder.parent / "go").touch()
    wait_for((folder / "job" / "rc").exists, "the job to end")
    linked.link.restore()
    assert ending(job.result()) == (7, None, False)
    assert (folder.parent / "count").read_text() == "ran\n"


@pytest.mark.lab
def test_a_link_that_stays_away_is_given_up_in_bounded_time(linked: LinkedDevice) -> None:
    folder = Path(linked.device.root) / "session"
    job = start_long_job(linked.device, folder, reconnect_s=1)
    begun = time.monotonic()
    linked.link.cut()
    with pytest.raises(DeviceLost, match="not back within 1 s"):
        job.call.result()
    assert time.monotonic() - begun < 15 * SCALE
    os.killpg(job.group, signal.SIGKILL)
