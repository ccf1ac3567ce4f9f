"""What strangers put into a bucket: it is refused within limits, and everything else is loaded."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tasks.bundle.names import MAX_RECORD_BYTES
from tasks.bundle.record import BundleError, FileRecord, record_text
from tasks.store import blob_store
from tasks.store.bundle_store import BundleStore, FetchedBundles
from tasks.store.workspace import Workspace
from tests.fixtures.plans import NIGHT, a_spec, ended, planned
from tests.fixtures.s3 import s3_client

SESSIONS = planned(a_spec())
PREFIX = f"farm/bundles/{NIGHT.sweep_id}"


@pytest.fixture
def store(bucket: str, tmp_path: Path) -> BundleStore:
    """A store with one sound bundle."""
    store = Workspace(tmp_path / "var", bundles_location=f"s3://{bucket}/farm/bundles").store
    (collected := tmp_path / "collected").mkdir()
    store.publish(ended(SESSIONS[1], "succeeded"), collected)
    return store


def put(bucket: str, path: str, content: bytes) -> None:
    s3_client().put_object(Bucket=bucket, Key=path, Body=content)


def put_bundle(bucket: str, files: dict[str, tuple[bytes, int]], sweep_id: str | None = None, **changes: Any) -> str:
    """Put a bundle with files of this content and of this size in its session.json; return its folder."""
    record: dict[str, Any] = json.loads(record_text(ended(SESSIONS[2], "succeeded"))) | changes
    record["sweep"] |= {"sweep_id": sweep_id} if sweep_id else {}
    folder = f"{PREFIX}/{SESSIONS[2].session_id}"
    for name, (content, size_bytes) in files.items():
        file = FileRecord(sha256=hashlib.sha256(content).hexdigest(), bytes=size_bytes)
        record["files"][name] = file.model_dump()
        put(bucket, f"{folder}/{file.sha256[:16]}-{name}", content)
    put(bucket, f"{folder}/session.json", json.dumps(record).encode())
    return folder


def refusal(fetched: FetchedBundles) -> str:
    [(_, sentence)] = fetched.refused
    assert len(fetched.folders) == 1, "the sound bundle is fetched"
    return sentence


def fetch_all(store: BundleStore) -> FetchedBundles:
    return store.local_folders(None, lambda _hashes: set())


@pytest.mark.fault
def test_a_record_beyond_the_limit_is_named_and_not_read(bucket: str, store: BundleStore) -> None:
    # given a session.json of a byte more than the limit
    path = f"{PREFIX}/{'a' * 16}/session.json"
    put(bucket, path, b" " * (MAX_RECORD_BYTES + 1))
    cause = f"{bucket}/{path}: has {MAX_RECORD_BYTES + 1} bytes; the limit is {MAX_RECORD_BYTES}"
    # then the load, the check and the sweep's records name it
    assert refusal(fetch_all(store)) == cause
    assert [each.damage for each in store.verify(NIGHT.sweep_id) if each.damage] == [cause]
    assert len(list(store.records(NIGHT.sweep_id, skip_damaged=True))) == 1
    with pytest.raises(BundleError, match="the limit is"):
        list(store.records(NIGHT.sweep_id))


@pytest.mark.fault
@pytest.mark.parametrize("size_bytes", [5, 7])
def test_a_file_of_another_size_than_recorded_is_damage(
    bucket: str, store: BundleStore, tmp_path: Path, size_bytes: int
) -> None:
    # given a file of 6 bytes whose record has 5 or 7
    folder = put_bundle(bucket, {"stdout.txt": (b"123456", size_bytes)})
    # then the load refuses its bundle, and a check names it
    sentence = refusal(fetch_all(store))
    assert sentence.startswith(f"{bucket}/{folder}")
    assert ("has 6 bytes or more; its session.json states 5" in sentence) == (size_bytes == 5)
    # and nothing of it is left in the cache
    assert not list((tmp_path / "var").rglob("stdout.txt"))


@pytest.mark.fault
@pytest.mark.parametrize("key", ["session_id", "sweep.sweep_id", "files"])
def test_a_bundle_in_s3_writes_nowhere_but_into_its_own_folder(
    bucket: str, store: BundleStore, tmp_path: Path, key: str
) -> None:
    # given a stranger's bundle whose file is to land in a folder of the user
    (home := tmp_path / "home").mkdir()
    target = str(home / "authorized_keys")
    name, moved = (target, {}) if key == "files" else ("authorized_keys", {key.rpartition(".")[2]: target})
    put_bundle(bucket, {name: (b"a stranger's key", 16)}, **moved)
    # then it is refused in a sentence that names the key, and nothing was written there
    assert f"`{key}" in refusal(fetch_all(store))
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("where", ["bucket", "folder"])
def test_a_shared_file_beyond_the_limit_is_not_read(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    # given a store with a file of exactly the limit, one of a byte more, and an empty one
    monkeypatch.setattr(blob_store, "_MAX_BYTES", 10)
    shared = blob_store.BlobStore(f"s3://{bucket}/x" if where == "bucket" else str(tmp_path / "x"))
    for name, size_bytes in {"most": 10, "more": 11, "none": 0}.items():
        shared.write(f"labs/{name}.json", b"x" * size_bytes)
    # then the second one is named and the others are read
    assert shared.read("labs/most.json") == b"x" * 10
    with pytest.raises(blob_store.TooLargeError, match=r"labs/more\.json: has more than 10 bytes"):
        shared.read("labs/more.json")
    more, most, none = shared.contents("labs").values()
    assert (most, none) == (b"x" * 10, b"")
    assert "labs/more.json: has 11 bytes; the limit is 10" in str(more)
