"""The store on a device: by content, verified there, cheap the second time; what leaves it, and when."""

import os
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from devices.device import Device
from devices.errors import DeviceError, FileChanged, NoSpaceOnDevice, TransferFailed
from devices.ondevice import store
from devices.ondevice.store import StoredEntry, put, put_tree, surplus
from tests.fixtures.stored import holds, sha256, tree_sha256


def files_below(device: Device) -> list[Path]:
    return [path for path in Path(device.root).rglob("*") if path.is_file()]


def test_what_was_put_stands_under_its_hash(device: Device, blob: Path) -> None:
    assert not holds(device, sha256(blob))

    remote = put(device, blob, sha256(blob))

    assert Path(remote).read_bytes() == blob.read_bytes()
    assert holds(device, sha256(blob))
    assert list((Path(device.root) / "incoming").iterdir()) == []


@pytest.mark.fault
def test_a_local_file_with_another_hash_is_not_stored(device: Device, blob: Path) -> None:
    wanted = sha256(blob)
    blob.write_bytes(os.urandom(100_000))

    with pytest.raises(FileChanged, match=f"model.pte has the hash {sha256(blob)[:16]} instead of {wanted[:16]}"):
        put(device, blob, wanted)

    assert not holds(device, wanted)
    assert files_below(device) == []


