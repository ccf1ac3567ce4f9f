"""What precedes a job is one round trip: its lease, an earlier job, the files in the store, the conditions."""

import os
from pathlib import Path

import pytest

from devices.device import Device
from devices.errors import DeviceError, FileChanged, LeaseLost
from devices.ondevice.job import Job, Prepared, prepare_job, run_job
from devices.ondevice.lease import acquire
from devices.ondevice.store import Content
from tests.fixtures.stored import sha256, tree_sha256
from tests.fixtures.waiting import ENOUGH_S


@pytest.fixture
def contents(blob: Path, tree: dict[str, Path]) -> list[Content]:
    return [Content(tree_sha256(tree), tree), Content(sha256(blob), blob)]


def prepared(device: Device, contents: list[Content]) -> Prepared:
    return prepare_job(device, job_of(device), contents, ttl_s=60)


def job_of(device: Device) -> Job:
    return Job(folder_of(device), ["true"], ENOUGH_S, identity="ours")


def folder_of(device: Device) -> str:
    return f"{device.root}/sessions/it's one"


def store(device: Device, contents: list[Content]) -> None:
    """Push the contents, and verify them once, which records their hashes on the device."""
    prepared(device, contents)
    prepared(device, contents)


def stored(device: Device, content: Content) -> list[Path]:
    return [Path(device.root) / path for path in content.paths]


def test_what_is_stored_costs_one_round_trip_with_the_conditions(
    device: Device, contents: list[Content], round_trips: list[str]
) -> None:
    # given contents that a first call pushes, and reads no conditions before
    assert prepared(device, contents) == Prepared(has_ended=False, conditions=None)
    assert all(path.is_file() for content in contents for path in stored(device, content))
    prepared(device, contents)
    round_trips.clear()

    again = prepared(device, contents)

    assert round_trips == ["run"]
    assert again.conditions is not None
    assert again.conditions.free_disk_bytes


def test_a_file_that_was_just_pushed_is_not_read_again(
    device: Device, contents: list[Content], round_trips: list[str]
) -> None:
    assert prepared(device, contents[1:]).conditions is None
    round_trips.clear()

    assert prepared(device, contents[1:]).conditions is not None
    assert round_trips == ["run"]


@pytest.mark.fault
@pytest.mark.parametrize("harm", ["changed, with the same size and time,", "truncated", "deleted"])
@pytest.mark.parametrize("which", [0, 1])
def test_what_was_damaged_on_the_device_is_pushed_again(
    device: Device, contents: list[Content], which: int, harm: str
) -> None:
    # given a store of verified files
    store(device, contents)
    path = stored(device, contents[which])[0]
    before, whole = path.stat(), path.read_bytes()
    # when one of them is damaged
    if harm == "deleted":
        path.unlink()
    elif harm == "truncated":
        os.truncate(path, 10)
    else:
        path.write_bytes(os.urandom(len(whole)))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    prepared(device, contents)

    assert path.read_bytes() == whole


def test_files_whose_record_of_hashes_was_deleted_are_verified_again(device: Device, contents: list[Content]) -> None:
    store(device, contents)
    deleted = next((Path(device.root) / "verified").iterdir())
    deleted.unlink()

    prepared(device, contents)

    assert deleted.is_file()


def test_hashes_of_other_contents_do_not_count(device: Device, contents: list[Content]) -> None:
    # given a store whose record names another hash for the unchanged file
    store(device, contents)
    guard = Path(device.root) / "verified" / contents[1].sha256
    guard.write_text(guard.read_text().replace(f"={contents[1].sha256}", f"={'0' * 64}"))

    assert prepared(device, contents).conditions is None


def test_what_was_not_used_for_a_while_is_marked_as_used(device: Device, contents: list[Content]) -> None:
    store(device, contents)
    folder = stored(device, contents[0])[0].parent
    os.utime(folder, (folder.stat().st_atime, folder.stat().st_mtime - 3000))
    old = folder.stat().st_mtime

    assert prepared(device, contents).conditions is None

    assert folder.stat().st_mtime - old > 2000
    assert prepared(device, contents).conditions is not None


def test_an_ended_job_of_the_same_identity_is_kept_and_another_is_removed(
    device: Device, contents: list[Content]
) -> None:
    folder = folder_of(device)
    run_job(device, job_of(device))

    assert prepared(device, contents).has_ended
    assert not (Path(device.root) / "blobs").exists()

    assert not prepare_job(device, Job(folder, [], 1, identity="other"), contents, ttl_s=60).has_ended
    assert not Path(folder).exists()
    # and so is one that has not ended
    (Path(folder) / "job").mkdir(parents=True)
    assert not prepared(device, contents).has_ended
    assert not Path(folder).exists()


def test_the_lease_is_extended_and_one_that_was_taken_over_stops_everything(
    device: Device, contents: list[Content], machine: Path
) -> None:
    # given a lease that will expire soon
    with acquire(device, "ours", ttl_s=5):
        (before,) = machine.glob("lease-*/*")
        prepare_job(device, job_of(device), contents, ttl_s=1000)
        (after,) = machine.glob("lease-*/*")
        assert float(after.name.rpartition(".")[2]) - float(before.name.rpartition(".")[2]) > 900
        # when another farm takes the device over
        Path(folder_of(device)).mkdir(parents=True)
        after.rename(after.with_name("theirs." + after.name.partition(".")[2]))
        device.collected = [folder_of(device)]
        # then nothing is removed
        with pytest.raises(LeaseLost, match="taken over"):
            prepared(device, contents)
        assert Path(folder_of(device)).is_dir()
    assert Path(folder_of(device)).is_dir()


@pytest.mark.parametrize("by", ["the next job", "the release of the lease"])
def test_the_folders_of_collected_jobs_are_removed_without_a_call_of_their_own(
    device: Device, round_trips: list[str], by: str
) -> None:
    # given two collected jobs, one of which is the one that is run again
    folders = [Path(folder_of(device)), Path(folder_of(device)).with_name("two")]
    with acquire(device, "ours", ttl_s=60):
        for folder in folders:
            run_job(device, Job(str(folder), ["true"], ENOUGH_S, identity="ours"))
            device.collected.append(str(folder))
        if by == "the next job":
            assert not prepared(device, []).has_ended
            assert not any(folder.exists() for folder in folders)
        round_trips.clear()
    # then they are gone, with the one round trip that the release needs
    assert round_trips == ["run"]
    assert not any(folder.exists() for folder in folders)
    assert device.collected == []


def test_what_is_not_a_hash_or_was_changed_here_is_refused(device: Device, blob: Path) -> None:
    with pytest.raises(DeviceError, match="not a hash"):
        prepared(device, [Content("../../etc", blob)])
    with pytest.raises(FileChanged):
        prepared(device, [Content("ab" * 32, blob)])
