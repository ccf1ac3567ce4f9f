"""What precedes a job is one round trip: its lease, an earlier job, the files in the store, the conditions."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from devices.device import Device
from devices.errors import DeviceError, FileChanged, LeaseLost
from devices.ondevice.job import Job, Prepared, prepare_job, run_job
from devices.ondevice.lease import acquire
from devices.ondevice.store import Content
from tests.fixtures.leases import held_file
from tests.fixtures.stored import sha256, tree_sha256
from tests.fixtures.waiting import ENOUGH_S


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
