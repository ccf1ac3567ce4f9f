"""Jobs: detached, watched on the device itself, attached to instead of started again; nothing of one outlives it."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from devices.device import Device
from devices.errors import DeviceError, DeviceLost
from devices.ondevice.job import Job, JobResult, kill_leftovers, run_job
from devices.shell import script_text
from tests.fixtures.jobs import ending, in_background, start_long_job
from tests.fixtures.leases import BOOT
from tests.fixtures.waiting import ENOUGH_S, SCALE, wait_for

# Starts a process that leaves the job's session and group, as a daemon does, and closes its streams.
DAEMON = """perl -MPOSIX -e '
    exit if fork; setsid(); exit if fork;
    open STDIN, "</dev/null"; open STDOUT, ">/dev/null"; open STDERR, ">/dev/null";
    open F, ">", "pids.new"; print F $$; close F; rename "pids.new", "pids"; sleep 3600'
until [ -e pids ]; do sleep 0.05; done
"""


@pytest.fixture
def folder(device: Device) -> Iterator[Path]:
    folder = Path(device.root) / "sessions" / "it's one"
    yield folder
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        os.kill(int((folder / "pids").read_text().split()[0]), 9)


@pytest.fixture
def have_ended(folder: Path, alive: Callable[[int], bool]) -> Callable[[], bool]:
    """Whether the processes in the job's file `pids` have ended."""
    return lambda: not any(alive(int(pid)) for pid in (folder / "pids").read_text().split())


def run(device: Device, folder: Path, script: str, deadline_s: float = ENOUGH_S, **options: Any) -> JobResult:
    return run_job(device, Job(str(folder), ["sh", "-c", script], deadline_s, **options))


def test_a_job_leaves_its_streams_and_exit_code_and_is_not_run_again(device: Device, folder: Path) -> None:
    script = 'echo ran >>../count; echo "it is in $(pwd)"; echo oops >&2; exit 3'
    for _ in range(2):
        assert ending(run(device, folder, script)) == (3, None, False)
    assert (folder / "stdout.txt").read_text() == f"it is in {folder}\n"
    assert (folder / "stderr.txt").read_text() == "oops\n"
    assert (folder.parent / "count").read_text() == "ran\n"


def test_the_result_of_a_job_brings_its_small_files(device: Device, folder: Path) -> None:
    # given a job that leaves every kind of file, and some that are too large alone or together
    small, others = 'printf "\\0one\\n%%content\\n" >a; : >empty; echo b >b', "mkdir sub; ln -s a link"
    large = "for kb in 600 400 200; do head -c ${kb}000 /dev/zero >$kb; done"
    names = ["a", "empty", "600", "sub", "link", "none", "b", "400", "200"]
    result = run(device, folder, f"{small}; {large}; {others}", files=names)
    # then those that fit come with the result, and what is to be fetched or refused apart is not named
    assert ending(result) == (0, None, False)
    expected = {"a": b"\0one\n%content\n", "empty": b"", "none": None, "b": b"b\n", "400": bytes(400_000)}
    assert result.files == expected
    assert (result.before, result.after) != (None, None)


@pytest.mark.fault
def test_a_job_of_another_identity_is_not_attached(device: Device, folder: Path) -> None:
    run(device, folder, "true", identity="first")
    with pytest.raises(DeviceLost, match="already has the job of another request"):
        run(device, folder, "true", identity="second")


def test_a_job_records_its_times_and_the_conditions_around_its_command(device: Device, folder: Path) -> None:
    began = datetime.now(UTC)
    result = run(device, folder, "sleep 0.3")
    assert result.before is not None
    assert result.after is not None
    assert began <= result.before.taken_at == result.started_at <= result.ended_at == result.after.taken_at  # type: ignore[operator]
    assert result.after.load_1m is not None
    assert result.ended_at <= datetime.now(UTC)  # type: ignore[operator]
    assert 0.28 <= result.wall_s < 1.5 * SCALE


def test_several_controllers_of_one_folder_share_one_job(device: Device, folder: Path, round_trips: list[str]) -> None:
    script = "echo ran >>../count; until [ -e ../go ]; do sleep 0.02; done; exit 5"
    workers = [in_background(lambda: run(device, folder, script)) for _ in range(3)]
    wait_for(lambda: len(round_trips) >= 3 and (folder.parent / "count").exists(), "the job to run")
    (folder.parent / "go").touch()
    assert [ending(worker.result()) for worker in workers] == [(5, None, False)] * 3
    assert (folder.parent / "count").read_text() == "ran\n"


IGNORING = 'trap "" TERM; sh -c "trap \'\' TERM; sleep 60; sleep 60" & echo $$ $! >pids; wait; sleep 60'


