"""A bundle is complete or absent, and is refused where its files differ from their hashes."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from tasks.bundle.record import BundleError, DeviceRecord
from tasks.store.files import leftovers_below, publish_folder, remove_leftovers, scratch_folder
from tasks.store.folder import find_results, publish_bundle, read_bundle, read_record
from tasks.store.local_store import LocalStore
from tests.fixtures.plans import NIGHT, a_spec, ended, planned
from tests.fixtures.warehouse import edit

DAY = timedelta(days=1)
FILE = {"sha256": "0" * 64, "bytes": 1}
NO_TIME = "is not a time with its UTC offset, such as 2026-01-31T07:00:00+00:00"
BACKWARDS = "`ended_at` is 2026-01-02T03:04:04+00:00, before `started_at`, 2026-01-02T03:04:05+00:00"
BEFORE_EXECUTORCH = "`sweep.night`: {} is before 2023-10-01, the first release of ExecuTorch"
FUTURE = "`sweep.night`: {} is more than a day in the future"
EARLY = "`sweep.night` is {}, after `started_at`, 2026-01-02T03:04:05+00:00"


def sweep_of(night: str) -> dict[str, str]:
    return {"sweep_id": f"smoke-{night}", "name": "smoke", "night": night}


@pytest.fixture
def published(tmp_path: Path) -> Path:
    collected = tmp_path / "collected"
    collected.mkdir()
    (collected / "stdout.txt").write_text("hello", encoding="utf-8")
    record = publish_bundle(tmp_path / "bundles", ended(planned(a_spec())[1], "succeeded"), collected)
    return tmp_path / "bundles" / NIGHT.sweep_id / record.session_id


@pytest.mark.fault
def test_a_changed_or_missing_file_is_refused_in_one_sentence(published: Path) -> None:
    (published / "stdout.txt").write_text("hallo", encoding="utf-8")
    with pytest.raises(BundleError, match=r"stdout\.txt: the file does not match its hash"):
        read_bundle(published)
    (published / "stdout.txt").unlink()
    with pytest.raises(BundleError, match=r"stdout\.txt: the file is missing"):
        read_bundle(published)


def test_an_edited_record_is_refused_with_its_key(published: Path) -> None:
    edit(published, status="fine")
    with pytest.raises(BundleError, match=r"session\.json: does not match its schema \(`status`: Input should be"):
        read_bundle(published)
    shutil.rmtree(published)
    published.mkdir()
    with pytest.raises(BundleError, match=r"damaged bundle: session\.json is missing"):
        read_bundle(published)


@pytest.mark.parametrize(
    ("key", "value", "cause"),
    [
        ("warmup_executions", -1, "`warmup_executions`: Input should be greater than or equal to 0"),
        ("executions", 0, "`executions`: Input should be greater than or equal to 1"),
        ("threads", 0, "`threads`: Input should be greater than or equal to 1"),
        ("attempt", 0, "`attempt`: Input should be greater than or equal to 1"),
        ("repetition", -2, "`repetition`: Input should be greater than or equal to -1"),
        ("model.pte_bytes", -5, "`model.pte_bytes`: Input should be greater than or equal to 0"),
        ("model.delegated", [{"operator": "a", "count": -2}], "`model.delegated.count` is -2, which is negative"),
        (
            "files",
            {"a": {"sha256": "b" * 64, "bytes": -1}},
            "`files.a.bytes`: Input should be greater than or equal to 0",
        ),
        ("stats", {"load_ns": -7}, "`stats.load_ns`: Input should be greater than or equal to 0"),
        ("stats", {"execution_ns": [5, -7]}, "`stats.execution_ns.1`: Input should be greater than or equal to 0"),
        ("stats", {"newer_ns": -7}, "`stats`: `newer_ns` is -7, which is negative"),
        ("device.facts", {"cores": -8}, "`device.facts.cores` is -8, which is negative"),
        ("exit_code", 1, "`status` is succeeded, but `exit_code` is 1"),
        ("signal", 11, "`status` is succeeded, but `signal` is 11"),
        ("reason_code", "thermal", "`status` is succeeded, but `reason_code` is 'thermal'"),
        ("reason", "too\nhot", "`status` is succeeded, but `reason` is 'too\\nhot'"),
        ("session_id", "../0123456789abcdef", "`session_id`: String should match pattern '^[0-9a-f]{16}$'"),
        ("ended_at", "2026-01-02T03:04:04+00:00", BACKWARDS),
        ("started_at", "2026-01-02T03:04:05", f"`started_at`: '2026-01-02T03:04:05' {NO_TIME}"),
        ("started_at", "yesterday", f"`started_at`: 'yesterday' {NO_TIME}"),
        ("ended_at", "0001-01-01T00:00:00+14:00", f"`ended_at`: '0001-01-01T00:00:00+14:00' {NO_TIME}"),
        ("sweep", sweep_of("2026-02-30"), "`sweep.night`: '2026-02-30' is not an existing date, such as 2026-01-31"),
        ("sweep", sweep_of("20260102"), "`sweep.night`: '20260102' is not an existing date, such as 2026-01-31"),
        ("sweep", sweep_of("2026-01-04"), EARLY.format("2026-01-04")),
        ("sweep", sweep_of("9999-01-01"), FUTURE.format("9999-01-01")),
        ("sweep", sweep_of("0001-01-01"), BEFORE_EXECUTORCH.format("0001-01-01")),
        ("sweep", sweep_of("2023-09-30"), BEFORE_EXECUTORCH.format("2023-09-30")),
        ("sweep.sweep_id", "/etc", "`sweep.sweep_id`: '/etc' is not the name of a file or folder"),
        ("sweep.sweep_id", "..", "`sweep.sweep_id`: '..' is not the name of a file or folder"),
    ],
)
def test_a_record_that_cannot_be_true_is_refused_with_its_key(
    published: Path, key: str, value: object, cause: str
) -> None:
    # given a session that succeeded, and one of its values changed
    edit(published, **{key.replace(".", "__"): value})
    # when it is read, then one sentence names the key
    with pytest.raises(BundleError) as refused:
        read_bundle(published)
    sentence = f"does not match its schema ({cause}); restore the bundle from a backup"
    assert str(refused.value) == f"{published / 'session.json'}: {sentence}"


def test_a_session_may_be_of_tomorrow_and_of_no_later_night(published: Path) -> None:
    now = datetime.now(UTC)
    edit(published, started_at=now.isoformat(), ended_at=now.isoformat(), sweep=sweep_of(f"{now.date() + DAY}"))
    assert read_record(published).sweep.night == f"{now.date() + DAY}"
    night = now.date() + 3 * DAY  # a day more: midnight may pass meanwhile
    edit(published, sweep=sweep_of(f"{night}"))
    with pytest.raises(BundleError, match=FUTURE.format(night)):
        read_record(published)


@pytest.mark.parametrize("name", ["../x", "/x", "a/b", "a\\b", ".x", "..", "", "a\nb", "a\0", "é" * 101])
def test_a_bundle_has_no_file_that_would_lie_outside_or_be_hidden(published: Path, name: str) -> None:
    edit(published, files={name: FILE})
    with pytest.raises(BundleError, match="is not the name of a file or folder"):
        read_record(published)


@pytest.mark.parametrize("name", ["x", "model.etdump", "x..y", "größe 1", "é" * 100])
def test_a_bundle_may_have_a_file_of_any_plain_name(published: Path, name: str) -> None:
    edit(published, files={name: FILE})
    assert list(read_record(published).files) == [name]


@pytest.mark.parametrize("night", ["2023-10-01", "2026-01-02", "2026-01-03"])
def test_a_session_may_be_of_a_night_long_ago_or_of_the_next_date_of_another_time_zone(
    published: Path, night: str
) -> None:
    edit(published, sweep=sweep_of(night))
    assert read_record(published).sweep.night == night


def test_the_least_values_and_the_end_of_a_failure_are_read(published: Path) -> None:
    edit(published, warmup_executions=0, executions=1, threads=1, repetition=-1, exit_code=0, wall_s=0.0)
    edit(published, stats={"load_ns": 0, "priority": -20})
    assert read_bundle(published).warmup_executions == 0
    edit(published, status="failed", exit_code=1, reason_code="runner_failed", reason="the runner failed")
    assert read_bundle(published).exit_code == 1


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


def test_a_folder_whose_making_fails_leaves_nothing(tmp_path: Path) -> None:
    def break_off() -> None:
        with publish_folder(tmp_path / "final") as aside:
            (aside / "half").write_text("half", encoding="utf-8")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        break_off()
    assert list(tmp_path.iterdir()) == []


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
    # when somebody comes to write there
    remove_leftovers(tmp_path)
    # then only the living one's is left, and what another machine wrote to within a day
    kept = strange | {f".part-{os.getpid()}-abc", f".part-{child}-young@elsewhere", f".part-{child}-slow@elsewhere"}
    assert {path.name for path in tmp_path.iterdir()} == kept


def test_leftovers_are_found_in_the_var_folder_and_in_a_folder_of_bundles_that_is_elsewhere(tmp_path: Path) -> None:
    # given the leftovers of a killed process at every depth at which the farm writes
    name, store = f".part-{2**31 - 1}-x", LocalStore(tmp_path / "bundles")
    data_dir = [tmp_path / "var" / place / name for place in (".", "exports", "bundles/smoke-2026-01-02")]
    of_store = [tmp_path / "bundles" / place / name for place in (".", "smoke-2026-01-02", ".shared/exports")]
    for path in (*data_dir, *of_store):
        path.mkdir(parents=True)
    # then all of them are found, and nothing else
    found = [path for path in leftovers_below(tmp_path / "var", store.folders) if tmp_path in path.parents]
    assert sorted(found) == sorted([*data_dir, *of_store])


def test_the_names_of_unfinished_folders_tell_the_process_and_the_machine(tmp_path: Path) -> None:
    with publish_folder(tmp_path / "final") as aside:
        assert re.fullmatch(rf"\.part-{os.getpid()}-[0-9a-f]{{8}}@{re.escape(socket.gethostname())}", aside.name)


def test_a_scratch_folder_goes_with_its_block_and_with_its_process() -> None:
    # given the scratch folder of a process that was killed
    program = (
        "import os, sys\nfrom tasks.store.files import scratch_folder\n"
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


@pytest.mark.fault
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


def test_a_record_cannot_state_times_of_a_simulated_device() -> None:
    with pytest.raises(ValidationError, match="a simulated device must be stated as `emulated`"):
        DeviceRecord(name="simulated-001", transport="simulated", emulated=False)
