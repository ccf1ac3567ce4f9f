"""Decide about a comment `/etfarm compare` on a pull request of GitHub: who may ask, for which commit, with what.

Writes the outputs `run`, `sha`, `pull-request`, `devices`, `sessions` and `mark` of a step, and a reply with the mark,
which the comparison later replaces, or finish.py if it left no result. Without these outputs nothing is measured; a
refusal is a reply, too. Strangers get none. Needs nothing but Python. Environment: that of a job of GitHub;
ETFARM_COMMENT_ID, _BODY, _AUTHOR and _CREATED_AT of the comment as it was created; ETFARM_PULL_REQUEST; ETFARM_DEVICES
(all that may be named); ETFARM_BUILD (file of the workflow that builds the models); and those of api.py.
"""

import os
import re
import sys
import urllib.error
import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from deployments.ci.api import call, find_comment

WAITING = "No result yet"
"""First words of a reply that waits for a result: true also if the job breaks and nothing replaces it."""
_COMMAND = ["/etfarm", "compare"]
_SHA = re.compile(r"[0-9a-f]{7,40}")
_SESSIONS = re.compile(r"sessions=([0-9]{1,3})", re.ASCII)
_MIN_SESSIONS, _MAX_SESSIONS, _DEFAULT_SESSIONS = 5, 50, 8
_OF_PULL_REQUESTS = {"event": "pull_request", "per_page": "100"}
_MAY_WRITE = ("write", "admin")  # the API maps the role `maintain` to write


class RefusedError(Exception):
    """A command that is not carried out; the text is the reply."""


@dataclass(frozen=True)
class CompareCommand:
    """What the author of a comment wants to compare."""

    sha: str | None
    """The first digits of the commit; None for the one that the author saw."""
    devices: tuple[str, ...]
    sessions: int


