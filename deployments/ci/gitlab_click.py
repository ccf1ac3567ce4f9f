"""Decide about a click on a manual job of GitLab that measures a merge request again: who may, and on which devices.

A pipeline belongs to one commit, so what is measured is what the member saw. Prints variables of compare.sh and
comment.py as lines for a shell, and writes a note that waits for the result; a refusal is a note, too. Who has no write
access gets none. Needs nothing but Python. Environment: that of a job of GitLab; ETFARM_ARGUMENTS (`[commit]
[device ...] [sessions=N]`, as in a comment on GitHub); ETFARM_DEVICES (all that may be named); ETFARM_COMMENTS (URL of
the notes of the merge request); and those of api.py.
"""

import os
import shlex
import sys
import urllib.error
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from deployments.ci.api import call, keep_comment
from deployments.ci.command import RefusedError, parse_command, reply_mark, waiting_reply

_DEVELOPER = 30  # the lowest access level of GitLab that may push


def main() -> int:
    """Print the variables and return 0; print none and return 1 if nothing is to be measured."""
    url, sha, mark = (
        os.environ["ETFARM_COMMENTS"],
        os.environ["CI_COMMIT_SHA"],
        reply_mark(os.environ["CI_PIPELINE_ID"]),
    )
    if not _may_write(url.partition("/merge_requests/")[0]):
        sys.stderr.write("not a member with the role Developer or higher; nothing is measured\n")
        return 1
    try:
        command = parse_command(os.environ.get("ETFARM_ARGUMENTS", "").split(), os.environ["ETFARM_DEVICES"].split())
        if not sha.startswith(command.sha or ""):
            raise RefusedError(f"Not measured: this pipeline belongs to `{sha[:7]}`; run the job of the other commit")
    except RefusedError as refused:
        sys.stderr.write(f"{refused}\n")
        keep_comment(url, mark, f"{mark}\n{refused}", has_news=True)
        return 1
    reply = waiting_reply(command, sha, os.environ["CI_JOB_URL"])
    keep_comment(url, mark, f"{mark}\n{reply}", has_news=True)
    for name, value in (("DEVICES", " ".join(command.devices)), ("SESSIONS", command.sessions), ("MARK", mark)):
        sys.stdout.write(f"export ETFARM_{name}={shlex.quote(str(value))}\n")
    return 0


def _may_write(project: str) -> bool:
    """Return whether GitLab grants the user who started this job write access."""
    try:
        member = call("GET", f"{project}/members/all/{int(os.environ['GITLAB_USER_ID'])}")
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return False
        raise
    return int(member["access_level"]) >= _DEVELOPER


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (urllib.error.URLError, OSError) as error:
        sys.exit(f"nothing is measured: the API of the server failed: {error}; run the job again")
