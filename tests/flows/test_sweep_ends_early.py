"""A sweep with `interval_percent` leaves out sessions behind a clear answer; what it tells stays right."""

import json
import subprocess

import pytest

from tests.fixtures.farm import Farm

pytestmark = [pytest.mark.torch, pytest.mark.thorough]
pytest.importorskip("executorch", reason="exports and the runner need the export extra")

# Medians that are known to within a factor of two: so clear that only the least number of sessions is measured.
SWEEP = "name: tiny\nmodels: [linear]\nvariants: [sme2_off]\nexecutions: 6\nwarmup_executions: 2\n"
EARLY = f"{SWEEP}sessions: 12\ninterval_percent: 100\n"


def records(farm: Farm) -> list[dict[str, object]]:
    return [json.loads(path.read_text()) for path in sorted(farm.var.glob("bundles/*/*/session.json"))]


def test_a_sweep_that_was_killed_ends_early_like_one_that_was_not_and_names_what_was_not_needed(farm: Farm) -> None:
    # given a sweep with at most 12 sessions a cell that is killed in its sixth
    process = farm.start_until_held(6, EARLY)
    process.kill()
    process.communicate()
    # when it is started again
    farm.go_on()
    done = farm.sweep(EARLY)
    # then it ends well after 8 sessions, and the others are neither failed nor missing
    assert done.returncode == 0, done.stderr
    assert "sessions: 4 succeeded, 5 already done, 4 not needed" in done.stdout
    assert "linear fp32 t1: 4 sessions not needed: medians are known to 100 %" in done.stderr
    assert farm.ask("SELECT count(*) AS sessions FROM session_latency") == [{"sessions": 8}]
    assert "Every planned session has a result." in farm.written_report(done)
    # and a third start measures nothing
    again = farm.sweep(EARLY)
    assert again.returncode == 0, again.stderr
    assert "sessions: 9 already done, 4 not needed" in again.stdout


def test_a_device_that_cannot_be_reached_fails_only_what_is_needed_anyway(farm: Farm) -> None:
    # given a device that is not there, and a sweep that may end after 8 of 12 sessions
    farm.inventory.write_text(
        "devices: [{name: gone, transport: ssh, address: 127.0.0.1, port: 1, user: nobody, platform: linux-x86_64}]\n"
    )
    done = farm.sweep(EARLY)
    # then what has failed is the discarded session and those 8: further ones may never be needed
    assert done.returncode == 1
    assert "sessions: 9 failed" in done.stdout + done.stderr


def test_the_commit_of_the_sweep_file_is_recorded_with_each_session(farm: Farm) -> None:
    # given a sweep file in a git repository with an edited file
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    git = ["git", *author, "-C", str(farm.folder)]
    tracked = farm.folder / "notes.txt"
    tracked.write_text("one")
    for arguments in (["init", "--quiet"], ["add", "notes.txt"], ["commit", "--quiet", "-m", "first"]):
        subprocess.run([*git, *arguments], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    tracked.write_text("two")
    # when a sweep is run
    done = farm.sweep(f"{SWEEP}sessions: 1\n")
    # then each session has the commit and that it was not all
    assert done.returncode == 0, done.stderr
    sources = [record["sweep"]["source"] for record in records(farm)]  # type: ignore[index]
    assert sources == [{"commit": commit, "is_dirty": True}] * 2
    # and so has the model's source
    assert all(record["model"]["source_sha256"] for record in records(farm))  # type: ignore[index]