def main() -> int:
    """Answer the comment of the environment; return 0, also if nothing is to be measured."""
    repository = f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}"
    pull_request = int(os.environ["ETFARM_PULL_REQUEST"])
    mark = reply_mark(os.environ["ETFARM_COMMENT_ID"])
    words = os.environ["ETFARM_COMMENT_BODY"].split()
    replies = f"{repository}/issues/{pull_request}/comments"
    if words[:2] != _COMMAND or not _may_write(repository, os.environ["ETFARM_COMMENT_AUTHOR"]):
        sys.stdout.write("not a command of a member with write access; nothing is measured\n")
        return 0
    if find_comment(replies, mark):
        sys.stdout.write("this comment has its reply; comment again to measure again\n")
        return 0
    try:
        command = parse_command(words[2:], os.environ["ETFARM_DEVICES"].split())
        sha, run = choose_run(repository, pull_request, command.sha)
    except RefusedError as refused:
        call("POST", replies, {"body": f"{mark}\n{refused}"})
        return 0
    call("POST", replies, {"body": f"{mark}\n{waiting_reply(command, sha, run_address())}"})
    devices = " ".join(command.devices)
    outputs = {"run": run, "sha": sha, "pull-request": pull_request, "devices": devices, "sessions": command.sessions}
    with Path(os.environ["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as stream:
        stream.writelines(f"{name}={value}\n" for name, value in (outputs | {"mark": mark}).items())
    return 0


def reply_mark(identity: str) -> str:
    """Return the first line of the reply to a request, whose id is a number."""
    return f"<!-- etfarm command {int(identity)} -->"


def waiting_reply(command: CompareCommand, sha: str, job: str) -> str:
    """Return what a reply states until the job has a result; `job` is its address."""
    devices = " ".join(command.devices)
    return f"{WAITING} for `{sha[:7]}` on {devices}, {command.sessions} sessions of each side; state of the job: {job}"


def parse_command(words: Sequence[str], devices: Sequence[str]) -> CompareCommand:
    """Return what the words after `/etfarm compare` ask for; raises RefusedError for any word that is not allowed.

    `devices` are those that may be named; without a name all are meant.
    """
    sha, sessions, named = None, None, []
    for number, word in enumerate(words, 1):
        if word in devices and word not in named:
            named.append(word)
        elif _SHA.fullmatch(word) and sha is None:
            sha = word
        elif (match := _SESSIONS.fullmatch(word)) and sessions is None:
            sessions = int(match[1])
        else:
            usage = f"arguments are `[commit] [device ...] [sessions=N]`; devices: {', '.join(devices)}"
            raise RefusedError(f"Not measured: argument {number} is not one of this command; {usage}")
    if sessions is not None and not _MIN_SESSIONS <= sessions <= _MAX_SESSIONS:
        raise RefusedError(f"Not measured: `sessions` is from {_MIN_SESSIONS} to {_MAX_SESSIONS}")
    return CompareCommand(sha, tuple(named or devices), sessions or _DEFAULT_SESSIONS)


def choose_run(repository: str, pull_request: int, prefix: str | None) -> tuple[str, int]:
    """Return the head of a pull request, and the id of the run that built its models; raises RefusedError.

    The head is what the author of the comment saw if they state its `prefix`, or if it was pushed before the comment.
    A commit's own date proves nothing, so the time of a push is when GitHub created the newest run of its build. An
    older commit that was just pushed again has no new run yet, but one that is older than the newest of its branch.
    """
    pull = call("GET", f"{repository}/pulls/{pull_request}")
    sha, head = str(pull["head"]["sha"]), pull["head"]
    again = f"to measure the present one: `/etfarm compare {sha[:7]}`"
    if pull["state"] != "open":
        raise RefusedError("Not measured: this pull request is not open")
    if prefix and not sha.startswith(prefix):
        raise RefusedError(f"Not measured: the commit that the comment states is not the head; {again}")
    workflow = os.environ["ETFARM_BUILD"]
    address = f"{repository}/actions/workflows/{urllib.parse.quote(workflow)}/runs"
    runs = {
        run["id"]: run
        for which in ({"head_sha": sha}, {"branch": str(head["ref"])})
        for run in call("GET", f"{address}?{urllib.parse.urlencode(which | _OF_PULL_REQUESTS)}")["workflow_runs"]
        if _is_of(run, head)
    }
    newest = max(runs.values(), key=lambda run: _time(run["created_at"]), default=None)
    if newest is None or newest["head_sha"] != sha:
        raise RefusedError(f"Not measured: {workflow} has not started for `{sha[:7]}`; comment again when it has ended")
    if not prefix and _time(newest["created_at"]) >= _time(os.environ["ETFARM_COMMENT_CREATED_AT"]):
        raise RefusedError(f"Not measured: the head was pushed after the comment, or just before it; {again}")
    if newest["status"] != "completed":
        raise RefusedError(f"Not measured: {workflow} of `{sha[:7]}` has not ended; comment again when it has")
    if newest["conclusion"] != "success":
        raise RefusedError(f"Not measured: {workflow} of `{sha[:7]}` did not succeed; fix the build first")
    return sha, int(newest["id"])


def _is_of(run: dict[str, Any], head: dict[str, Any]) -> bool:
    """Return whether a run built a head of the branch of a pull request, and not that of another branch or fork."""
    names = (run["event"], run["head_branch"], (run["head_repository"] or {}).get("full_name"))
    return names == ("pull_request", head["ref"], (head["repo"] or {}).get("full_name"))


def _may_write(repository: str, author: str) -> bool:
    """Return whether GitHub grants an author write access; what the event states of them is not asked."""
    try:
        answer = call("GET", f"{repository}/collaborators/{urllib.parse.quote(author, safe='')}/permission")
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return False
        raise
    return answer["permission"] in _MAY_WRITE


def run_address() -> str:
    """Return the address of the page of this run of GitHub, with the logs of its jobs."""
    server, repository, run = (os.environ[f"GITHUB_{name}"] for name in ("SERVER_URL", "REPOSITORY", "RUN_ID"))
    return f"{server}/{repository}/actions/runs/{run}"


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (urllib.error.URLError, OSError) as error:
        sys.exit(f"nothing is measured: the API of the server failed: {error}; comment again")
