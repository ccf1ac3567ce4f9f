"""Stores of bundles keep one promise, in a folder and in object storage: complete or absent, and never replaced."""

import errno
import os
import random
from pathlib import Path
from typing import Any

import pytest

from tasks.bundle.record import BundleError, SessionRecord, Text, parse_record
from tasks.store.archives import archive_path, pack_bundles, packed_records, unpack_bundles, verify_archive
from tasks.store.bundle_store import BundleStore, Forgotten
from tasks.store.files import UNFINISHED, hash_file, work_folder
from tasks.store.folder import read_bundle
from tasks.store.object_store import ObjectStore
from tasks.store.skipped import read_skipped, record_skipped, skipped_models, sweep_of_file
from tasks.store.workspace import Workspace
from tests.fixtures.plans import NIGHT, a_spec, ended, planned
from tests.fixtures.s3 import s3_client
from tests.fixtures.warehouse import BundleMaker

SESSIONS = planned(a_spec())


def files_of(folder: Path, **contents: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in contents.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    return folder


def publish(store: BundleStore, tmp_path: Path, number: int, status: str = "succeeded", **contents: str) -> str:
    """Publish one session and return its id; without contents it has an empty file and one of a word."""
    record = ended(SESSIONS[number], status)
    collected = files_of(tmp_path / f"collected-{status}-{number}", **(contents or {"stdout": "hello", "stderr": ""}))
    return store.publish(record, collected).session_id


def remote(bucket: str, tmp_path: Path) -> BundleStore:
    return Workspace(tmp_path / "var", bundles_location=f"s3://{bucket}/farm/bundles/").store


def keys(bucket: str) -> list[str]:
    listed = s3_client().list_objects_v2(Bucket=bucket)
    return [entry["Key"] for entry in listed.get("Contents", [])]


def key_of(bucket: str, session_id: str, name: str) -> str:
    return next(key for key in keys(bucket) if session_id in key and key.endswith(name))


def test_a_store_returns_what_was_published(store: BundleStore, tmp_path: Path) -> None:
    # given an empty store
    assert store.sweep_ids() == []
    assert list(store.records(NIGHT.sweep_id)) == []
    assert store.find("0123") is None
    # when two sessions are published
    published = {publish(store, tmp_path, 1), publish(store, tmp_path, 2)}
    # then they are fetched by sweep and by id, with their files
    assert store.sweep_ids() == [NIGHT.sweep_id]
    assert [record.session_id for record in store.records(NIGHT.sweep_id)] == sorted(published)
    for session_id in published:
        folder = store.find(session_id)
        assert folder
        record = read_bundle(folder)
        assert record.session_id == session_id
        assert {name: (folder / name).read_text() for name in record.files} == {"stdout.txt": "hello", "stderr.txt": ""}
    assert store.find("") is None


def test_a_device_that_asks_later_reads_its_records_and_no_record_of_others_again(
    store: BundleStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given sessions of two devices, of which one has read its records
    record = ended(SESSIONS[1], "succeeded")
    other = ended(SESSIONS[2], "succeeded")
    other = other.model_copy(update={"device": other.device.model_copy(update={"name": "other"})})
    for each in (record, other):
        store.publish(each, files_of(tmp_path / "collected", stdout="hello"))
    of_first = store.records(NIGHT.sweep_id, device=record.device.name)
    assert [each.session_id for each in of_first] == [record.session_id]
    # when the other one reads its records
    paths: list[str] = []

    def parse(content: Text, path: str) -> SessionRecord:
        paths.append(path)
        return parse_record(content, path)

    for module in ("tasks.bundle.record", "tasks.store.folder"):
        monkeypatch.setattr(f"{module}.parse_record", parse)
    assert [each.session_id for each in store.records(NIGHT.sweep_id, device="other")] == [other.session_id]
    # then it reads nothing else, and all records are still there
    assert [other.session_id in path for path in paths] == [True]
    assert len(list(store.records(NIGHT.sweep_id))) == 2


def test_the_first_result_of_a_session_stays(store: BundleStore, tmp_path: Path) -> None:
    # given a session that has succeeded
    session_id = publish(store, tmp_path, 1, stdout="first")
    # when another process publishes the same session with another result
    kept = store.publish(ended(SESSIONS[1], "failed"), files_of(tmp_path / "second", stdout="second", more="more"))
    # then the first one stays and is returned
    assert kept.status == "succeeded"
    assert [record.status for record in store.records(NIGHT.sweep_id)] == ["succeeded"]
    folder = store.find(session_id)
    assert folder
    assert sorted(path.name for path in folder.iterdir()) == ["session.json", "stdout.txt"]
    assert (folder / "stdout.txt").read_text() == "first"


def test_records_of_users_and_shared_files_are_beside_the_bundles(store: BundleStore) -> None:
    # given a store without any
    assert (store.forgotten(), store.decisions(), store.skipped_files()) == ({}, {}, [])
    # when two sessions are forgotten by two commands, a decision is recorded, and labs share files
    for session_id, reason in (("a1", "hot"), ("b2", "wrong wheel")):
        store.forget(Forgotten(reason=reason, forgotten_at="2026-11-21", sessions={session_id: NIGHT.sweep_id}))
    store.record_decision("1.json", b"{}")
    # and a sweep has skipped a model, which each of its starts records, or nothing
    skipped = skipped_models({("net@delegate=mlx", "fp32"): "no part of the graph"})
    for models in (skipped, [], skipped):
        record_skipped(store, NIGHT.sweep_id, models)
    for name in ("exports/a", "runners/b", "labs/c/order.json"):
        store.shared_files.write(name, b"x")
    # then they are read again, and none of them is a sweep
    assert store.forgotten() == {"a1": "hot", "b2": "wrong wheel"}
    [(path, content)] = store.decisions().items()
    assert (path.endswith("/decisions/1.json"), content) == (True, b"{}")
    [name] = store.skipped_files()
    assert (sweep_of_file(name), read_skipped(store, name).models) == (NIGHT.sweep_id, skipped)
    assert store.sweep_ids() == []
    # and a damaged one is named
    store.record_skipped(name, b'{"version": 1, "sweep_id": "smoke"}')
    with pytest.raises(BundleError, match=f"{name}: not a record of skipped models .*restore the file from a backup"):
        read_skipped(store, name)


@pytest.mark.fault
def test_a_bundle_in_s3_begins_to_exist_with_its_session_json(bucket: str, tmp_path: Path) -> None:
    # given the uploads of a farm that was killed before it wrote session.json
    store = remote(bucket, tmp_path)
    prefix = f"farm/bundles/{NIGHT.sweep_id}/{SESSIONS[1].session_id}"
    s3_client().put_object(Bucket=bucket, Key=f"{prefix}/0123456789abcdef-stdout.txt", Body=b"half")
    assert list(store.records(NIGHT.sweep_id)) == []
    assert store.find(SESSIONS[1].session_id) is None
    publish(store, tmp_path, 1, stdout="all")
    # then its bundle is complete, and only its files are left
    digits = hash_file(tmp_path / "collected-succeeded-1" / "stdout.txt")[:16]
    assert keys(bucket) == [f"{prefix}/{digits}-stdout.txt", f"{prefix}/session.json"]


@pytest.mark.fault
def test_an_upload_that_fails_leaves_no_bundle(bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # given a link that breaks between the files and session.json
    store = remote(bucket, tmp_path)
    assert isinstance(store, ObjectStore)

    def break_off(*_args: object, **_options: object) -> None:
        raise OSError("the connection was reset")

    with monkeypatch.context() as broken:
        broken.setattr(store._fs, "pipe_file", break_off)
        # then the error names the store and the cause
        with pytest.raises(BundleError, match=rf"^s3://{bucket}/.*cannot be written \(the connection was reset\)"):
            publish(store, tmp_path, 1)
    # and there is a bundle only when the session is published again
    assert list(store.records(NIGHT.sweep_id)) == []
    publish(store, tmp_path, 1)
    assert [record.status for record in store.records(NIGHT.sweep_id)] == ["succeeded"]


def test_only_bundles_that_are_not_loaded_are_fetched_and_each_once(bucket: str, tmp_path: Path) -> None:
    # given three bundles, of which the warehouse contains one
    store = remote(bucket, tmp_path)
    ids = [publish(store, tmp_path, number) for number in (1, 2, 3)]
    loaded = store.find(ids[0])
    assert loaded
    loaded_hash = hash_file(loaded / "session.json")
    # when they are fetched for loading, twice
    fetched = store.local_folders(NIGHT.sweep_id, lambda hashes: set(hashes) & {loaded_hash})
    moments = [folder.stat().st_mtime_ns for folder in fetched.folders]
    again = store.local_folders(None, lambda hashes: set(hashes) & {loaded_hash})
    # then the other two are local folders, which the second time uses again
    assert sorted(read_bundle(folder).session_id for folder in fetched.folders) == sorted(ids[1:])
    assert (fetched.already, fetched.refused) == (1, ())
    assert again == fetched
    assert [folder.stat().st_mtime_ns for folder in again.folders] == moments


def test_a_changed_or_lost_file_in_s3_is_found_by_a_check(bucket: str, tmp_path: Path) -> None:
    # given two bundles, whose files are compared with their hashes
    store = remote(bucket, tmp_path)
    damaged, good = publish(store, tmp_path, 1), publish(store, tmp_path, 2)
    assert {(each.session_id, each.damage, each.files) for each in store.verify(NIGHT.sweep_id)} == {
        (damaged, None, 2),
        (good, None, 2),
    }
    key = key_of(bucket, damaged, "-stdout.txt")
    client = s3_client()
    for content in (b"hallo", b"hello" + bytes(1_000_000), None):
        # when a file of one is changed, has more behind its content, and is lost
        client.delete_object(Bucket=bucket, Key=key)
        if content is not None:
            client.put_object(Bucket=bucket, Key=key, Body=content)
        # then that file is named, and the other bundle is fetched alone
        [sentence] = [each.damage for each in store.verify(NIGHT.sweep_id) if each.damage]
        assert f"{damaged}: stdout.txt: missing, or not matching its hash" in sentence
        fetched = store.local_folders(None, lambda _hashes: set())
        assert [read_bundle(folder).session_id for folder in fetched.folders] == [good]
        assert [damaged in refused for _, refused in fetched.refused] == [True]
        with pytest.raises(BundleError, match=damaged):
            store.find(damaged)


@pytest.mark.fault
def test_a_damaged_record_is_an_error_unless_such_bundles_are_skipped(
    store: BundleStore, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    # given two bundles, of which one has a truncated session.json
    damaged, good = publish(store, tmp_path, 1), publish(store, tmp_path, 2)
    if isinstance(store, ObjectStore):
        key = key_of(bucket := request.getfixturevalue("bucket"), damaged, "session.json")
        s3_client().put_object(Bucket=bucket, Key=key, Body=b"{")
    elif folder := store.find(damaged):
        (folder / "session.json").write_text("{", encoding="utf-8")
    # then all records are an error, and those of sound bundles can be read
    with pytest.raises(BundleError, match=f"{damaged}.*does not match its schema"):
        list(store.records(NIGHT.sweep_id))
    assert [record.session_id for record in store.records(NIGHT.sweep_id, skip_damaged=True)] == [good]
    assert store.session_ids(NIGHT.sweep_id) == sorted([damaged, good])


@pytest.mark.fault
def test_a_bundle_that_belongs_to_another_user_is_one_sentence_unless_it_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a shared folder with a bundle whose folder this user may not enter
    store = Workspace(tmp_path / "var").store
    foreign, own = publish(store, tmp_path, 1), publish(store, tmp_path, 2)

    def forbid(name: str) -> None:
        real = getattr(os, name)

        def call(path: Any, *rest: Any, **more: Any) -> Any:
            if f"{foreign}{os.sep}" in str(path):
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return real(path, *rest, **more)

        monkeypatch.setattr(os, name, call)

    for name in ("stat", "open"):
        forbid(name)
    # then its records state it, and those of other bundles can be read
    with pytest.raises(BundleError, match=f"{foreign}.*Permission denied"):
        list(store.records(NIGHT.sweep_id))
    assert [record.session_id for record in store.records(NIGHT.sweep_id, skip_damaged=True)] == [own]


SWEEP = "smoke-2026-01-02"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An archive of two bundles, with more than a tar reads at once."""
    maker = BundleMaker(tmp_path)
    for index in range(2):
        files = {"output0.bin": random.Random(index).randbytes(40_000)}
        maker.session([1000 + index], repetition=index, files=files, sweep__sweep_id=SWEEP, sweep__night="2026-01-02")
    target = archive_path(tmp_path, SWEEP)
    with target.open("wb") as stream:
        pack_bundles(stream, SWEEP, {path.name: path for path in (maker.bundles / SWEEP).iterdir()})
    return target


def unpacked(archive: Path, folder: Path) -> dict[str, bytes]:
    unpack_bundles(archive, folder, dict(packed_records(archive)))
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_changed_byte_anywhere_is_damage_or_changes_nothing(archive: Path, tmp_path: Path) -> None:
    # given what an archive contains
    content, before = archive.read_bytes(), unpacked(archive, tmp_path / "before")
    assert len(before) > 2
    size_bytes = len(content)
    indices = {*range(32), *range(64, size_bytes, 2000), *range(size_bytes - 32, size_bytes)}
    refused = []
    for index in indices:
        # when one of its bytes changes
        archive.write_bytes(content[:index] + bytes([content[index] ^ 0xFF]) + content[index + 1 :])
        # then a check names the damage and nothing is unpacked in silence, or the bundles are the same
        damage = [bundle.damage for bundle in verify_archive(archive, SWEEP) if bundle.damage]
        try:
            assert unpacked(archive, tmp_path / "after") == before
        except BundleError as error:
            refused.append(str(error) in damage)
        else:
            assert not damage
    assert len(refused) > 0.8 * len(indices)
    assert all(refused)


def test_a_folder_that_lost_its_session_json_keeps_its_id(tmp_path: Path) -> None:
    store = Workspace(tmp_path).store
    session_id = publish(store, tmp_path, 1)
    folder = store.find(session_id)
    assert folder
    (folder / "session.json").unlink()
    assert store.session_ids(NIGHT.sweep_id) == [session_id]


def test_no_bundle_contains_the_credentials(bucket: str, s3_environment: dict[str, str], tmp_path: Path) -> None:
    folder = (store := remote(bucket, tmp_path)).find(publish(store, tmp_path, 1))
    assert folder
    content = b"".join(path.read_bytes() for path in folder.iterdir())
    assert SessionRecord.model_validate_json((folder / "session.json").read_bytes())
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        assert s3_environment[name].encode() not in content
        assert s3_environment[name] not in repr(store.__dict__)


def test_a_process_searches_a_folder_for_leftovers_at_first_and_again_after_a_sixteenth_of_its_entries(
    tmp_path: Path,
) -> None:
    # given a folder with 47 files, for which a process has made a work folder
    for number in range(47):
        (tmp_path / f"file-{number}").touch()
    leftover = tmp_path / f"{UNFINISHED}1-left@elsewhere"

    def leave_and_work() -> bool:
        """Leave what another machine left more than a day ago; return whether it is there after a work folder."""
        leftover.touch()
        os.utime(leftover, (0, 0))
        with work_folder(tmp_path):
            return leftover.exists()

    # then it removes what was left, and the next time after two others
    assert [leave_and_work() for _ in range(4)] == [False, True, True, False]
