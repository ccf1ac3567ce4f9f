"""`etfarm warehouse prune` loses nothing: not when it is killed, nor by damage, a full disk or another prune."""

import errno
import shutil
import subprocess
from datetime import date
from pathlib import Path

import pytest

from tasks.bundle.record import BundleError
from tasks.maintain.prune import Plan, pack_sweep, prune, prune_lock
from tests.fixtures.command import DataFolder, Etfarm
from tests.fixtures.gated import stopped_at
from tests.fixtures.nights import NEW, OLD, PRUNE, contents, write_nights

fill = write_nights


@pytest.mark.fault
@pytest.mark.parametrize(("left", "stays"), [(".part-999999999-x", False), (".part-1-x@elsewhere", True)])
def test_what_a_killed_process_left_keeps_no_sweep_from_being_packed(
    farm: DataFolder, etfarm: Etfarm, left: str, stays: bool
) -> None:
    # given an unfinished bundle in the folder of an old sweep
    (farm.bundles / OLD / left).mkdir()
    (farm.bundles / OLD / left / "model.etdump").write_bytes(b"half")
    # when it is pruned, then the sweep is packed, and not again
    assert f"packed {OLD}: 4 bundles" in etfarm("warehouse", "prune", "--yes")[1]
    assert (farm.bundles / OLD / left).exists() is stays
    assert (farm.bundles / OLD).exists() is stays
    assert etfarm("warehouse", "prune", "--yes") == (0, "nothing to prune\n")


@pytest.mark.thorough
@pytest.mark.parametrize("moment", ["packing", "verified", "removing", "packed", "thinned"])
def test_a_prune_that_is_killed_loses_nothing(farm: DataFolder, etfarm: Etfarm, moment: str) -> None:
    # given what the sweep's records are
    records = list(farm.store.records(OLD))
    # when a prune is killed at this moment
    with stopped_at(moment, *PRUNE, "--data-dir", farm.workspace.root):
        pass
    # then every bundle is there and complete, and the next prune ends what was begun
    assert list(farm.store.records(OLD)) == records
    assert etfarm("warehouse", "check")[0] == 0
    etfarm(*PRUNE)
    assert list(farm.store.records(OLD)) == records
    assert "no finding: 6 bundles" in etfarm("warehouse", "check")[1]
    assert sorted(path.name for path in farm.bundles.iterdir()) == [".prune.lock", f"{OLD}.tar.zst", NEW]


@pytest.mark.thorough
def test_a_kill_while_folders_are_removed_leaves_every_bundle_readable(farm: DataFolder) -> None:
    # given an archive, and a folder that lost only one of its bundles before the kill
    records = list(farm.store.records(OLD))
    shutil.copytree(farm.bundles / OLD, farm.workspace.root / "copy")
    pack_sweep(farm.bundles, OLD)
    (farm.workspace.root / "copy").rename(farm.bundles / OLD)
    shutil.rmtree(min((farm.bundles / OLD).iterdir()))
    # then all records are there once, and packing again removes the rest
    assert list(farm.store.records(OLD)) == records
    pack_sweep(farm.bundles, OLD)
    assert list(farm.store.records(OLD)) == records
    assert not (farm.bundles / OLD).exists()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("model.etdump", "does not match its hash"),
        ("session.json", "does not match its schema"),
        ("x", "not a file of"),
    ],
)
def test_a_damaged_bundle_is_not_packed(farm: DataFolder, etfarm: Etfarm, name: str, sentence: str) -> None:
    (farm.bundles / OLD / f"{1:016x}" / name).write_bytes(b"{}")
    before = contents(farm.bundles / OLD)
    code, printed = etfarm("warehouse", "prune", "--yes")
    assert code == 1
    assert "not packed: " in printed
    assert sentence in printed
    assert contents(farm.bundles / OLD) == before
    assert not list(farm.bundles.glob("*.tar.zst"))


@pytest.mark.thorough
def test_a_damaged_archive_is_reported_by_a_check_and_a_rebuild(farm: DataFolder, etfarm: Etfarm) -> None:
    # given an archive that was damaged
    etfarm("warehouse", "prune", "--yes")
    archive = farm.bundles / f"{OLD}.tar.zst"
    archive.write_bytes(archive.read_bytes()[:-20])
    # then a check names it, and a rebuild keeps the warehouse
    code, printed = etfarm("warehouse", "check")
    assert code == 1
    assert f"{archive}: the archive is damaged" in printed
    code, printed = etfarm("warehouse", "rebuild")
    assert code == 2
    assert "restore" in printed
    assert len(farm.session_ids()) == 6


def test_a_full_disk_packs_nothing(full_disk: Path, farm: DataFolder) -> None:
    # given a sweep on a disk without room for its archive
    (farm.bundles / OLD).rename(farm.workspace.root / "moved")
    subprocess.run(["cp", "-r", str(farm.workspace.root / "moved"), str(full_disk / OLD)], check=True)
    before = contents(full_disk / OLD)
    free_bytes = shutil.disk_usage(full_disk).free
    (full_disk / "filler").write_bytes(b"x" * free_bytes)
    # when it is packed
    with pytest.raises(BundleError, match=r"No space left on device\); the bundles stay in"):
        pack_sweep(full_disk, OLD)
    # then the bundles stay, and no part of an archive is left
    assert contents(full_disk / OLD) == before
    assert sorted(path.name for path in full_disk.iterdir()) == ["filler", OLD]


def test_a_folder_that_cannot_be_removed_is_named_and_the_others_are(
    data: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [data.workspace.root / name for name in ("first", "second")]
    for folder in folders:
        folder.mkdir()
    rename = Path.rename

    def fail(path: Path, target: Path) -> Path:
        if path == folders[0]:
            raise PermissionError(errno.EACCES, "Permission denied")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail)
    plan = Plan(thin_before=date(2026, 1, 1), events={}, sweeps=[], unused=folders)
    first, second = prune(plan, data.workspace)
    assert (first.is_failure, second.is_failure, folders[1].exists()) == (True, False, False)
    assert first.line.startswith(f"not removed: {folders[0]}: Permission denied; ")


def test_two_prunes_at_the_same_time_are_refused(farm: DataFolder, etfarm: Etfarm) -> None:
    with prune_lock(farm.bundles):
        code, printed = etfarm("warehouse", "prune", "--yes")
    assert (code, "another `etfarm warehouse prune` is running" in printed) == (2, True)
    assert (farm.bundles / OLD).is_dir()
