"""A bundle is complete or absent, and is refused where its files differ from their hashes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.bundle import BundleError, bundles_of, publish_bundle, read_bundle
from tasks.files import publish_folder, remove_leftovers, scratch_folder
from tests.fixtures.plans import NIGHT, a_spec, ended, planned


@pytest.fixture
def published(tmp_path: Path) -> Path:
    collected = tmp_path / "collected"
    collected.mkdir()
    (collected / "stdout.txt").write_text("hello", encoding="utf-8")
    record = publish_bundle(tmp_path / "bundles", ended(planned(a_spec())[1], "succeeded"), collected)
    return tmp_path / "bundles" / NIGHT.sweep_id / record.session_id


def test_a_bundle_is_read_as_it_was_written(published: Path) -> None:
    record = read_bundle(published)
    assert published.name == record.session_id
    assert published.parent.name == NIGHT.sweep_id
    assert record.files["stdout.txt"].bytes == 5


def test_a_changed_or_missing_file_is_refused_in_one_sentence(published: Path) -> None:
    (published / "stdout.txt").write_text("hallo", encoding="utf-8")
    with pytest.raises(BundleError, match=r"stdout\.txt: the file does not match its hash"):
        read_bundle(published)
    (published / "stdout.txt").unlink()
    with pytest.raises(BundleError, match=r"stdout\.txt: the file is missing"):
        read_bundle(published)


def test_an_edited_record_is_refused_with_its_key(published: Path) -> None:
    path = published / "session.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"status": "fine"}), encoding="utf-8")
    with pytest.raises(BundleError, match=r"session\.json: does not match its schema \(`status`: Input should be"):
        read_bundle(published)
    shutil.rmtree(published)
    published.mkdir()
    with pytest.raises(BundleError, match=r"not a bundle: session\.json is missing"):
        read_bundle(published)


def test_a_session_has_one_bundle_however_often_it_is_published(published: Path, tmp_path: Path) -> None:
    # given a bundle that is there
    before = (published / "session.json").read_bytes()
    # when a second process comes to publish the same session
    publish_bundle(tmp_path / "bundles", ended(planned(a_spec())[1], "failed"), tmp_path / "collected")
    # then the first one stays, and nothing else is left
    assert (published / "session.json").read_bytes() == before
    assert [record.status for record in bundles_of(tmp_path / "bundles", NIGHT.sweep_id)] == ["succeeded"]
    assert [path.name for path in published.parent.iterdir()] == [published.name]


def test_a_folder_whose_making_fails_leaves_nothing(tmp_path: Path) -> None:
    def break_off() -> None:
        with publish_folder(tmp_path / "final") as aside:
            (aside / "half").write_text("half", encoding="utf-8")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        break_off()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_writes_is_not(tmp_path: Path) -> None:
    # given the leftovers of a process that is gone, and the work of one that lives
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    (tmp_path / f".part-{child}-abc").mkdir()
    (tmp_path / f".part-{os.getpid()}-abc").mkdir()
    # when somebody comes to write there
    remove_leftovers(tmp_path)
    # then only the living one's is left
    assert [path.name for path in tmp_path.iterdir()] == [f".part-{os.getpid()}-abc"]


def test_a_scratch_folder_goes_with_its_block_and_with_its_process() -> None:
    # given the scratch folder of a process that was killed
    program = (
        "import os, sys\nfrom tasks.files import scratch_folder\n"
        "with scratch_folder() as folder:\n    print(folder, flush=True)\n    os.kill(os.getpid(), 9)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    left = Path(killed.stdout.strip())
    assert left.is_dir()
    # when the next one is used
    with scratch_folder() as folder:
        assert list(folder.iterdir()) == []
    # then both are gone
    assert not folder.exists()
    assert not left.exists()


def test_a_full_disk_is_reported_in_one_sentence_and_leaves_nothing(tmp_path: Path, full_disk: Path) -> None:
    # given a disk without room for the bundle
    collected = tmp_path / "collected"
    collected.mkdir()
    (collected / "model.etdump").write_bytes(b"x" * (4 << 20))
    # when it is published there
    with pytest.raises(BundleError, match=r"cannot write the bundle \(No space left on device\); no partial bundle"):
        publish_bundle(full_disk, ended(planned(a_spec())[1], "succeeded"), collected)
    # then nothing half-done is there
    assert list(full_disk.glob("*/*")) == []
