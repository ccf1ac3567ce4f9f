"""Jobs: detached, watched on the device itself, attached to instead of started again."""

import os
import signal
import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from devices.device import CommandResult, Device
from devices.errors import DeviceError, DeviceLost
from devices.ondevice.job import Job, kill_leftovers, run_job
from tests.fixtures.jobs import ending, in_background, start_long_job
from tests.fixtures.waiting import ENOUGH_S, SCALE, wait_for


@pytest.fixture
def folder(device: Device) -> Path:
    return Path(device.root) / "sessions" / "it's one"


def test_a_job_leaves_its_streams_and_its_exit_code(device: Device, folder: Path) -> None:
    script = 'echo "it is in $(pwd)"; echo oops >&2; exit 3'

    result = run_job(device, Job(str(folder), ["sh", "-c", script], ENOUGH_S))

    assert ending(result) == (3, None, False)
    assert (folder / "stdout.txt").read_text() == f"it is in {folder}\n"
    assert (folder / "stderr.txt").read_text() == "oops\n"


def test_a_job_that_was_run_is_not_run_again(device: Device, folder: Path) -> None:
    argv = ["sh", "-c", "echo ran >>../count; exit 5"]
    run_job(device, Job(str(folder), argv, ENOUGH_S))

    again = run_job(device, Job(str(folder), argv, ENOUGH_S))

    assert ending(again) == (5, None, False)
    assert (folder.parent / "count").read_text() == "ran\n"


def test_the_result_of_a_job_brings_its_small_files(device: Device, folder: Path) -> None:
    # given a job that leaves every kind of file
    small, others = 'printf "\\0one\\n%%content\\n" >a; : >empty; echo b >b', "mkdir sub; ln -s a link"
    script = f"{small}; head -c 600000 /dev/zero >large; {others}"
    names = ["a", "empty", "large", "sub", "link", "none", "b"]

    result = run_job(device, Job(str(folder), ["sh", "-c", script], ENOUGH_S, files=names))

    # then the small regular ones come with the result, and what is to be fetched or refused apart is not named
    assert ending(result) == (0, None, False)
    assert result.files == {"a": b"\0one\n%content\n", "empty": b"", "none": None, "b": b"b\n"}
    assert (result.before, result.after) != (None, None)


def test_files_that_do_not_fit_together_are_left_out_one_by_one(device: Device, folder: Path) -> None:
    script = "for name in a b c; do head -c 200000 /dev/zero >$name; done"

    result = run_job(device, Job(str(folder), ["sh", "-c", script], ENOUGH_S, files=["a", "b", "c"]))

    assert {name: len(content or b"") for name, content in result.files.items()} == {"a": 200_000, "b": 200_000}


