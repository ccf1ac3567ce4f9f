"""Backup and restore of bundles and the devices' health: incremental, complete or absent, verified, resumable."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest

from devices.errors import InputError
from tasks.keep.backup import BackupError, back_up, restore
from tasks.measure.health import Registry
from tasks.store.files import write_complete
from tasks.store.local import LocalStore
from tasks.store.var import Var
from tests.fixtures.command import Etfarm, Kept


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "disk").mkdir()
    return tmp_path / "disk"


@pytest.fixture
def measured(kept: Kept, etfarm: Etfarm) -> Kept:
    """A var folder with two sessions, one of them forgotten, a decision and a retired device."""
    ids = [kept.session([9_000_000]), kept.session([8_000_000])]
    assert etfarm("load")[0] == 0
    assert etfarm("forget", kept.session_ids()[0], "--reason", "wrong governor")[0] == 0
    assert etfarm("night", "exclude", "2026-11-20", "--reason", "heat")[0] == 0
    Registry(kept.var.registry).retire("old-phone", "swollen battery")
    assert ids
    return kept


def contents(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for name in ("bundles", "devices")
        for path in (root / name).rglob("*")
        if path.is_file()
    }


def objects(target: Path) -> list[Path]:
    return [path for path in (target / "objects").rglob("*") if path.is_file()]


def stop_at_fourth_file(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Let the fourth file that is copied raise KeyboardInterrupt; return the list of those that were copied."""
    written: list[Path] = []

    def stopped(path: Path, data: bytes | BinaryIO) -> None:
        if len(written) == 3:
            raise KeyboardInterrupt
        written.append(path)
        write_complete(path, data)

    monkeypatch.setattr("tasks.keep.backup.write_complete", stopped)
    return written


def test_a_restored_var_folder_has_the_same_files_figures_and_decisions(
    measured: Kept, target: Path, etfarm: Etfarm, tmp_path: Path
) -> None:
    # given a backup, and another machine
    assert etfarm("backup", target)[0] == 0
    before, figures = contents(measured.var.root), measured.ask("FROM session_latency")
    shutil.rmtree(measured.var.root)
    # when it is restored and loaded there
    code, printed = etfarm("restore", target)
    assert code == 0
    assert "restored and verified; run `etfarm load`" in printed
    assert etfarm("load")[0] == 0
    # then files, figures, the forgotten session, the decision and the device's health are the same
    assert contents(measured.var.root) == before
    assert measured.ask("FROM session_latency") == figures
    assert len(figures) == 1
    assert "heat" in etfarm("decisions")[1]
    assert Registry(measured.var.registry).health("old-phone").state == "retired"


def test_a_second_backup_copies_only_what_is_new(measured: Kept, target: Path) -> None:
    first = back_up(measured.var, target)
    assert first.copied == len(objects(target)) > 0
    again = back_up(measured.var, target)
    assert (again.copied, again.manifest) == (0, first.manifest)
    measured.session([7_000_000])
    more = back_up(measured.var, target)
    new = len(more.manifest.files) - len(first.manifest.files)
    assert 0 < more.copied <= new


def test_a_changed_file_of_the_same_size_and_another_time_is_copied(measured: Kept, target: Path) -> None:
    back_up(measured.var, target)
    (record,) = measured.var.registry.glob("old-phone*.json")
    record.write_text(record.read_text().replace("swollen", "damaged"))
    assert back_up(measured.var, target).copied == 1


def test_unfinished_files_are_not_part_of_a_backup(measured: Kept, target: Path) -> None:
    partial = measured.var.bundles / ".part-1-abc"
    partial.mkdir()
    (partial / "session.json").write_text("{")
    assert not [name for name in back_up(measured.var, target).manifest.files if ".part-" in name]


def test_what_labs_share_is_not_part_of_a_backup(measured: Kept, target: Path) -> None:
    LocalStore(measured.var.bundles).shelf.write("labs/night/order.json", b"an order")
    assert not any(".shared" in name for name in back_up(measured.var, target).manifest.files)


