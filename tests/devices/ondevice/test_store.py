"""The store on a device: by content, verified there, cheap the second time."""

import os
import stat
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from devices.device import Device
from devices.errors import DeviceError, FileChanged, NoSpaceOnDevice, TransferFailed
from devices.ondevice import store
from devices.ondevice.store import put, put_tree
from tests.fixtures.stored import holds, sha256, tree_sha256
from tests.fixtures.waiting import ENOUGH_S


@dataclass(frozen=True)
class Given:
    """A file or a tree to put, one file of it here, and where that is on the device."""

    put: Callable[[], str]
    local: Path
    remote: Path


@pytest.fixture(params=["file", "tree"])
def given(request: pytest.FixtureRequest, device: Device, blob: Path, tree: dict[str, Path]) -> Given:
    if request.param == "file":
        wanted = sha256(blob)
        return Given(lambda: put(device, blob, wanted), blob, Path(store.blob_path(device, wanted)))
    wanted, name = tree_sha256(tree), "lib/it's"
    return Given(lambda: put_tree(device, tree, wanted), tree[name], Path(store.tree_path(device, wanted)) / name)


def test_what_was_put_stands_under_its_hash(device: Device, blob: Path) -> None:
    assert not holds(device, sha256(blob))

    remote = put(device, blob, sha256(blob))

    assert Path(remote).read_bytes() == blob.read_bytes()
    assert holds(device, sha256(blob))
    assert list((Path(device.root) / "incoming").iterdir()) == []


def test_putting_again_costs_one_round_trip(given: Given, round_trips: list[str]) -> None:
    given.put()
    round_trips.clear()

    given.put()

    assert round_trips == ["run"]


@pytest.mark.parametrize("executable_first", [False, True])
def test_a_script_that_was_put_as_an_executable_and_as_a_plain_file_can_be_run(
    device: Device, tmp_path: Path, executable_first: bool
) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\necho ran\n")

    for executable in (executable_first, not executable_first):
        remote = put(device, script, sha256(script), executable=executable)

    assert device.run([remote], deadline_s=ENOUGH_S).stdout == b"ran\n"


@pytest.mark.fault(
    stage="push",
    done="a model is changed on the controller after its export, with the same size",
    holds="it is not stored",
)
def test_a_local_file_with_another_hash_is_not_stored(device: Device, blob: Path) -> None:
    wanted = sha256(blob)
    blob.write_bytes(os.urandom(100_000))

    with pytest.raises(FileChanged, match=f"model.pte has the hash {sha256(blob)[:16]} instead of {wanted[:16]}"):
        put(device, blob, wanted)

    assert not holds(device, wanted)
    assert [path for path in Path(device.root).rglob("*") if path.is_file()] == []


@pytest.mark.fault(
    stage="push",
    done="a file is changed on its way to the device",
    holds="it is refused and nothing is left",
)
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
    assert [path for path in Path(device.root).rglob("*") if path.is_file()] == []


@pytest.mark.fault(
    stage="push",
    done="a file of a model or runner is {harm} on the device",
    holds="it is sent again before it runs",
)
@pytest.mark.parametrize("harm", ["changed, with the same size and time,", "truncated", "deleted"])
def test_what_was_damaged_on_the_device_is_put_again(given: Given, harm: str) -> None:
    # given something that was put and verified
    given.put()
    given.put()
    before = given.remote.stat()
    # when one file of it is damaged
    if harm == "deleted":
        given.remote.unlink()
    elif harm == "truncated":
        os.truncate(given.remote, 10)
    else:
        given.remote.write_bytes(os.urandom(before.st_size))
        os.utime(given.remote, ns=(before.st_atime_ns, before.st_mtime_ns))

    given.put()

    assert given.remote.read_bytes() == given.local.read_bytes()


@pytest.mark.fault(
    stage="push",
    done="the program of a runner is changed on the controller after its publication, with the same size",
    holds="it is not sent",
)
def test_a_local_tree_with_another_hash_is_not_sent(device: Device, tree: dict[str, Path]) -> None:
    wanted = tree_sha256(tree)
    tree["executor_runner"].write_bytes(os.urandom(1000))

    with pytest.raises(FileChanged, match=f"do not have the hash {wanted[:16]}: one was changed after it was publ"):
        put_tree(device, tree, wanted)

    assert [path for path in Path(device.root).rglob("*") if path.is_file()] == []


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


def test_a_hash_that_is_none_is_refused(device: Device, blob: Path) -> None:
    with pytest.raises(DeviceError, match="not a hash"):
        put(device, blob, "../../etc/passwd")


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


@pytest.mark.fault(
    stage="push", done="two controllers send the same runner at the same moment", holds="both end with it"
)
def test_two_controllers_that_put_the_same_at_once_both_end_with_it(device: Device, tree: dict[str, Path]) -> None:
    problems: list[BaseException] = []

    def put() -> None:
        try:
            put_tree(device, tree, tree_sha256(tree))
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=put) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    remote = Path(store.tree_path(device, tree_sha256(tree)))
    assert problems == []
    assert sorted(str(path.relative_to(remote)) for path in remote.rglob("*") if path.is_file()) == sorted(tree)


@pytest.mark.fault(stage="push", done="the disk of the device fills during a push", holds="reported; nothing is left")
def test_a_full_disk_is_reported_when_putting(device: Device, tmp_path: Path, full_disk: Path) -> None:
    device.root = f"{full_disk}/root"
    big = tmp_path / "big"
    big.write_bytes(os.urandom(3_000_000))

    with pytest.raises(NoSpaceOnDevice):
        put(device, big, sha256(big))
    with pytest.raises(NoSpaceOnDevice):
        put_tree(device, {"big": big}, tree_sha256({"big": big}))

    assert [path for path in full_disk.rglob("*") if path.is_file()] == []
