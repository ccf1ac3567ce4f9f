"""Files that a farm and its labs share keep one promise, in a folder and in object storage."""

from pathlib import Path

import pytest

from tasks.bundle.record import BundleError
from tasks.store.shelf import Shelf
from tasks.store.store import BundleStore


@pytest.fixture
def shelf(store: BundleStore) -> Shelf:
    return store.shelf


def test_what_one_machine_keeps_another_gets(shelf: Shelf, tmp_path: Path) -> None:
    # given nothing
    assert not shelf.has("exports/a.tar.zst")
    assert not shelf.get("exports/a.tar.zst", tmp_path / "got")
    # when a file is kept
    (tmp_path / "made").write_bytes(b"model")
    shelf.put("exports/a.tar.zst", tmp_path / "made")
    # then it is there
    assert shelf.has("exports/a.tar.zst")
    assert shelf.get("exports/a.tar.zst", tmp_path / "got")
    assert (tmp_path / "got").read_bytes() == b"model"


def test_the_newest_content_of_a_name_stays_until_its_folder_is_removed(shelf: Shelf) -> None:
    for content in (b"first", b"second"):
        shelf.write("labs/night/order.json", content)
    shelf.write("labs/other/order.json", b"other")
    assert shelf.read("labs/night/order.json") == b"second"
    assert (shelf.size_bytes("labs/night/order.json"), shelf.size_bytes("labs/night/none.json")) == (6, 0)
    shelf.remove("labs/night")
    assert (shelf.read("labs/night/order.json"), shelf.read("labs/other/order.json")) == (None, b"other")
    shelf.remove("labs/night")


def test_a_listing_names_the_messages_of_all_folders_below(shelf: Shelf) -> None:
    for name in ("night/order", "night/berlin/probes/far", "other/order"):
        shelf.write(f"labs/{name}.json", b"{}")
    assert shelf.names("labs/night") == ["berlin/probes/far.json", "order.json"]
    assert shelf.names("labs/none") == []


def test_a_folder_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    shelf = Shelf(str(tmp_path / "file" / "shelf"))
    with pytest.raises(BundleError, match="check the folder and its disk"):
        shelf.write("labs/order.json", b"x")
