"""Files that a farm and its labs share keep one promise, in a folder and in object storage."""

from pathlib import Path

import pytest

from devices.errors import InputError
from tasks.bundle.record import BundleError
from tasks.store.blob_store import BlobStore
from tasks.store.bundle_store import BundleStore
from tasks.store.workspace import Workspace, resolve_workspace


@pytest.fixture
def shared_files(store: BundleStore) -> BlobStore:
    return store.shared_files


def test_what_one_machine_keeps_another_gets(shared_files: BlobStore, tmp_path: Path) -> None:
    assert not shared_files.has("exports/a.tar.zst")
    assert not shared_files.get("exports/a.tar.zst", tmp_path / "got")
    (tmp_path / "made").write_bytes(b"model")
    shared_files.put("exports/a.tar.zst", tmp_path / "made")
    assert shared_files.has("exports/a.tar.zst")
    assert shared_files.get("exports/a.tar.zst", tmp_path / "got")
    assert (tmp_path / "got").read_bytes() == b"model"


def test_messages_are_listed_replaced_and_removed_by_folder(shared_files: BlobStore) -> None:
    # given messages of two nights, one of which is written twice
    for name in ("night/order", "night/berlin/probes/far", "other/order", "night/order"):
        shared_files.write(
            f"labs/{name}.json", b"first" if shared_files.read(f"labs/{name}.json") is None else b"second"
        )
    # then the newest content is there, until its folder is removed
    assert shared_files.names("labs/night") == ["berlin/probes/far.json", "order.json"]
    assert shared_files.read("labs/night/order.json") == b"second"
    for _ in range(2):
        shared_files.remove("labs/night")
        assert shared_files.names("labs/night") == []
    assert shared_files.read("labs/other/order.json") == b"first"


@pytest.mark.fault
def test_below_a_file_there_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    files = BlobStore(str(tmp_path / "file"))
    assert files.names("labs") == []
    assert files.contents("labs") == {}


@pytest.mark.parametrize(
    ("location", "sentence"),
    [
        ("s3://nobody-made-this/x", "s3://nobody-made-this/x: there is no bucket `nobody-made-this`; create it"),
        ("s3://key:hidden@bucket/x", "the location contains credentials; remove them and set them in the environment"),
        ("nothing://bucket", "nothing://bucket: nothing is not supported"),
    ],
)
def test_a_location_that_cannot_be_used_is_answered_with_what_to_do(
    bucket: str, tmp_path: Path, location: str, sentence: str
) -> None:
    assert bucket
    with pytest.raises((InputError, BundleError)) as caught:
        Workspace(tmp_path, bundles_location=location).store.sweep_ids()
    assert sentence in str(caught.value)
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    ("argument", "variable", "expected"), [("a", "b", "a"), (None, "b", "b"), (None, "", "var"), (None, None, "var")]
)
def test_a_deployment_without_a_data_folder_uses_that_of_its_worker(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, argument: str | None, variable: str | None, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ETFARM_DATA_DIR", raising=False)
    if variable is not None:
        monkeypatch.setenv("ETFARM_DATA_DIR", variable)
    assert resolve_workspace(argument).root == tmp_path / expected


def test_a_deployment_s_bundles_come_before_those_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = str(tmp_path / "var")
    monkeypatch.delenv("ETFARM_BUNDLES", raising=False)
    assert resolve_workspace(root).store.location == str(tmp_path / "var" / "bundles")
    monkeypatch.setenv("ETFARM_BUNDLES", str(tmp_path / "shared"))
    assert resolve_workspace(root).store.location == str(tmp_path / "shared")
    assert resolve_workspace(root, str(tmp_path / "argument")).store.location == str(tmp_path / "argument")
