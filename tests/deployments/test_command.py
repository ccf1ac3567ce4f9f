"""A comment `/etfarm compare`: only by members, at the commit that they saw, once, and nothing but allowed words."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from deployments.ci import command, finish
from deployments.ci.api import keep_comment
from deployments.ci.command import RefusedError, parse_command
from tests.fixtures.http_server import Quiet, serving
from tests.fixtures.paths import ROOT

CI = ROOT / "deployments" / "ci"
HEAD, FORMER = "abc1234" + "0" * 33, "def5678" + "0" * 33
DEVICES = ("pixel-8", "mac-mini")
MARK = "<!-- etfarm command 77 -->"


def run_of(sha: str, at: str, **changes: Any) -> dict[str, Any]:
    """Return a run of models-build.yml that GitHub created at a time of the day."""
    run = {"id": 5, "head_sha": sha, "event": "pull_request", "status": "completed", "conclusion": "success"}
    run |= {"head_branch": "faster", "head_repository": {"full_name": "fork/r"}}
    return run | {"created_at": f"2026-11-28T{at}:00Z"} | changes


@dataclass
class GitHub:
    """A pull request whose head was pushed at 12:00, and a comment of 13:00 by a member."""

    folder: Path
    sha: str = HEAD
    state: str = "open"
    permissions: dict[str, str] = field(default_factory=lambda: {"ada": "write", "root": "admin", "reader": "read"})
    runs: list[dict[str, Any]] = field(default_factory=lambda: [run_of(HEAD, "12:00")])
    comments: list[dict[str, Any]] = field(default_factory=list)
    jobs: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    def get(self, path: str) -> tuple[int, Any]:
        self.paths.append(path)
        if path.endswith("/permission"):
            permission = self.permissions.get(path.split("/")[-2])
            return (200, {"permission": permission}) if permission else (404, {})
        if "/actions/runs/9/attempts/1/jobs?" in path:
            return 200, {"jobs": self.jobs}
        if "/runs?" in path:
            return 200, {"workflow_runs": self.runs}
        if "/pulls/" in path:
            head = {"sha": self.sha, "ref": "faster", "repo": {"full_name": "fork/r"}}
            return 200, {"state": self.state, "head": head}
        return 200, self.comments

    @property
    def reply(self) -> str:
        """The only reply, without its mark."""
        (comment,) = self.comments
        mark, _, text = comment["body"].partition("\n")
        assert mark == MARK
        return str(text)

    @property
    def outputs(self) -> dict[str, str]:
        """The outputs of the step; empty if nothing is to be measured."""
        file = self.folder / "outputs"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return dict(line.split("=", 1) for line in lines)


@pytest.fixture
def github(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHub]:
    of_test = GitHub(tmp_path)

    class Handler(Quiet):
        def do_GET(self) -> None:
            status, content = of_test.get(self.path)
            self.answer(status, json.dumps(content))

        def do_POST(self) -> None:
            of_test.comments.append(self.content() | {"id": len(of_test.comments), "user": {"type": "Bot"}})
            self.answer(201, "{}")

        def do_PATCH(self) -> None:
            of_test.comments[int(self.path.removeprefix("/repos/o/r/issues/comments/"))] |= self.content()
            self.answer(200, "{}")

    with serving(Handler) as port:
        variables = {"API_URL": f"http://127.0.0.1:{port}", "SERVER_URL": "https://github.com", "REPOSITORY": "o/r"}
        variables |= {"RUN_ID": "9", "JOB": "finish", "OUTPUT": str(tmp_path / "outputs")}
        for name, value in variables.items():
            monkeypatch.setenv(f"GITHUB_{name}", value)
        issues = f"http://127.0.0.1:{port}/repos/o/r/issues"
        monkeypatch.setenv("ETFARM_COMMENTS", f"{issues}/3/comments")
        monkeypatch.setenv("ETFARM_COMMENT_ITEM", f"{issues}/comments")
        yield of_test


@pytest.fixture
def comment(github: GitHub, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Handle a comment of 13:00 on the pull request 3."""

    def handle(body: str, author: str = "ada") -> None:
        variables = {"COMMENT_ID": "77", "COMMENT_BODY": body, "COMMENT_AUTHOR": author, "PULL_REQUEST": "3"}
        variables |= {"COMMENT_CREATED_AT": "2026-11-28T13:00:00Z", "DEVICES": " ".join(DEVICES), "TOKEN": "secret"}
        for name, value in (variables | {"BUILD": "models-build.yml"}).items():
            monkeypatch.setenv(f"ETFARM_{name}", value)
        assert command.main() == 0

    return handle


