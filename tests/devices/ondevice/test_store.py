"""The store on a device: by content, verified there, cheap the second time."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from devices.device import Device
from devices.errors import FileChanged, NoSpaceOnDevice, TransferFailed
from devices.ondevice import store
from devices.ondevice.store import put, put_tree
from tests.fixtures.stored import holds, sha256, tree_sha256
from tests.fixtures.waiting import ENOUGH_S


def files_below(device: Device) -> list[Path]:
    return [path for path in Path(device.root).rglob("*") if path.is_file()]


def test_what_was_put_stands_under_its_hash(device: Device, blob: Path) -> None:
    assert not holds(device, sha256(blob))

    remote = put(device, blob, sha256(blob))

    assert Path(remote).read_bytes() == blob.read_bytes()
    assert holds(device, sha256(blob))
    assert list((Path(device.root) / "incoming").iterdir()) == []


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
    assert files_below(device) == []


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
    assert files_below(device) == []


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


@pytest.mark.fault(
    stage="push", done="two controllers send the same runner at the same moment", holds="both end with it"
)
def test_two_controllers_that_put_the_same_at_once_both_end_with_it(device: Device, tree: dict[str, Path]) -> None:
    wanted = tree_sha256(tree)

    with ThreadPoolExecutor(4) as pool:
        remotes = list(pool.map(lambda _: put_tree(device, tree, wanted), range(4)))

    assert remotes == [store.tree_path(device, wanted)] * 4
    assert sorted(files_below(device)) == sorted(Path(remotes[0]) / name for name in tree)


@pytest.mark.fault(stage="push", done="the disk of the device fills during a push", holds="reported; nothing is left")
def test_a_full_disk_is_reported_when_putting(device: Device, tmp_path: Path, full_disk: Path) -> None:
    device.root = f"{full_disk}/root"
    big = tmp_path / "big"
    big.write_bytes(os.urandom(3_000_000))

    with pytest.raises(NoSpaceOnDevice):
        put(device, big, sha256(big))
    with pytest.raises(NoSpaceOnDevice):
        put_tree(device, {"big": big}, tree_sha256({"big": big}))

    assert files_below(device) == []
