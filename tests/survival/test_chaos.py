"""The checks of the chaos hour find what they are there for; the hour itself is a command (tests/survival/chaos)."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tasks.store.folder import read_records
from tests.fixtures.waiting import ENOUGH_S, wait_for
from tests.fixtures.warehouse import BundleMaker
from tests.survival.chaos.checks import false_successes, left_behind, overlaps_in
from tests.survival.chaos.farm import LAUNCHER


def launch(folder: Path, script: str) -> "subprocess.Popen[bytes]":
    """Start a session of the device `host` with the launcher of the hour; its runner is a shell script."""
    launcher, place = folder / "launcher", folder / "devices/host/sessions/0000000000000001"
    launcher.write_text(LAUNCHER, encoding="utf-8")
    launcher.chmod(0o755)
    place.mkdir(parents=True, exist_ok=True)
    words = [str(launcher), "sh", "-c", script, "--etdump_path=model.etdump"]
    return subprocess.Popen(words, cwd=place, stdin=subprocess.PIPE)


@pytest.mark.parametrize(
    ("script", "cut_bytes", "found"),
    [
        ("exit 0", 0, []),
        ("kill -9 $$", 0, ["false success, its runner was killed before it ended"]),
        ("exit 0", 1, ["false success, its ETDump is incomplete"]),
    ],
)
def test_a_success_is_false_if_its_runner_was_killed_or_its_etdump_is_short(
    tmp_path: Path, script: str, cut_bytes: int, found: list[str]
) -> None:
    # given a bundle that states a success, and how its runner ended on the device
    maker = BundleMaker(tmp_path)
    bundle = maker.session([100], device__name="host", device__transport="ssh")
    launch(tmp_path, script).wait(ENOUGH_S)
    etdump = bundle / "model.etdump"
    etdump.chmod(0o644)
    os.truncate(etdump, etdump.stat().st_size - cut_bytes)
    # then that decides
    told = false_successes(tmp_path, read_records(maker.bundles, bundle.parent.name))
    assert [text.partition(": ")[2] for text in told] == found


def test_two_sessions_at_once_on_a_device_are_noted_and_two_in_turn_are_not(tmp_path: Path) -> None:
    # given two sessions in turn
    for _ in range(2):
        launch(tmp_path, "exit 0").wait(ENOUGH_S)
    assert overlaps_in(tmp_path) == []
    # when one begins while another runs
    first = launch(tmp_path, "read -r line; exit 0")
    wait_for(lambda: (tmp_path / "ran").read_text("utf-8").count("begin") == 3, "the first session")
    launch(tmp_path, "exit 0").wait(ENOUGH_S)
    first.communicate(timeout=ENOUGH_S)
    # then it is noted
    (noted,) = overlaps_in(tmp_path)
    assert noted.endswith("sessions/0000000000000001: two jobs at once")


def test_what_a_farm_leaves_is_found(tmp_path: Path) -> None:
    # given a folder with the results of a farm that ended well
    folder = tmp_path / "farm"
    (folder / "bundles/chaos-2026-11-20/0000000000000001").mkdir(parents=True)
    (folder / "devices/host/jobs").mkdir(parents=True)
    assert left_behind(folder) == []
    # when it left a job, a lease, an unfinished bundle, a scratch folder and a process
    left = ["devices/host/jobs/1-2", "machine-north/lease-1/a.b.1", "bundles/chaos-2026-11-20/.part-1-a"]
    left += ["tmp-home/etfarm-scratch-root/.part-2-b"]
    for name in left:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps({}), encoding="utf-8")
    with subprocess.Popen(["sleep", "600"], cwd=folder) as process:
        try:
            # its words can be read a moment after its start
            running = f"left running: {process.pid} sleep 600 "
            wait_for(lambda: running in left_behind(folder), "the process to show its words")
        finally:
            process.kill()
    # then each is named
    assert {f"left: {name}" for name in left} <= set(left_behind(folder))
