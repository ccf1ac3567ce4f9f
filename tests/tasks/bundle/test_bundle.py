"""A bundle is complete or absent, and is refused where its files differ from their hashes."""

import os
import re
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tasks.bundle.record import BundleError
from tasks.store.files import publish_folder, remove_leftovers, scratch_folder
from tasks.store.folder import find_results, publish_bundle, read_bundle
from tests.fixtures.command import run_python
from tests.fixtures.plans import NIGHT, a_spec, ended, planned
from tests.fixtures.warehouse import edit


@pytest.fixture
def published(tmp_path: Path) -> Path:
    collected = tmp_path / "collected"
    collected.mkdir()
    (collected / "stdout.txt").write_text("hello", encoding="utf-8")
    record = publish_bundle(tmp_path / "bundles", ended(planned(a_spec())[1], "succeeded"), collected)
    return tmp_path / "bundles" / NIGHT.sweep_id / record.session_id


@pytest.mark.parametrize("mode", [0o755, 0o2755])
def test_files_of_a_bundle_belong_to_the_group_of_a_folder_that_a_team_shares(tmp_path: Path, mode: int) -> None:
    collected, bundles = tmp_path / "collected", tmp_path / "bundles"
    for folder in (collected, bundles):
        folder.mkdir()
    bundles.chmod(mode)
    if os.getuid() == 0:
        os.chown(bundles, -1, 1)
        bundles.chmod(mode)
    (collected / "stdout.txt").write_text("hello", encoding="utf-8")
    record = publish_bundle(bundles, ended(planned(a_spec())[1], "succeeded"), collected)
    groups = {path.stat().st_gid for path in (bundles / NIGHT.sweep_id / record.session_id).iterdir()}
    assert groups == {bundles.stat().st_gid if mode & stat.S_ISGID else os.getgid()}


@pytest.mark.fault
def test_a_damaged_bundle_is_refused_in_one_sentence(published: Path) -> None:
    def refusal() -> str:
        with pytest.raises(BundleError) as refused:
            read_bundle(published)
        return str(refused.value)

    (published / "stdout.txt").write_text("hallo", encoding="utf-8")
    assert "stdout.txt: the file does not match its hash" in refusal()
    (published / "stdout.txt").unlink()
    assert "stdout.txt: the file is missing" in refusal()
    edit(published, status="fine")
    assert "session.json: does not match its schema (`status`: Input should be" in refusal()
    (published / "session.json").unlink()
    assert "damaged bundle: session.json is missing" in refusal()


def test_a_folder_that_lost_its_session_is_found_as_a_bundle_and_loose_etdumps_as_themselves(tmp_path: Path) -> None:
    # given damaged bundles, each of which shows two of three signs, and folders that show one
    damaged = ["0123456789abcdef", "copy of a session", "fedcba9876543210"]
    for name in (*damaged, "aaaaaaaaaaaaaaaa", "runs", "logs"):
        (tmp_path / name).mkdir()
    for name in ("0123456789abcdef/model.etdump", "copy of a session/model.etdump", "copy of a session/stderr.txt"):
        (tmp_path / name).touch()
    for name in ("fedcba9876543210/stdout.txt", "aaaaaaaaaaaaaaaa/x.bin", "runs/a.etdump", "runs/a.txt"):
        (tmp_path / name).touch()
    (tmp_path / "logs" / "stdout.txt").touch()
    # when results are looked for, then the damaged bundles are folders, and an ETDump among other files is itself
    assert list(find_results(tmp_path)) == [*(tmp_path / name for name in damaged), tmp_path / "runs" / "a.etdump"]
    # and an ETDump that is named is not judged by its folder
    named = tmp_path / "0123456789abcdef" / "model.etdump"
    assert list(find_results(named)) == [named]


def test_a_folder_has_the_name_of_its_process_and_machine_until_it_is_complete(tmp_path: Path) -> None:
    def break_off() -> None:
        with publish_folder(tmp_path / "final") as aside:
            assert re.fullmatch(rf"\.part-{os.getpid()}-[0-9a-f]{{8}}@{re.escape(socket.gethostname())}", aside.name)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        break_off()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.fault
def test_a_folder_is_published_while_the_interpreter_ends(tmp_path: Path) -> None:
    program = (
        "import sys, threading\nfrom pathlib import Path\nfrom tasks.store.files import publish_folder\n"
        "def publish():\n    threading.main_thread().join()\n    with publish_folder(Path(sys.argv[1])) as aside:\n"
        "        (aside / 'file').write_text('content')\n"
        "threading.Thread(target=publish).start()\n"
    )
    ended = run_python("-c", program, tmp_path / "final")
    assert ended.stderr == ""
    assert (tmp_path / "final" / "file").read_text() == "content"


@pytest.mark.fault
def test_what_a_killed_process_left_is_removed_and_what_a_living_one_writes_is_not(tmp_path: Path) -> None:
    # given the leftovers of a process that is gone, and the work of one that lives
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    (tmp_path / f".part-{child}-abc").mkdir()
    (tmp_path / f".part-{os.getpid()}-abc").mkdir()
    # and those of another machine that shares the folder: a young one, one of which a part is young, and an old one
    for name, age_h in (("young", 23), ("slow", 25), ("old", 25)):
        foreign = tmp_path / f".part-{child}-{name}@elsewhere"
        foreign.mkdir()
        if name == "slow":
            (foreign / "large").touch()
        os.utime(foreign, (time.time() - age_h * 3600,) * 2)
    # and names that no process of the farm gave
    strange = {".part-\u00b2-x", ".part-0-x", f".part-{'9' * 200}-x", ".part-", ".part--1-x"}
    for name in (*strange, ".part-9999999999-x"):
        (tmp_path / name).mkdir()
    remove_leftovers(tmp_path)
    # then only the living one's is left, and what another machine wrote to within a day
    kept = strange | {f".part-{os.getpid()}-abc", f".part-{child}-young@elsewhere", f".part-{child}-slow@elsewhere"}
    assert {path.name for path in tmp_path.iterdir()} == kept


def test_a_scratch_folder_goes_with_its_block_and_with_its_process() -> None:
    # given the scratch folder of a process that was killed
    program = (
        "import os, sys\nfrom tasks.store.files import scratch_folder\n"
        "with scratch_folder() as folder:\n    print(folder, flush=True)\n    os.kill(os.getpid(), 9)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    left = Path(killed.stdout.strip())
    assert left.is_dir()
    with scratch_folder() as folder:
        assert list(folder.iterdir()) == []
    assert not folder.exists()
    assert not left.exists()


@pytest.mark.fault
def test_a_full_disk_is_reported_in_one_sentence_and_leaves_nothing(tmp_path: Path, full_disk: Path) -> None:
    collected = tmp_path / "collected"
    collected.mkdir()
    (collected / "model.etdump").write_bytes(b"x" * (4 << 20))
    with pytest.raises(BundleError, match=r"cannot write the bundle \(No space left on device\); no partial bundle"):
        publish_bundle(full_disk, ended(planned(a_spec())[1], "succeeded"), collected)
    assert list(full_disk.glob("*/*")) == []