@pytest.mark.fault
def test_a_file_that_arrives_changed_is_refused_and_leaves_nothing(
    device: Device, blob: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, upload, other = sha256(blob), device.upload, tmp_path / "other"
    other.write_bytes(os.urandom(100_000))

    def changed(_local: Path, remote: str) -> None:
        upload(other, remote)

    monkeypatch.setattr(device, "upload", changed)
    with pytest.raises(TransferFailed, match=f"model.pte arrived with hash .* instead of {wanted[:16]}"):
        put(device, blob, wanted)

    assert not holds(device, wanted)
    assert files_below(device) == []


@pytest.mark.fault
def test_a_local_tree_with_another_hash_is_not_sent(device: Device, tree: dict[str, Path]) -> None:
    wanted = tree_sha256(tree)
    tree["executor_runner"].write_bytes(os.urandom(1000))

    with pytest.raises(FileChanged, match=f"do not have the hash {wanted[:16]}: one was changed after it was publ"):
        put_tree(device, tree, wanted)

    assert files_below(device) == []


def test_what_was_not_changed_is_not_read_again(
    local_device: Device, blob: Path, tree: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given files that were used before
    for _ in range(2):
        put(local_device, blob, sha256(blob))
        put_tree(local_device, tree, tree_sha256(tree))
    # when they are used on a device whose program for hashes fails
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "sha256sum").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "tools" / "sha256sum").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/tools{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(local_device, "upload", None)

    assert Path(put(local_device, blob, sha256(blob))).is_file()
    assert Path(put_tree(local_device, tree, tree_sha256(tree))).is_dir()


def test_a_tree_arrives_complete_and_executable(device: Device, tree: dict[str, Path]) -> None:
    remote = Path(put_tree(device, tree, tree_sha256(tree)))

    assert {name: (remote / name).read_bytes() for name in tree} == {
        name: path.read_bytes() for name, path in tree.items()
    }
    assert all((remote / name).stat().st_mode & stat.S_IXUSR for name in tree)
    assert list((Path(device.root) / "incoming").iterdir()) == []


def test_a_name_that_leads_out_of_the_tree_is_refused(device: Device, blob: Path) -> None:
    with pytest.raises(TransferFailed, match="leads out of the folder"):
        put_tree(device, {"../evil": blob}, "ab" * 32)


@pytest.mark.fault
def test_two_controllers_that_put_the_same_at_once_both_end_with_it(device: Device, tree: dict[str, Path]) -> None:
    wanted = tree_sha256(tree)

    with ThreadPoolExecutor(4) as pool:
        remotes = list(pool.map(lambda _: put_tree(device, tree, wanted), range(4)))

    assert remotes == [store.tree_path(device, wanted)] * 4
    # Of a controller that found the others' folder, the hashes that it verified are kept, too.
    left = [path for path in files_below(device) if path.parent.name != "verified"]
    assert sorted(left) == sorted(Path(remotes[0]) / name for name in tree)


@pytest.mark.fault
def test_a_full_disk_is_reported_when_putting(device: Device, tmp_path: Path, full_disk: Path) -> None:
    device.root = f"{full_disk}/root"
    big = tmp_path / "big"
    big.write_bytes(os.urandom(3_000_000))

    with pytest.raises(NoSpaceOnDevice):
        put(device, big, sha256(big))
    with pytest.raises(NoSpaceOnDevice):
        put_tree(device, {"big": big}, tree_sha256({"big": big}))

    assert files_below(device) == []


def test_removing_takes_what_is_inside_the_root_only(device: Device, tree: dict[str, Path], tmp_path: Path) -> None:
    remote = put_tree(device, tree, tree_sha256(tree))

    store.remove(device, remote)
    store.remove(device, remote)

    assert not Path(remote).exists()
    for outside in (str(tmp_path), f"{device.root}/../x", device.root):
        with pytest.raises(DeviceError, match="is not inside"):
            store.remove(device, outside)


def test_pruning_takes_the_least_recently_used_first(device: Device, tmp_path: Path) -> None:
    # Given three blobs of 100 kB, last used three, two and one hours ago, the oldest of them used again just now
    hashes = []
    for hours in (3, 2, 1):
        path = tmp_path / f"blob-{hours}"
        path.write_bytes(os.urandom(100_000))
        remote = put(device, path, sha256(path))
        os.utime(remote, (time.time() - hours * 3601,) * 2)
        hashes.append(sha256(path))
    put(device, tmp_path / "blob-3", hashes[0])

    removed = store.prune(device, limit_bytes=250_000)

    assert removed == [f"blobs/{hashes[1]}"]
    assert [holds(device, each) for each in hashes] == [True, False, True]


def test_pruning_spares_what_was_used_within_the_last_hour(device: Device, blob: Path) -> None:
    put(device, blob, sha256(blob))

    assert store.prune(device, limit_bytes=1) == []
    assert holds(device, sha256(blob))


def test_the_store_keeps_its_limit_when_something_new_comes(device: Device, blob: Path, tmp_path: Path) -> None:
    # Given a limit, and a blob that nobody used for hours
    old = tmp_path / "old"
    old.write_bytes(os.urandom(100_000))
    os.utime(put(device, old, sha256(old)), (time.time() - 7200,) * 2)
    device.store_limit_bytes = 150_000

    os.utime(blob, (time.time() - 9999,) * 2)
    put(device, blob, sha256(blob))

    assert (holds(device, sha256(old)), holds(device, sha256(blob))) == (False, True)


def test_pruning_an_empty_device_is_fine(device: Device) -> None:
    assert store.prune(device, limit_bytes=1) == []


@pytest.mark.parametrize(
    ("limit_bytes", "expected"),
    [(100, []), (60, ["blobs/a"]), (0, ["blobs/a", "trees/b"])],
)
def test_surplus_goes_until_the_rest_fits(limit_bytes: int, expected: list[str]) -> None:
    entries = [
        StoredEntry("blobs/a", 40, is_idle=True),
        StoredEntry("trees/b", 30, is_idle=True),
        StoredEntry("blobs/c", 30, is_idle=False),
    ]

    assert surplus(entries, limit_bytes) == expected


def test_abandoned_uploads_are_always_removed() -> None:
    entries = [StoredEntry("incoming/x", 1, is_idle=True), StoredEntry("incoming/y", 1, is_idle=False)]

    assert surplus(entries, 1000) == ["incoming/x"]


def test_nothing_else_is_removed_where_an_abandoned_upload_makes_enough_room() -> None:
    entries = [
        StoredEntry("blobs/a", 10, is_idle=True),
        StoredEntry("blobs/b", 80, is_idle=False),
        StoredEntry("incoming/x", 20, is_idle=True),
    ]

    assert surplus(entries, 100) == ["incoming/x"]
