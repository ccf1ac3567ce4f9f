"""What leaves the store of a device: what is removed, and the least recently used where it has a limit."""

import os
import time
from pathlib import Path

import pytest

from devices.device import Device
from devices.errors import DeviceError
from devices.ondevice import store
from devices.ondevice.store import StoredEntry, put, put_tree, surplus
from tests.fixtures.stored import holds, sha256, tree_sha256


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
        StoredEntry("blobs/a", 40, idle=True),
        StoredEntry("trees/b", 30, idle=True),
        StoredEntry("blobs/c", 30, idle=False),
    ]

    assert surplus(entries, limit_bytes) == expected


def test_abandoned_uploads_are_always_removed() -> None:
    entries = [StoredEntry("incoming/x", 1, idle=True), StoredEntry("incoming/y", 1, idle=False)]

    assert surplus(entries, 1000) == ["incoming/x"]