def test_a_member_measures_the_head_that_they_saw_with_the_words_of_the_comment(github: GitHub, comment: Any) -> None:
    comment("/etfarm compare pixel-8 sessions=12\n")
    assert github.outputs == {
        "run": "5", "sha": HEAD, "pull-request": "3", "devices": "pixel-8", "sessions": "12", "mark": MARK,
    }  # fmt: skip
    expected = "No result yet for `abc1234` on pixel-8, 12 sessions of each side; state of the job: "
    assert github.reply == f"{expected}https://github.com/o/r/actions/runs/9"


@pytest.mark.parametrize("author", ["reader", "stranger", "../../pulls/3?x="])
def test_who_has_no_write_access_gets_nothing_and_no_reply(github: GitHub, comment: Any, author: str) -> None:
    comment("/etfarm compare", author)
    assert (github.outputs, github.comments) == ({}, [])
    assert re.fullmatch(r"/repos/o/r/collaborators/[^/?]+/permission", github.paths[0])


@pytest.mark.parametrize(
    ("body", "changes", "reply"),
    [
        # a push after the comment, or in the same second, also of a commit that was the head before
        ("/etfarm compare", {"runs": [run_of(HEAD, "13:00")]}, "after the comment, .*: `/etfarm compare abc1234`"),
        ("/etfarm compare", {"runs": [run_of(HEAD, "12:00"), run_of(HEAD, "13:01", id=6)]}, "pushed after the comment"),
        ("/etfarm compare def5678", {}, "states is not the head; .*: `/etfarm compare abc1234`"),
        # an older commit that is pushed again, whose new run GitHub has not created yet
        (
            "/etfarm compare",
            {"runs": [run_of(HEAD, "11:00"), run_of(FORMER, "12:00", id=6)]},
            "has not started for `abc1234`",
        ),
        # a build that is another one's, or has no files
        ("/etfarm compare", {"runs": []}, "models-build.yml has not started for `abc1234`"),
        ("/etfarm compare", {"runs": [run_of(HEAD, "12:00", event="push")]}, "has not started"),
        ("/etfarm compare", {"runs": [run_of(FORMER, "12:00")]}, "has not started"),
        ("/etfarm compare", {"runs": [run_of(HEAD, "12:00", head_repository=None)]}, "has not started"),
        ("/etfarm compare", {"runs": [run_of(HEAD, "12:00", status="in_progress")]}, "has not ended"),
        ("/etfarm compare", {"runs": [run_of(HEAD, "12:00", conclusion="failure")]}, "did not succeed"),
        ("/etfarm compare", {"state": "closed"}, "is not open"),
        ("/etfarm compare abc1234 $(id)", {}, "argument 2 is not one of this command; .*devices: pixel-8, mac-mini"),
        ("/etfarm compare sessions=900", {}, "`sessions` is from 5 to 50"),
    ],
)  # fmt: skip
def test_what_is_not_measured_is_one_sentence_with_what_to_do(
    github: GitHub, comment: Any, body: str, changes: dict[str, Any], reply: str
) -> None:
    for name, value in changes.items():
        setattr(github, name, value)
    comment(body)
    assert github.outputs == {}
    assert re.search(reply, github.reply), github.reply


def test_who_states_the_commit_saw_it_also_if_it_was_pushed_later(github: GitHub, comment: Any) -> None:
    github.runs = [run_of(HEAD, "13:01")]
    comment("/etfarm compare abc1234")
    assert github.outputs["sha"] == HEAD


def test_a_comment_is_measured_once_and_a_mark_of_a_person_is_no_reply(github: GitHub, comment: Any) -> None:
    github.comments = [{"body": f"{MARK} PASS", "user": {"type": "User"}}]
    for _ in range(2):
        comment("/etfarm compare")
    assert len(github.comments) == 2
    assert (github.folder / "outputs").read_text(encoding="utf-8").count("run=") == 1


def job_of(name: str, conclusion: str | None, *steps: tuple[str, str | None]) -> dict[str, Any]:
    """Return a job of the run with its steps and their conclusions, as GitHub lists it."""
    of_run = {"name": name, "conclusion": conclusion, "html_url": f"https://github.com/o/r/actions/runs/9/job/{name}"}
    return of_run | {"steps": [{"name": step, "conclusion": ended} for step, ended in steps]}


COMMAND, FINISH = job_of("command", "success", ("decide", "success")), job_of("finish", None, ("finish", None))
BASELINE = (("empty the folder", "success"), ("fetch the baseline", "failure"), ("compare", "skipped"))


