"""The store on a device: by content, verified there, cheap the second time; what leaves it, and when."""

import os
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from devices.device import Device
from devices.errors import DeviceError, FileChanged, TransferFailed
from devices.ondevice import store
from devices.ondevice.store import StoredEntry, put, put_tree, surplus
from tests.fixtures.stored import holds, sha256, tree_sha256


def files_below(device: Device) -> list[Path]:
    return [path for path in Path(device.root).rglob("*") if path.is_file()]


def age(remote: str | Path, hours: float) -> None:
    os.utime(remote, (time.time() - hours * 3601,) * 2)


def test_what_was_put_has_its_hash_as_its_name(device: Device, blob: Path, tree: dict[str, Path]) -> None:
    assert not holds(device, sha256(blob))
    assert Path(put(device, blob, sha256(blob))).read_bytes() == blob.read_bytes()
    assert holds(device, sha256(blob))
    remote = Path(put_tree(device, tree, tree_sha256(tree)))
    assert {name: (remote / name).read_bytes() for name in tree} == {name: tree[name].read_bytes() for name in tree}
    assert all((remote / name).stat().st_mode & stat.S_IXUSR for name in tree)
    assert list((Path(device.root) / "incoming").iterdir()) == []


@pytest.mark.fault
def test_files_with_another_hash_here_or_on_arrival_leave_nothing(
    device: Device, blob: Path, tree: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, of_tree = sha256(blob), tree_sha256(tree)
    blob.write_bytes(os.urandom(100_000))
    tree["executor_runner"].write_bytes(os.urandom(1000))
    with pytest.raises(FileChanged, match=f"model.pte has the hash {sha256(blob)[:16]} instead of {expected[:16]}"):
        put(device, blob, expected)
    with pytest.raises(FileChanged, match=f"do not have the hash {of_tree[:16]}: one was changed after it was publ"):
        put_tree(device, tree, of_tree)
    # nor is one that arrives changed
    upload, other = device.upload, tmp_path / "other"
    other.write_bytes(os.urandom(100_000))
    monkeypatch.setattr(device, "upload", lambda _, remote: upload(other, remote))
    with pytest.raises(TransferFailed, match=f"model.pte arrived with hash .* instead of {sha256(blob)[:16]}"):
        put(device, blob, sha256(blob))
    assert files_below(device) == []


@pytest.mark.fault
def test_two_controllers_that_put_the_same_at_once_both_end_with_it(device: Device, tree: dict[str, Path]) -> None:
    expected = tree_sha256(tree)
    with ThreadPoolExecutor(4) as pool:
        remotes = list(pool.map(lambda _: put_tree(device, tree, expected), range(4)))
    assert remotes == [store.tree_path(device, expected)] * 4
    # Of a controller that found the others' folder, the hashes that it verified are kept, too.
    left = [path for path in files_below(device) if path.parent.name != "verified"]
    assert sorted(left) == sorted(Path(remotes[0]) / name for name in tree)


def test_nothing_outside_the_root_or_of_a_tree_is_written_or_removed(
    device: Device, blob: Path, tree: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(TransferFailed, match="leads out of the folder"):
        put_tree(device, {"../evil": blob}, "ab" * 32)
    remote = put_tree(device, tree, tree_sha256(tree))
    for _ in range(2):  # a missing folder is ignored
        store.remove(device, remote)
        assert not Path(remote).exists()
    for outside in (str(tmp_path), f"{device.root}/../x", device.root):
        with pytest.raises(DeviceError, match="is not inside"):
            store.remove(device, outside)


def test_pruning_removes_the_least_recently_used_and_nothing_of_the_last_hour(device: Device, tmp_path: Path) -> None:
    assert store.prune(device, limit_bytes=1) == []
    # given three blobs of 100 kB, last used three, two and one hours ago, the oldest of them used again just now
    hashes = []
    for hours in (3, 2, 1):
        path = tmp_path / f"blob-{hours}"
        path.write_bytes(os.urandom(100_000))
        hashes.append(sha256(path))
        age(put(device, path, hashes[-1]), hours)
    put(device, tmp_path / "blob-3", hashes[0])
    assert store.prune(device, limit_bytes=250_000) == [f"blobs/{hashes[1]}"]
    assert [holds(device, each) for each in hashes] == [True, False, True]
    assert store.prune(device, limit_bytes=1) == [f"blobs/{hashes[2]}"]


def test_the_store_keeps_its_limit_when_something_new_comes(device: Device, blob: Path, tmp_path: Path) -> None:
    # given a limit, a blob that nobody used for hours, and a new file that was made earlier
    old = tmp_path / "old"
    old.write_bytes(os.urandom(100_000))
    age(put(device, old, sha256(old)), 2)
    device.store_limit_bytes = 150_000
    age(blob, 3)
    put(device, blob, sha256(blob))
    assert (holds(device, sha256(old)), holds(device, sha256(blob))) == (False, True)


A, B, BUSY = (
    StoredEntry(f"blobs/{name}", size, is_idle=name != "c") for name, size in (("a", 40), ("b", 30), ("c", 30))
)
UPLOAD, BUSY_UPLOAD = StoredEntry("incoming/x", 20, is_idle=True), StoredEntry("incoming/y", 20, is_idle=False)


@pytest.mark.parametrize(
    ("entries", "limit_bytes", "removed"),
    [
        ([A, B, BUSY], 100, []),
        ([A, B, BUSY], 99, [A]),
        ([A, B, BUSY], 60, [A]),
        ([A, B, BUSY], 0, [A, B]),
        ([UPLOAD, BUSY_UPLOAD], 1000, [UPLOAD]),
        ([A, BUSY, UPLOAD], 70, [UPLOAD]),
    ],
)
def test_idle_uploads_go_then_the_least_recently_used_until_the_rest_fits(
    entries: list[StoredEntry], limit_bytes: int, removed: list[StoredEntry]
) -> None:
    assert surplus(entries, limit_bytes) == [each.path for each in removed]