def test_a_stopped_backup_is_absent_and_resumes(
    measured: Kept, target: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # given a backup that is stopped at its fourth file
    stop_at_fourth_file(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        back_up(measured.var, target)
    monkeypatch.undo()
    # then there is nothing to restore, and the next one copies the rest
    with pytest.raises(InputError, match="contains no complete backup"):
        restore(target, Var(tmp_path / "new"))
    done = back_up(measured.var, target)
    assert done.copied == len(objects(target)) - 3
    restore(target, Var(tmp_path / "new"))
    assert contents(tmp_path / "new") == contents(measured.var.root)


def test_a_stopped_restore_leaves_var_absent_and_resumes(
    measured: Kept, target: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # given a restore that is stopped at its fourth file
    back_up(measured.var, target)
    new = Var(tmp_path / "new")
    written = stop_at_fourth_file(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        restore(target, new)
    assert not new.root.exists()
    # when one of the copied files is damaged meanwhile, and the restore is run again
    written[0].write_bytes(b"damaged")
    inodes = [path.stat().st_ino for path in written[1:]]
    monkeypatch.undo()
    restore(target, new)
    # then the others are kept, and everything is right
    kept = [new.root / path.relative_to(tmp_path / "new.restoring") for path in written[1:]]
    assert [path.stat().st_ino for path in kept] == inodes
    assert contents(new.root) == contents(measured.var.root)
    assert list(tmp_path.glob("*.restoring")) == []


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"x")])
def test_a_damaged_object_is_named_and_the_rest_is_kept_aside(
    measured: Kept, target: Path, tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    manifest = back_up(measured.var, target).manifest
    name, kept = next((name, kept) for name, kept in manifest.files.items() if name.endswith("session.json"))
    damage(kept.object_in(target))
    with pytest.raises(BackupError) as error:
        restore(target, Var(tmp_path / "new"))
    assert f"1 of {len(manifest.files)} files, first {name}; all others are in {tmp_path}/new.restoring" in str(
        error.value
    )
    assert not (tmp_path / "new").exists()
    # and the next backup of the complete var folder repairs an object of another size
    back_up(measured.var, target)
    restore(target, Var(tmp_path / "new"))
    assert contents(tmp_path / "new") == contents(measured.var.root)


def test_a_file_that_disappears_meanwhile_begins_the_copy_again(
    measured: Kept, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a sweep that is packed while it is copied
    packed = iter([True])

    def pack(path: Path, data: bytes | BinaryIO) -> None:
        if next(packed, False):
            for folder in measured.var.bundles.glob("*-20*"):
                shutil.rmtree(folder)
        write_complete(path, data)

    monkeypatch.setattr("tasks.keep.backup.write_complete", pack)
    assert set(back_up(measured.var, target).manifest.files) == set(contents(measured.var.root))


def test_mistakes_are_one_sentence(measured: Kept, target: Path, etfarm: Etfarm, tmp_path: Path) -> None:
    var = measured.var.root
    inside = var / "backup"
    inside.mkdir()
    for words, sentence in (
        (("backup", tmp_path / "none"), "none: not a folder; create it once, on another disk or machine"),
        (("backup", inside), f"{inside}: inside {var}, with which it would be lost"),
        (("restore", target), f"{var}: not an empty folder; name a new one with --var"),
    ):
        code, printed = etfarm(*words)
        assert code == 2
        assert sentence in printed
        assert len(printed.splitlines()) == 1
    shutil.rmtree(var)
    assert "contains neither bundles nor devices" in etfarm("backup", target)[1]
    assert "contains no complete backup" in etfarm("restore", target)[1]


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "bundles/../../x", "prefect/x"])
def test_a_list_of_files_that_leads_elsewhere_is_refused(target: Path, tmp_path: Path, name: str) -> None:
    kept = {"sha256": "0" * 64, "size_bytes": 1, "mtime_ns": 1}
    (target / "backup-20261122T120000.json").write_text(json.dumps({"version": 1, "files": {name: kept}}))
    with pytest.raises(BackupError, match=r"damaged .*not a path in bundles or devices"):
        restore(target, Var(tmp_path / "new"))
