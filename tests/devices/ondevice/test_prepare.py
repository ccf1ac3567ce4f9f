"""What precedes a job is one round trip: its lease, an earlier job, the files in the store, the conditions."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from devices.device import CommandResult, Device
from devices.errors import DeviceError, DeviceLost, DeviceRefused, FileChanged, LeaseLost
from devices.ondevice.job import Job, JobResult, Prepared, prepare_job, run_if_prepared, run_job
from devices.ondevice.lease import acquire
from devices.ondevice.store import Content
from tests.fixtures.leases import held_file
from tests.fixtures.stored import sha256, tree_sha256
from tests.fixtures.waiting import ENOUGH_S, wait_for


@pytest.fixture
def contents(blob: Path, tree: dict[str, Path]) -> list[Content]:
    return [Content(tree_sha256(tree), tree), Content(sha256(blob), blob)]


@pytest.fixture
def folder(device: Device) -> Path:
    return Path(f"{device.root}/sessions/it's one")


def prepared(device: Device, contents: list[Content], identity: str = "ours", ttl_s: float = 60) -> Prepared:
    job = Job(f"{device.root}/sessions/it's one", ["true"], ENOUGH_S, identity=identity)
    return prepare_job(device, job, contents, ttl_s=ttl_s)


def stored(device: Device, content: Content) -> list[Path]:
    return [Path(device.root) / path for path in content.paths]


def test_what_is_stored_costs_one_round_trip_with_the_conditions(
    device: Device, contents: list[Content], round_trips: list[str]
) -> None:
    # given a first call, which pushes the contents, and reads no conditions before
    assert prepared(device, contents[1:]) == prepared(device, contents) == Prepared(has_ended=False, conditions=None)
    assert all(path.is_file() for content in contents for path in stored(device, content))
    round_trips.clear()
    # then a file that was just pushed is not read again
    again = prepared(device, contents[1:])
    assert round_trips == ["run"]
    assert again.conditions is not None
    assert again.conditions.free_disk_bytes
    prepared(device, contents)
    assert prepared(device, contents).conditions is not None


def rewrite(path: Path) -> None:
    """Change a file, with the same size and time."""
    before = path.stat()
    path.write_bytes(os.urandom(before.st_size))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.fault
@pytest.mark.parametrize("damage", [rewrite, lambda path: os.truncate(path, 10), Path.unlink])
def test_what_was_damaged_on_the_device_is_pushed_again(
    device: Device, contents: list[Content], damage: Callable[[Path], None]
) -> None:
    for _ in range(2):  # the second call records verified hashes
        prepared(device, contents)
    paths = [stored(device, content)[0] for content in contents]
    before = [path.read_bytes() for path in paths]
    for path in paths:
        damage(path)
    prepared(device, contents)
    assert [path.read_bytes() for path in paths] == before


def test_hashes_that_were_deleted_or_are_of_other_contents_do_not_count(
    device: Device, contents: list[Content]
) -> None:
    for _ in range(2):
        prepared(device, contents)
    guard = Path(device.root) / "verified" / contents[1].sha256
    guard.write_text(guard.read_text().replace(f"={contents[1].sha256}", f"={'0' * 64}"))
    assert prepared(device, contents).conditions is None
    guard.unlink()
    assert prepared(device, contents).conditions is None
    assert guard.is_file()
    # and what was not used for a while is marked as used
    folder = stored(device, contents[0])[0].parent
    os.utime(folder, (folder.stat().st_atime, folder.stat().st_mtime - 3000))
    old = folder.stat().st_mtime
    assert prepared(device, contents).conditions is None
    assert folder.stat().st_mtime - old > 2000
    assert prepared(device, contents).conditions is not None


def test_an_ended_job_of_the_same_identity_is_kept_and_another_is_removed(
    device: Device, contents: list[Content], folder: Path
) -> None:
    run_job(device, Job(str(folder), ["true"], ENOUGH_S, identity="ours"))
    assert prepared(device, contents).has_ended
    assert not (Path(device.root) / "blobs").exists()
    assert not prepared(device, contents, identity="other").has_ended
    assert not folder.exists()
    # and so is one that has not ended
    (folder / "job").mkdir(parents=True)
    assert not prepared(device, contents).has_ended
    assert not folder.exists()


def test_the_lease_is_extended_and_one_that_was_taken_over_stops_everything(
    device: Device, contents: list[Content], folder: Path
) -> None:
    # given a lease that will expire soon
    with acquire(device, "ours", ttl_s=5):
        before = held_file(device)
        prepared(device, contents, ttl_s=1000)
        after = held_file(device)
        assert float(after.suffix[1:]) - float(before.suffix[1:]) > 900
        # when another farm takes the device over
        folder.mkdir(parents=True)
        after.rename(after.with_name("theirs." + after.name.partition(".")[2]))
        device.collected = [str(folder)]
        # then nothing is removed
        with pytest.raises(LeaseLost, match="taken over"):
            prepared(device, contents)
        assert folder.is_dir()
    assert folder.is_dir()


def test_the_folders_of_collected_jobs_are_removed_by_the_next_job(device: Device, folder: Path) -> None:
    # given two collected jobs, one of which is the one that is run again
    folders = [folder, folder.with_name("two")]
    with acquire(device, "ours", ttl_s=60):
        for each in folders:
            run_job(device, Job(str(each), ["true"], ENOUGH_S, identity="ours"))
            device.collected.append(str(each))
        assert not prepared(device, []).has_ended
        assert not any(each.exists() for each in folders)
        assert device.collected == []


def test_what_is_not_a_hash_or_was_changed_here_is_refused(device: Device, blob: Path) -> None:
    with pytest.raises(DeviceError, match="not a hash"):
        prepared(device, [Content("../../etc", blob)])
    with pytest.raises(FileChanged):
        prepared(device, [Content("ab" * 32, blob)])


@pytest.fixture
def ready(device: Device, contents: list[Content]) -> Device:
    """The device with all contents, after a call that verified them."""
    for _ in range(3):  # pushed, hashed, verified
        prepared(device, contents)
    return device


def at_once(device: Device, folder: Path, contents: list[Content], identity: str = "ours") -> JobResult | None:
    script = 'echo ran >>"$1"; exit 3'
    words = ["sh", "-c", script, "sh", f"{device.root}/runs"]
    return run_if_prepared(device, Job(str(folder), words, ENOUGH_S, identity=identity), contents)


def runs(device: Device) -> int:
    path = Path(device.root) / "runs"
    return len(path.read_text().splitlines()) if path.exists() else 0


def test_a_job_after_a_verified_one_is_one_round_trip(
    ready: Device, contents: list[Content], folder: Path, round_trips: list[str]
) -> None:
    round_trips.clear()
    results = [at_once(ready, folder.with_name(name), contents) for name in ("one", "two")]
    assert [result and result.exit_code for result in results] == [3, 3]
    assert all(result and result.before and result.after for result in results)
    assert round_trips == ["run"] * 2
    # and a job of the same identity is attached to, and not run again
    result = at_once(ready, folder.with_name("two"), contents)
    assert result
    assert runs(ready) == 2


@pytest.mark.fault
@pytest.mark.parametrize("damage", [rewrite, lambda path: os.truncate(path, 10), Path.unlink])
def test_no_job_starts_beside_a_file_that_was_damaged_since_it_was_verified(
    ready: Device, contents: list[Content], folder: Path, damage: Callable[[Path], None]
) -> None:
    for content in contents:
        damage(stored(ready, content)[0])
        assert at_once(ready, folder, contents) is None
        for _ in range(3):
            prepared(ready, contents)
    assert runs(ready) == 0
    assert at_once(ready, folder, contents) is not None


@pytest.mark.fault
def test_a_folder_with_another_job_or_without_one_has_to_be_prepared(
    ready: Device, contents: list[Content], folder: Path
) -> None:
    run_job(ready, Job(str(folder), ["true"], ENOUGH_S, identity="other"))
    assert at_once(ready, folder, contents) is None
    prepared(ready, contents)
    folder.mkdir()
    assert at_once(ready, folder, contents) is None
    prepared(ready, contents)
    assert runs(ready) == 0
    assert at_once(ready, folder, contents) is not None


@pytest.mark.fault
def test_a_job_that_was_killed_with_its_farm_is_prepared_again_and_its_files_are_not_waited_for(
    ready: Device, contents: list[Content], folder: Path
) -> None:
    # given the folder of a job that left no exit status
    run_job(ready, Job(str(folder), ["true"], ENOUGH_S, identity="ours"))
    (folder / "job" / "rc").unlink()
    assert at_once(ready, folder, contents) is None
    prepared(ready, contents)
    assert at_once(ready, folder, contents) is not None
    assert runs(ready) == 1


@pytest.mark.fault
def test_a_call_that_starts_nothing_forgets_no_folder_of_a_collected_job(
    ready: Device, contents: list[Content], folder: Path
) -> None:
    ready.collected = [str(folder.with_name(str(number))) for number in range(8)]
    for each in ready.collected:
        Path(each).mkdir(parents=True)
    folder.mkdir()
    assert at_once(ready, folder, contents) is None
    # then the preparation that follows removes them
    left = [Path(each) for each in ready.collected]
    prepared(ready, contents)
    assert len(left) == 8
    assert not any(each.exists() for each in left)


@pytest.mark.fault
def test_a_lost_call_is_attached_to_while_its_job_still_runs(
    ready: Device, contents: list[Content], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, calls = ready.run, list[Sequence[str]]()

    def lose_the_first(words: Sequence[str], *, deadline_s: float) -> CommandResult:
        calls.append(words)
        if len(calls) > 1:
            return call(words, deadline_s=deadline_s)
        Thread(target=call, args=(words,), kwargs={"deadline_s": deadline_s}).start()
        wait_for((Path(ready.root) / "runs").exists, "the job to run")
        raise DeviceLost(ready.name, "its connection ended")

    monkeypatch.setattr(ready, "run", lose_the_first)
    words = ["sh", "-c", 'echo ran >>"$1"; sleep 0.5; exit 3', "sh", f"{ready.root}/runs"]
    result = run_if_prepared(ready, Job(str(folder), words, ENOUGH_S, identity="ours"), contents)
    assert result
    assert result.exit_code == 3
    assert runs(ready) == 1


def test_files_are_verified_again_before_they_have_to_be_marked_as_used(
    ready: Device, contents: list[Content], folder: Path
) -> None:
    ((key, verified),) = ((key, each) for key, each in ready.verified.items() if " " in key)
    for left_s, starts in ((ENOUGH_S, True), (-1, False)):
        ready.verified[key] = replace(verified, until_s=time.monotonic() + left_s)
        result = at_once(ready, folder.with_name(f"left {left_s}"), contents)
        assert (result is not None) == starts
    assert runs(ready) == 1


@pytest.mark.fault
def test_a_device_that_refuses_a_job_is_left_to_its_preparation_and_a_lost_lease_is_not(
    ready: Device, contents: list[Content], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise DeviceRefused(ready.name, "is offline")

    with monkeypatch.context() as patched:
        patched.setattr(ready, "run", refuse)
        assert at_once(ready, folder, contents) is None
    with acquire(ready, "ours", ttl_s=60):
        prepared(ready, contents)
        held = held_file(ready)
        held.rename(held.with_name("theirs." + held.name.partition(".")[2]))
        ready.collected = [str(folder.with_name(str(number))) for number in range(8)]
        for each in ready.collected:
            Path(each).mkdir(parents=True)
        with pytest.raises(LeaseLost, match="taken over"):
            at_once(ready, folder, contents)
        assert all(Path(each).is_dir() for each in ready.collected)
    assert runs(ready) == 0


def test_the_folders_of_collected_jobs_are_removed_once_there_are_eight(
    ready: Device, contents: list[Content], folder: Path
) -> None:
    folders = [folder.with_name(f"number {number}") for number in range(9)]
    for at, each in enumerate(folders):
        assert at_once(ready, each, contents) is not None
        assert sum(each.exists() for each in folders) == (1 if at == 8 else at + 1)
        ready.collected.append(str(each))