def test_a_file_that_shrinks_while_it_is_sent_is_left_to_be_fetched(
    device: Device, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a device whose answer lacks the last byte of a file
    run = device.run

    def short(*arguments: Any, **options: Any) -> CommandResult:
        result = run(*arguments, **options)
        return replace(result, stdout=result.stdout.replace(b"%content\n12", b"%content\n1"))

    monkeypatch.setattr(device, "run", short)

    result = run_job(device, Job(str(folder), ["sh", "-c", "printf 12 >a; exit 3"], ENOUGH_S, files=["a"]))

    assert ending(result) == (3, None, False)
    assert result.files == {}


@pytest.mark.fault
def test_a_job_of_another_identity_is_not_attached(device: Device, folder: Path) -> None:
    run_job(device, Job(str(folder), ["true"], ENOUGH_S, identity="first"))

    with pytest.raises(DeviceLost, match="already has the job of another request"):
        run_job(device, Job(str(folder), ["true"], ENOUGH_S, identity="second"))


def test_a_job_records_its_times_and_the_conditions_around_its_command(device: Device, folder: Path) -> None:
    began = datetime.now(UTC)

    result = run_job(device, Job(str(folder), ["sleep", "0.3"], ENOUGH_S))

    assert result.before is not None
    assert result.after is not None
    assert began <= result.before.taken_at == result.started_at <= result.ended_at == result.after.taken_at  # type: ignore[operator]
    assert result.after.load_1m is not None
    assert result.ended_at <= datetime.now(UTC)  # type: ignore[operator]
    assert 0.28 <= result.wall_s < 1.5 * SCALE


def test_several_controllers_of_one_folder_share_one_job(device: Device, folder: Path, round_trips: list[str]) -> None:
    # given three controllers that ask for a job while it runs
    argv = ["sh", "-c", "echo ran >>../count; until [ -e ../go ]; do sleep 0.02; done; exit 5"]
    workers = [in_background(lambda: run_job(device, Job(str(folder), argv, ENOUGH_S))) for _ in range(3)]
    wait_for(lambda: len(round_trips) >= 3 and (folder.parent / "count").exists(), "the job to run")
    (folder.parent / "go").touch()

    assert [ending(worker.result()) for worker in workers] == [(5, None, False)] * 3
    assert (folder.parent / "count").read_text() == "ran\n"


@pytest.mark.fault
def test_at_the_deadline_the_device_ends_the_job(device: Device, folder: Path) -> None:
    result = run_job(device, Job(str(folder), ["sleep", "60"], 0.4 * SCALE))

    assert ending(result) == (None, signal.SIGTERM, True)
    assert result.wall_s < 3 * SCALE


@pytest.mark.fault
def test_a_job_that_ignores_term_is_killed_with_its_children(
    device: Device, folder: Path, alive: Callable[[int], bool]
) -> None:
    script = 'trap "" TERM; sh -c "trap \'\' TERM; sleep 60; sleep 60" & echo $$ $! >pids; wait; sleep 60'

    result = run_job(device, Job(str(folder), ["sh", "-c", script], 0.4 * SCALE))

    assert ending(result) == (None, signal.SIGKILL, True)
    wait_for(lambda: not any(alive(int(pid)) for pid in (folder / "pids").read_text().split()), "its processes to end")


def test_nothing_of_a_job_outlives_it(device: Device, folder: Path, alive: Callable[[int], bool]) -> None:
    run_job(device, Job(str(folder), ["true"], 300))

    group, _, _, watchdog, _ = (folder / "job" / "pid").read_text().split()
    wait_for(lambda: not alive(int(group)) and not alive(int(watchdog)), "its processes to end")
    assert list((Path(device.root) / "jobs").iterdir()) == []


@pytest.mark.fault
def test_a_killed_job_is_a_lost_device_and_not_a_result(device: Device, folder: Path) -> None:
    job = start_long_job(device, folder)

    os.killpg(job.group, signal.SIGKILL)

    with pytest.raises(DeviceLost, match="a job was killed and left no exit status"):
        job.call.result()


@pytest.mark.fault
def test_a_restart_of_the_device_is_seen_as_such(device: Device, folder: Path) -> None:
    # Given a job that was running when the device went down: it is of another boot and has no exit status
    run_job(device, Job(str(folder), ["true"], ENOUGH_S))
    (folder / "job" / "rc").unlink()
    pid, _, *rest = (folder / "job" / "pid").read_text().split()
    (folder / "job" / "pid").write_text(" ".join([pid, "11111111-2222-3333-4444-555555555555", *rest]))

    with pytest.raises(DeviceLost, match="was restarted while a job ran on it"):
        run_job(device, Job(str(folder), ["true"], ENOUGH_S))


def test_the_next_holder_ends_what_still_runs(device: Device, folder: Path, alive: Callable[[int], bool]) -> None:
    job = start_long_job(device, folder)

    assert kill_leftovers(device) == [job.group]

    assert isinstance(job.call.exception(), DeviceLost)
    assert not alive(job.group)
    assert kill_leftovers(device) == []


@pytest.mark.fault
def test_a_note_of_an_earlier_boot_kills_no_process(device: Device) -> None:
    # Given a note whose process id now belongs to somebody else
    notes = Path(device.root) / "jobs"
    notes.mkdir(parents=True)
    bystander = subprocess.Popen(["sleep", "60"], start_new_session=True)
    (notes / "old").write_text(f"{bystander.pid} another-boot 1.0 {bystander.pid} 123\n")
    (notes / "reused").write_text(f"{bystander.pid} {boot_id()} 1.0 {bystander.pid} 123\n")

    assert kill_leftovers(device) == []

    assert bystander.poll() is None
    assert list(notes.iterdir()) == []
    bystander.kill()
    bystander.wait()


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def test_a_job_that_cannot_start_says_why(device: Device, full_disk: Path) -> None:
    blocked = full_disk / "file"
    blocked.write_text("not a folder")

    with pytest.raises(DeviceError, match=r"cannot start a job in .*file/session"):
        run_job(device, Job(f"{blocked}/session", ["true"], ENOUGH_S))


@pytest.mark.fault
def test_a_job_that_fills_the_disk_still_leaves_its_exit_code(device: Device, full_disk: Path) -> None:
    script = "head -c 3000000 /dev/zero >filled; exit 4"

    result = run_job(device, Job(f"{full_disk}/session", ["sh", "-c", script], ENOUGH_S))

    assert ending(result) == (4, None, False)
    assert result.after is not None
    assert result.after.load_1m is not None


@pytest.mark.fault
def test_a_disk_that_is_full_before_the_job_is_reported(device: Device, full_disk: Path) -> None:
    (full_disk / "filled").write_bytes(bytes(1 << 20))

    with pytest.raises(DeviceLost, match="accepted a job but did not start it, possibly because its disk is full"):
        run_job(device, Job(f"{full_disk}/session", ["true"], ENOUGH_S))
