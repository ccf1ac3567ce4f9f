"""The commit of the repository that a sweep file lies in: recorded where there is one, and nothing else."""

from pathlib import Path

import pytest

from tasks.bundle.record import Source
from tasks.measure.sweep_night import read_source
from tests.fixtures.stand_in_checkout import commit, git


def known_source_of(sweep_file: Path) -> Source:
    found = read_source(sweep_file)
    assert found is not None
    return found


@pytest.fixture
def sweep_file(tmp_path: Path) -> Path:
    """A sweep file in a folder of a repository with one commit."""
    git(tmp_path, "init", "--quiet")
    (tmp_path / "bench").mkdir()
    path = tmp_path / "bench" / "nightly.yaml"
    path.write_text("name: nightly\n")
    commit(tmp_path)
    return path


def test_the_commit_is_recorded_and_untracked_results_are_no_change(sweep_file: Path) -> None:
    (sweep_file.parent / "results.duckdb").touch()
    git(sweep_file.parent, "remote", "add", "origin", "https://user:secret-token@example.org/bench.git")
    head, branch = git(sweep_file.parent, "rev-parse", "HEAD"), git(sweep_file.parent, "branch", "--show-current")
    commits = [{"id": head[:7], "author": "Test", "subject": "Stand in"}]
    expected = {"commit": head, "is_dirty": False, "author": "Test", "branch": branch, "commits": commits}
    assert known_source_of(sweep_file).model_dump() == expected
    # and a checkout of a commit alone has no branch
    git(sweep_file.parent, "checkout", "--quiet", "--detach")
    assert known_source_of(sweep_file).model_dump() == {**expected, "branch": None}


def test_an_author_can_neither_act_on_a_terminal_nor_fill_a_page(sweep_file: Path) -> None:
    # given a commit whose author's name and subject turn the text after them around and are long
    name = "\u202e" + 300 * "x"
    git(sweep_file.parent, "-c", f"user.name={name}", "-c", "user.email=a@b", "commit", "--allow-empty", "-qm", name)
    source = known_source_of(sweep_file)
    assert source.commits is not None
    for text, max_chars in ((source.author, 203), (source.commits[0].author, 203), (source.commits[0].subject, 72)):
        assert (text or "").startswith("\ufffdxxx")
        assert len(text or "") == max_chars


def test_the_newest_twenty_commits_are_recorded_that_of_the_sweep_first(sweep_file: Path) -> None:
    for number in range(20):
        identity = ("-c", f"user.name=Author {number}", "-c", "user.email=a@b")
        git(sweep_file.parent, *identity, "commit", "--allow-empty", "-qm", f"Change {number}\n\nWhy")
    source = known_source_of(sweep_file)
    commits = [(each.author, each.subject) for each in source.commits or []]
    assert commits == [(f"Author {number}", f"Change {number}") for number in range(19, -1, -1)]
    assert source.commit.startswith((source.commits or [])[0].id)


def test_a_changed_file_anywhere_in_the_repository_is_an_uncommitted_change(sweep_file: Path) -> None:
    # given a tracked model beside the folder of the sweep file
    model = sweep_file.parents[1] / "model.py"
    model.write_text("channels = 8\n")
    commit(model.parent)
    model.write_text("channels = 16\n")
    assert known_source_of(sweep_file).is_dirty is True


def test_without_a_repository_a_commit_or_git_there_is_nothing(
    sweep_file: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    assert read_source(outside / "nightly.yaml") is None
    git(outside, "init", "--quiet")
    assert read_source(outside / "nightly.yaml") is None
    assert read_source(outside / "absent" / "nightly.yaml") is None
    monkeypatch.setenv("PATH", str(outside))
    assert read_source(sweep_file) is None


def test_a_program_that_the_repository_names_is_not_run(sweep_file: Path, tmp_path: Path) -> None:
    # given a repository whose configuration names a program that git would run for its status
    ran = tmp_path / "ran"
    script = tmp_path / "monitor.sh"
    script.write_text(f"#!/bin/sh\ntouch {ran}\n")
    script.chmod(0o755)
    git(sweep_file.parent, "config", "core.fsmonitor", str(script))
    git(sweep_file.parent, "status")
    assert ran.exists()
    ran.unlink()
    assert read_source(sweep_file) is not None
    assert not ran.exists()
