"""A manual job of GitLab measures again: only for members, at the commit of its pipeline, with one note of its end."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from deployments.ci import comment, finish, gitlab_click
from tests.fixtures.http_server import Quiet, serving
from tests.fixtures.paths import ROOT

SHA = "abc1234" + "0" * 33
MARK = "<!-- etfarm command 55 -->"


@dataclass
class GitLab:
    """A project with a developer (3) and a reporter (2), and the notes of a merge request."""

    levels: dict[int, int] = field(default_factory=lambda: {2: 20, 3: 30})
    notes: list[dict[str, Any]] = field(default_factory=list)

    def get(self, path: str) -> tuple[int, Any]:
        if path == "/api/v4/user":
            return 200, {"username": "bot"}
        if "/members/" in path:
            level = self.levels.get(int(path.removeprefix("/api/v4/projects/7/members/all/")))
            return (200, {"access_level": level}) if level else (404, {})
        return 200, self.notes

    def write(self, number: int, content: dict[str, Any]) -> None:
        self.notes[number:] = [content | {"id": number, "author": {"username": "bot"}}, *self.notes[number + 1 :]]

    @property
    def note(self) -> str:
        """The only note, without its mark."""
        (only,) = self.notes
        mark, _, text = only["body"].partition("\n")
        assert mark == MARK
        return str(text)


@pytest.fixture
def gitlab(monkeypatch: pytest.MonkeyPatch) -> Iterator[GitLab]:
    of_test = GitLab()

    class Handler(Quiet):
        def do_GET(self) -> None:
            status, content = of_test.get(self.path)
            self.answer(status, json.dumps(content))

        def do_POST(self) -> None:
            of_test.write(len(of_test.notes), self.content())
            self.answer(201, "{}")

        def do_PUT(self) -> None:
            of_test.write(int(self.path.rpartition("/")[2]), self.content())
            self.answer(200, "{}")

    with serving(Handler) as port:
        notes = f"http://127.0.0.1:{port}/api/v4/projects/7/merge_requests/1/notes"
        variables = {"GITLAB_CI": "true", "CI_COMMIT_SHA": SHA}
        variables |= {"CI_PIPELINE_ID": "55", "CI_JOB_URL": "https://x/jobs/8"}
        variables |= {"ETFARM_COMMENTS": notes, "ETFARM_TOKEN": "secret", "ETFARM_DEVICES": "pixel-8 mac-mini"}
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        yield of_test


@pytest.fixture
def click(gitlab: GitLab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    """Run the job of a click until it ends with a status, and return what it printed for the shell.

    A job that succeeds writes a result before.
    """

    def run(arguments: str = "", status: str = "success", user: int = 3) -> str:
        monkeypatch.setenv("GITLAB_USER_ID", str(user))
        monkeypatch.setenv("ETFARM_ARGUMENTS", arguments)
        code = gitlab_click.main()
        printed = capsys.readouterr().out
        assert (code == 0) == bool(printed)
        if code == 0 and status == "success":
            (tmp_path / "voice.note").write_text("voice is the same program as before; it was not measured")
            monkeypatch.setenv("ETFARM_MARK", MARK)
            comment.main(tmp_path)
        monkeypatch.setenv("CI_JOB_STATUS", "failed" if code else status)
        assert finish.main() == 0
        return str(printed)

    return run


def test_a_click_measures_with_its_arguments_and_the_note_has_the_result_also_without_a_change(
    gitlab: GitLab, click: Any
) -> None:
    printed = click("abc1234 pixel-8 mac-mini sessions=12")
    expected = f"ETFARM_DEVICES='pixel-8 mac-mini'\nexport ETFARM_SESSIONS=12\nexport ETFARM_MARK='{MARK}'\n"
    assert printed == f"export {expected}"
    assert gitlab.note.startswith("**UNCHANGED: ")


def test_a_note_never_waits_for_a_job_that_ended_and_a_later_click_replaces_it(gitlab: GitLab, click: Any) -> None:
    for status, ending in (("failed", "failed"), ("canceled", "was cancelled")):
        click(status=status)
        assert gitlab.note == f"No result: the job {ending}; see its log: https://x/jobs/8"
        click()
        assert gitlab.note.startswith("**UNCHANGED: ")


@pytest.mark.parametrize("user", [2, 4])
def test_who_may_not_push_measures_nothing_and_gets_no_note(gitlab: GitLab, click: Any, user: int) -> None:
    assert (click(user=user), gitlab.notes) == ("", [])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("def5678", "Not measured: this pipeline belongs to `abc1234`; run the job of the other commit"),
        ("laptop", "argument 1 is not one of this command; .*; devices: pixel-8, mac-mini"),
        ("sessions=900", "`sessions` is from 5 to 50"),
    ],
)
def test_a_refusal_is_the_note_and_stays(gitlab: GitLab, click: Any, arguments: str, sentence: str) -> None:
    assert click(arguments) == ""
    assert re.search(sentence, gitlab.note)


def test_no_job_of_the_template_runs_code_of_a_fork_in_the_project() -> None:
    jobs = yaml.safe_load((ROOT / "deployments" / "ci" / "gitlab.yml").read_text(encoding="utf-8"))
    for name, job in jobs.items():
        for rule in job.get("rules", ()):
            is_own = "$CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_PROJECT_ID" in rule["if"]
            assert is_own or '$CI_PIPELINE_SOURCE == "schedule"' in rule["if"], name
    again = jobs["models-compare-again"]
    assert (again["extends"], again["rules"][0]["when"]) == ("models-compare", "manual")
    # who may is decided before anything else, and the arguments are read by no shell
    first, second, _ = again["before_script"]
    assert (first, second) == ('python3 "$ETFARM_CI/gitlab_click.py" >command.sh', ". ./command.sh")
    assert again["after_script"] == ['python3 "$ETFARM_CI/finish.py"']
