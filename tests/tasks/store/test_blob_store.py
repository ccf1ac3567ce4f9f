"""Files that a farm and its labs share keep one promise, in a folder and in object storage."""

import subprocess
import sys
from pathlib import Path

import pytest

from devices.errors import InputError
from tasks.bundle.record import BundleError
from tasks.store.blob_store import BlobStore
from tasks.store.bundle_store import BundleStore
from tasks.store.workspace import Workspace


@pytest.fixture
def shared_files(store: BundleStore) -> BlobStore:
    return store.shared_files


def test_what_one_machine_keeps_another_gets(shared_files: BlobStore, tmp_path: Path) -> None:
    # given nothing
    assert not shared_files.has("exports/a.tar.zst")
    assert not shared_files.get("exports/a.tar.zst", tmp_path / "got")
    # when a file is kept
    (tmp_path / "made").write_bytes(b"model")
    shared_files.put("exports/a.tar.zst", tmp_path / "made")
    # then it is there
    assert shared_files.has("exports/a.tar.zst")
    assert shared_files.get("exports/a.tar.zst", tmp_path / "got")
    assert (tmp_path / "got").read_bytes() == b"model"


def test_the_newest_content_of_a_name_stays_until_its_folder_is_removed(shared_files: BlobStore) -> None:
    for content in (b"first", b"second"):
        shared_files.write("labs/night/order.json", content)
    shared_files.write("labs/other/order.json", b"other")
    assert shared_files.read("labs/night/order.json") == b"second"
    shared_files.remove("labs/night")
    assert (shared_files.read("labs/night/order.json"), shared_files.read("labs/other/order.json")) == (None, b"other")
    shared_files.remove("labs/night")


def test_a_listing_names_the_messages_of_all_folders_below(shared_files: BlobStore) -> None:
    for name in ("night/order", "night/berlin/probes/far", "other/order"):
        shared_files.write(f"labs/{name}.json", b"{}")
    assert shared_files.names("labs/night") == ["berlin/probes/far.json", "order.json"]
    assert shared_files.names("labs/none") == []


def test_a_folder_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    shared_files = BlobStore(str(tmp_path / "file" / "store"))
    with pytest.raises(BundleError, match="check the folder and its disk"):
        shared_files.write("labs/order.json", b"x")


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


def test_a_local_store_imports_nothing_of_object_storage() -> None:
    # given a fresh Python that opens the store of a folder
    program = (
        "import sys\nfrom pathlib import Path\n"
        "from tasks.store.workspace import Workspace\n"
        "Workspace(Path('nowhere')).store.sweep_ids()\n"
        "sys.exit(', '.join({'s3fs', 'botocore', 'aiohttp'} & set(sys.modules)) or 0)\n"
    )
    fresh = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    # then none of its packages was imported
    assert fresh.returncode == 0, fresh.stderr
