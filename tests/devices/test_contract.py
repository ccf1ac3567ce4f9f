"""What every device promises, checked on this machine, over SSH and over adb alike."""

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from devices.device import Device
from devices.errors import DeadlineExceeded, DeviceError, FileMissing, NoSpaceOnDevice, TransferFailed
from devices.ondevice.facts import read_facts
from devices.ondevice.job import Job, prepare_job, run_job
from devices.ondevice.lease import acquire, current_holder
from devices.ondevice.store import Content, blob_path, tree_path
from devices.retry import probe
from tests.fixtures.devices import meet
from tests.fixtures.stored import sha256, tree_sha256
from tests.fixtures.waiting import ENOUGH_S, SCALE, wait_for

ANY = 1 << 40
ODD_NAMES = ["with blank", 'it\'s "quoted"', "größe-模型", "-rf", "$HOME `id`", "semi;colon&pipe|", "back\\slash", "*"]


def everything_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_both_streams_arrive_to_the_byte(device: Device) -> None:
    # Given a program that writes every byte value to both streams
    octal = "".join(f"\\{value:03o}" for value in range(256))
    result = device.run(["sh", "-c", 'printf "$1"; printf "$1$1" >&2', "sh", octal], deadline_s=ENOUGH_S)
    assert result.stdout == bytes(range(256))
    assert result.stderr == bytes(range(256)) * 2
    assert (result.exit_code, result.signal) == (0, None)
    # and three megabytes of the one do not block the other
    result = device.run(["sh", "-c", "head -c 3000000 /dev/zero >&2; echo done"], deadline_s=ENOUGH_S)
    assert (len(result.stderr), result.stdout) == (3_000_000, b"done\n")


def test_how_a_command_ends_is_a_result_and_not_an_error(device: Device) -> None:
    for code in (0, 1, 127, 128, 255):
        result = device.run(["sh", "-c", f"exit {code}"], deadline_s=ENOUGH_S)
        assert (result.exit_code, result.signal) == (code, None)
    for number in (6, 9, 15):
        result = device.run(["sh", "-c", f"kill -{number} $$"], deadline_s=ENOUGH_S)
        assert (result.exit_code, result.signal) == (None, number)
    result = device.run(["no-such-program"], deadline_s=ENOUGH_S)
    assert result.exit_code == 127
    assert b"no-such-program" in result.stderr


def test_arguments_arrive_as_they_are_and_no_input(device: Device) -> None:
    arguments = [*ODD_NAMES, "", "two\nlines", "--", "A=B"]
    result = device.run(["printf", "%s\\0", *arguments], deadline_s=ENOUGH_S)
    assert result.stdout.decode().split("\0")[:-1] == arguments
    assert device.run(["cat"], deadline_s=ENOUGH_S).stdout == b""


@pytest.mark.fault
def test_at_the_deadline_even_children_that_ignore_term_are_killed(
    device: Device, alive: Callable[[int], bool]
) -> None:
    # Given a command whose child, like itself, ignores TERM
    script = 'trap "" TERM; sh -c "sleep 60" & echo $$ $! >"$1"; wait; sleep 60'
    pids = Path(device.root) / "pids"
    pids.parent.mkdir(parents=True)
    deadline_s = 0.5 * SCALE
    begun = time.monotonic()
    with pytest.raises(DeadlineExceeded, match=f"{device.name}: `sh` ran longer than its deadline of {deadline_s:g} s"):
        device.run(["sh", "-c", script, "sh", str(pids)], deadline_s=deadline_s)
    assert time.monotonic() - begun < 5 * SCALE
    wait_for(lambda: not any(alive(int(pid)) for pid in pids.read_text().split()), "the children to end")


