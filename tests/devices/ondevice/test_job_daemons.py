"""Processes that a job's command leaves in sessions of their own end with the job, however that ends."""

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from devices.device import Device
from devices.errors import DeviceError
from devices.ondevice.job import Job, kill_leftovers, run_job
from devices.retry import JOB
from devices.shell import script_text
from tests.fixtures.jobs import ending, in_background
from tests.fixtures.waiting import ENOUGH_S, SCALE, wait_for

# Starts a process that leaves the job's session and group, as a daemon does, and closes its streams.
DAEMON = """perl -MPOSIX -e '
    exit if fork; setsid(); exit if fork;
    open STDIN, "</dev/null"; open STDOUT, ">/dev/null"; open STDERR, ">/dev/null";
    open F, ">", "daemon.new"; print F $$; close F; rename "daemon.new", "daemon"; sleep 3600'
until [ -e daemon ]; do sleep 0.05; done
"""


@pytest.fixture
def folder(device: Device) -> Iterator[Path]:
    folder = Path(device.root) / "sessions" / "one"
    yield folder
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        os.kill(int((folder / "daemon").read_text()), 9)


@pytest.fixture
def is_running(folder: Path, alive: Callable[[int], bool]) -> Callable[[], bool]:
    """Whether the process still runs whose id is in the file `daemon`."""
    return lambda: alive(int((folder / "daemon").read_text()))


@pytest.mark.fault
@pytest.mark.parametrize(
    ("where", "script"),
    [("in its own session (setsid)", DAEMON), ("in the background", "sleep 60 & echo $! >daemon; exit 0")],
)
def test_what_a_command_leaves_ends_with_it(
    device: Device, folder: Path, is_running: Callable[[], bool], where: str, script: str
) -> None:
    result = run_job(device, Job(str(folder), ["sh", "-c", script], ENOUGH_S))
    assert ending(result) == (0, None, False)
    assert (folder / "daemon").read_text()
    wait_for(lambda: not is_running(), "the process to end")


@pytest.mark.parametrize(("first", "seconds"), [("", 1), ("999999999", 1), ("$last", 31)])
def test_all_processes_are_searched_if_those_of_the_job_cannot_be_told_by_their_ids(first: str, seconds: int) -> None:
    script = f'{script_text("job_common")}last_process; environs "{first}" {seconds}; echo "$environs"'
    found = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
    assert found == "/proc/[0-9]*/environ\n"


def test_only_processes_newer_than_the_command_are_searched() -> None:
    script = 'last_process; first=$last; sleep 60 & environs "$first" 1; echo "$environs"; echo $!; kill $!'
    found = subprocess.run(
        ["sh", "-c", script_text("job_common") + script], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert f"/proc/{found[1]}/environ" in found[0].split()
    assert "/proc/1/environ" not in found[0].split()


@pytest.mark.fault
@pytest.mark.parametrize("rest", ["sleep 3600", "trap : TERM; while :; do sleep 1; done"])
def test_a_daemon_ends_with_a_job_at_its_deadline(
    device: Device, folder: Path, is_running: Callable[[], bool], rest: str
) -> None:
    result = run_job(device, Job(str(folder), ["sh", "-c", DAEMON + rest], 3 * SCALE))
    assert result.deadline_exceeded
    wait_for(lambda: not is_running(), "the daemon to end")


@pytest.mark.fault
def test_the_next_holder_of_the_device_ends_the_daemon_of_a_job_it_finds(
    device: Device, folder: Path, is_running: Callable[[], bool]
) -> None:
    # given a job that runs, and left a daemon
    argv = ["sh", "-c", DAEMON + "sleep 3600"]
    job = in_background(
        lambda: run_job(device, Job(str(folder), argv, ENOUGH_S), replace(JOB, within_s=0, back_within_s=0))
    )
    wait_for((folder / "daemon").exists, "the daemon")
    # when the next holder of the device ends what is left there
    assert len(kill_leftovers(device)) == 1
    # then the daemon ends, too
    wait_for(lambda: not is_running(), "the daemon to end")
    assert isinstance(job.exception(ENOUGH_S), DeviceError)