@pytest.mark.parametrize(
    ("jobs", "sentence"),
    [
        ((COMMAND, job_of("measure", "failure", *BASELINE)), "job `measure` failed at step `fetch the baseline`"),
        # its runner was lost in a step, which never ended; or none came before somebody cancelled
        ((COMMAND, job_of("measure", "failure", ("compare", None))), "job `measure` failed at step `compare`"),
        ((COMMAND, job_of("measure", "cancelled")), "job `measure` was cancelled"),
        ((job_of("command", "failure"), job_of("measure", "skipped")), "job `command` failed"),
        # the API refused the result
        ((COMMAND, job_of("measure", "success")), "the run ended without writing one"),
    ],
)
def test_a_reply_never_waits_for_a_job_that_ended_and_a_result_still_replaces_it(
    github: GitHub, comment: Any, jobs: tuple[dict[str, Any], ...], sentence: str
) -> None:
    # given a reply that waits
    comment("/etfarm compare")
    github.jobs = [*jobs, FINISH]
    # when the run ends
    finish.main()
    # then the reply states how, with a link to the log
    assert re.fullmatch(rf"No result: {sentence}; see its log: https://github.com/o/r/actions/runs/9\S*", github.reply)
    # and a result that arrives after all replaces it, and stays
    keep_comment(os.environ["ETFARM_COMMENTS"], MARK, f"{MARK}\n**PASS: voice**", has_news=False)
    finish.main()
    assert github.reply == "**PASS: voice**"


def test_what_never_waited_for_a_result_is_not_finished(github: GitHub, comment: Any) -> None:
    github.jobs = [job_of("command", "failure")]
    comment("/etfarm compare", "stranger")
    finish.main()
    assert github.comments == []
    comment("/etfarm compare sessions=900")
    finish.main()
    assert "`sessions` is from 5 to 50" in github.reply


def test_what_is_no_command_is_not_even_looked_up(github: GitHub, comment: Any) -> None:
    comment("I ran /etfarm compare")
    comment("/etfarm comparethis")
    assert (github.paths, github.comments) == ([], [])


@given(
    st.lists(st.text(max_size=12) | st.sampled_from((*DEVICES, "abc1234", "sessions=8", "sessions=\u0665")), max_size=5)
)
def test_no_word_passes_that_is_not_of_the_command(words: list[str]) -> None:
    try:
        parsed = parse_command(words, DEVICES)
    except RefusedError:
        return
    assert set(parsed.devices) <= set(DEVICES)
    assert 5 <= parsed.sessions <= 50
    assert parsed.sha is None or re.fullmatch("[0-9a-f]{7,40}", parsed.sha)
    assert all(re.fullmatch(r"[a-z0-9=-]+", word) for word in words)


def test_the_workflow_checks_nothing_out_and_takes_no_text_of_the_comment_into_a_shell() -> None:
    text = (CI / "github" / "models-comment.yml").read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    # YAML reads the key `on` as true
    assert (workflow[True], workflow["permissions"]) == ({"issue_comment": {"types": ["created"]}}, {})
    for name, job in workflow["jobs"].items():
        assert job["permissions"] == {"actions": "read", "contents": "read", "pull-requests": "write"}
        # only the first attempt measures; the last job does not measure, and runs whatever the others did
        assert ("always()" if name == "finish" else "github.run_attempt == 1") in job["if"]
        assert not any("checkout" in str(step.get("uses")) or "${{" in step.get("run", "") for step in job["steps"])
        assert ("self-hosted" in job["runs-on"]) == (name == "measure")
    assert "secrets." not in text
    # and the measuring job sees the outputs alone, of which the action has all that it uses
    assert "github.event" not in json.dumps(workflow["jobs"]["measure"])
    assert workflow["jobs"]["finish"]["needs"] == ["command", "measure"]
    decide, ending = (
        yaml.safe_load((CI / name / "action.yml").read_text(encoding="utf-8")) for name in ("decide", "finish")
    )
    assert set(workflow["jobs"]["command"]["outputs"]) == set(decide["outputs"])
    for step in (*decide["runs"]["steps"], *ending["runs"]["steps"]):
        assert "${{" not in step["run"]
    (compare,) = (step for step in workflow["jobs"]["measure"]["steps"] if str(step.get("uses")).endswith("ci@main"))
    assert set(compare["with"]) <= set(yaml.safe_load((CI / "action.yml").read_text(encoding="utf-8"))["inputs"])