def test_files_of_any_name_go_there_and_back(device: Device, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.write_bytes(bytes(range(256)) * 10)
    remotes = [f"{device.root}/a {name}/{name}" for name in ODD_NAMES]
    for name, remote in zip(ODD_NAMES, remotes, strict=True):
        device.upload(there, remote)
        device.fetch(remote, tmp_path / "back" / name, limit_bytes=ANY)
    assert {(tmp_path / "back" / name).read_bytes() for name in ODD_NAMES} == {there.read_bytes()}
    assert sorted(everything_below(Path(device.root))) == sorted(Path(remote) for remote in remotes)
    # and so do an empty file and a large one
    for size_bytes in (0, 30_000_001):
        there.write_bytes(os.urandom(size_bytes))
        device.upload(there, remotes[0])
        device.fetch(remotes[0], tmp_path / "large", limit_bytes=size_bytes)
        assert (tmp_path / "large").read_bytes() == there.read_bytes()


def test_uploading_replaces_a_file_that_is_being_read(device: Device, tmp_path: Path) -> None:
    # Given a file on the device that somebody has open
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("old content")
    new.write_text("new")
    remote = f"{device.root}/file"
    device.upload(old, remote)
    with Path(remote).open() as reader:
        device.upload(new, remote)
        assert reader.read() == "old content"
    assert Path(remote).read_text() == "new"


def test_fetching_a_file_that_is_not_there_or_a_folder_leaves_the_local_one_alone(
    device: Device, tmp_path: Path
) -> None:
    local = tmp_path / "local"
    local.write_text("precious")
    with pytest.raises(TransferFailed):
        device.fetch("/usr", local, limit_bytes=ANY)
    with pytest.raises(FileMissing, match=f"^{device.name}: file /no/such file does not exist on the device$"):
        device.fetch("/no/such file", local, limit_bytes=ANY)
    assert local.read_text() == "precious"
    assert everything_below(tmp_path) == [local]


def test_uploading_a_missing_file_or_below_a_file_fails_and_leaves_nothing(device: Device, tmp_path: Path) -> None:
    with pytest.raises(TransferFailed, match=r"the local file .*missing.*No such file"):
        device.upload(tmp_path / "missing", f"{device.root}/x")
    (tmp_path / "there").write_text("x")
    parent = Path(device.root) / "not a folder"
    parent.parent.mkdir(parents=True, exist_ok=True)
    parent.write_text("a file")
    with pytest.raises(DeviceError, match=f"^{device.name}: "):
        device.upload(tmp_path / "there", str(parent / "below"))
    assert everything_below(Path(device.root)) == [parent]


@pytest.mark.fault
def test_a_full_disk_is_reported_and_no_partial_file_stays(device: Device, tmp_path: Path, full_disk: Path) -> None:
    (tmp_path / "there").write_bytes(os.urandom(3_000_000))
    with pytest.raises(NoSpaceOnDevice, match="no space left"):
        device.upload(tmp_path / "there", f"{full_disk}/file")
    assert everything_below(full_disk) == []


def test_facts_are_those_of_the_device_also_when_it_was_closed(device: Device) -> None:
    probe(device)
    device.close()
    facts = read_facts(device)
    assert (facts.cores, facts.hostname) == (os.cpu_count(), os.uname().nodename)
    assert facts.memory_bytes
    assert facts.platform == f"{facts.os}-{facts.arch}"


def test_commands_of_threads_run_at_the_same_time_and_transfers_get_their_own_answers(
    device: Device, tmp_path: Path
) -> None:
    assert meet(device, tmp_path) == [b"met\n", b"met\n"]
    source = tmp_path / "source"
    source.write_bytes(b"content" * 1000)

    def transfer(number: int) -> None:
        back = tmp_path / f"back-{number}"
        for _ in range(20):
            device.upload(source, f"{device.root}/{number}")
            device.fetch(f"{device.root}/{number}", back)
            assert back.read_bytes() == source.read_bytes()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(transfer, range(4))) == [None] * 4


def test_a_job_with_a_model_and_a_runner_under_a_lease(device: Device, blob: Path, tree: dict[str, Path]) -> None:
    contents = [Content(tree_sha256(tree), tree), Content(sha256(blob), blob)]
    model, program = blob_path(device, contents[1].sha256), tree_path(device, contents[0].sha256)
    words = ["sh", "-c", 'cat "$1" >copy; ls "$2"; exit 3', "sh", model, program]
    job = Job(f"{device.root}/sessions/it's one", words, ENOUGH_S, files=["copy", "stdout.txt"])
    with acquire(device, "größe's farm") as lease:
        prepare_job(device, job, contents, ttl_s=600)
        result = run_job(device, job)
        device.collected = [job.folder]
        lease.renew()
        holder = current_holder(device)
    assert holder is not None
    assert holder.holder == "größe's farm"
    assert (result.exit_code, result.files["copy"]) == (3, blob.read_bytes())
    assert result.before is not None
    assert result.after is not None
    assert result.after.free_memory_bytes
    assert not Path(job.folder).exists()
    assert current_holder(device) is None