@pytest.mark.fault
@pytest.mark.parametrize(
    ("script", "expected"),
    [(IGNORING, (None, signal.SIGKILL, True)), (f"{DAEMON}sleep 3600", (None, signal.SIGTERM, True))],
    ids=["it and its child ignore TERM", "it ends at TERM and left a daemon"],
)
def test_at_the_deadline_the_device_ends_a_job_with_all_that_it_started(
    device: Device,
    folder: Path,
    have_ended: Callable[[], bool],
    script: str,
    expected: tuple[int | None, int | None, bool],
) -> None:
    result = run(device, folder, script, 0.6 * SCALE)
    assert ending(result) == expected
    assert result.wall_s < 5 * SCALE
    wait_for(have_ended, "its processes to end")


@pytest.mark.fault
@pytest.mark.parametrize(
    "script", [DAEMON, "sleep 60 & echo $! >pids; exit 0"], ids=["in a new session", "in the background"]
)
def test_what_a_command_leaves_ends_with_it(
    device: Device, folder: Path, have_ended: Callable[[], bool], alive: Callable[[int], bool], script: str
) -> None:
    assert ending(run(device, folder, script)) == (0, None, False)
    wait_for(have_ended, "the process to end")
    group, _, _, watchdog, _ = (folder / "job" / "pid").read_text().split()
    wait_for(lambda: not alive(int(group)) and not alive(int(watchdog)), "the job and its watchdog to end")
    assert list((Path(device.root) / "jobs").iterdir()) == []


def test_only_processes_newer_than_the_command_are_searched_unless_ids_have_begun_again() -> None:
    def searched(text: str) -> list[str]:
        words = ["sh", "-c", f"{script_text('job_common')}last_process; {text}"]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()

    pid, *environs = searched('first=$last; sleep 60 & environs "$first" 1; echo $! "$environs"; kill $!')
    assert f"/proc/{pid}/environ" in environs
    assert "/proc/1/environ" not in environs
    # and so they are if many were started meanwhile
    pid, first, *environs = searched(
        'first=$((last - 300)); sleep 60 & environs "$first" 1; echo $! "$first" "$environs"; kill $!'
    )
    assert f"/proc/{pid}/environ" in environs
    assert min(int(each.split("/")[2]) for each in environs) > int(first)
    assert searched('set -f; environs 999999999 1; echo "$environs"') == ["/proc/[0-9]*/environ"]


@pytest.mark.fault
def test_a_killed_job_and_one_of_another_boot_are_a_lost_device_and_not_a_result(device: Device, folder: Path) -> None:
    job = start_long_job(device, folder)
    os.killpg(job.group, signal.SIGKILL)
    with pytest.raises(DeviceLost, match="a job was killed and left no exit status"):
        job.call.result()
    pid, _, *rest = (folder / "job" / "pid").read_text().split()
    (folder / "job" / "pid").write_text(" ".join([pid, "11111111-2222-3333-4444-555555555555", *rest]))
    with pytest.raises(DeviceLost, match="was restarted while a job ran on it"):
        run_job(device, Job(str(folder), ["sleep", "3600"], ENOUGH_S))


@pytest.mark.fault
def test_the_next_holder_ends_what_still_runs_with_its_daemon_and_nothing_else(
    device: Device, folder: Path, have_ended: Callable[[], bool]
) -> None:
    # given a job with a daemon, and notes whose process id now belongs to somebody else
    job = in_background(lambda: run(device, folder, f"{DAEMON}sleep 3600"))
    wait_for((folder / "pids").exists, "the daemon")
    group = int((folder / "job" / "pid").read_text().split()[0])
    notes = Path(device.root) / "jobs"
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as bystander:
        for name, boot in (("old", "another-boot"), ("reused", BOOT.read_text().strip())):
            (notes / name).write_text(f"{bystander.pid} {boot} 1.0 {bystander.pid} 123\n")
        # when the next holder comes
        assert kill_leftovers(device) == [group]
        assert isinstance(job.exception(ENOUGH_S), DeviceLost)
        wait_for(have_ended, "the daemon to end")
        assert kill_leftovers(device) == []
        assert bystander.poll() is None
        bystander.kill()
    assert list(notes.iterdir()) == []


@pytest.mark.fault
def test_a_full_disk_is_reported_before_a_job_and_leaves_its_exit_code_after_it(
    device: Device, full_disk: Path
) -> None:
    result = run(device, full_disk / "session", "head -c 3000000 /dev/zero >filled; exit 4")
    assert ending(result) == (4, None, False)
    assert result.after is not None
    assert result.after.load_1m is not None
    with pytest.raises(DeviceLost, match="accepted a job but did not start it, possibly because its disk is full"):
        run(device, full_disk / "another", "true")
    (full_disk / "session" / "filled").unlink()
    (full_disk / "file").write_text("not a folder")
    with pytest.raises(DeviceError, match=r"cannot start a job in .*file/session"):
        run(device, full_disk / "file" / "session", "true")
