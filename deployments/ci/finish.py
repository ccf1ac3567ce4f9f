"""State in a reply that still waits for a result how the job ended, at which step, and where its log is.

On GitHub a last job runs this, on GitLab the `after_script` of the job. A reply with a result or a refusal stays. Needs
nothing but Python. Environment: that of a job of GitHub or GitLab; ETFARM_COMMENTS (URL of the comments); on GitHub
ETFARM_COMMENT_ID (of the command); and those of api.py.
"""

import os
import sys
import urllib.error
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from deployments.ci.api import call, find_comment, keep_comment
from deployments.ci.command import WAITING, reply_mark, run_address

_ENDINGS = {"failure": "failed", "cancelled": "was cancelled", "timed_out": "timed out"}
_ENDINGS |= {"failed": "failed", "canceled": "was cancelled"}  # the words of GitLab


def main() -> int:
    """Finish the reply of this job; return 0, also if it does not wait."""
    if os.environ.get("GITLAB_CI"):
        mark = reply_mark(os.environ["CI_PIPELINE_ID"])
        text = _no_result("the job", os.environ["CI_JOB_STATUS"], os.environ["CI_JOB_URL"])
    else:
        mark = reply_mark(os.environ["ETFARM_COMMENT_ID"])
        text = _describe_github_run()
    url = os.environ["ETFARM_COMMENTS"]
    reply = find_comment(url, mark)
    if reply and reply["body"].removeprefix(mark).lstrip().startswith(WAITING):
        keep_comment(url, mark, f"{mark}\n{text}", has_news=False)
    return 0


def _describe_github_run() -> str:
    """Return the sentence about the first job that did not succeed. Only a first attempt measures."""
    repository = f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}"
    jobs = call("GET", f"{repository}/actions/runs/{os.environ['GITHUB_RUN_ID']}/attempts/1/jobs?per_page=100")["jobs"]
    for job in jobs:
        if job["name"] == os.environ["GITHUB_JOB"] or job["conclusion"] in ("success", "skipped"):
            continue
        # the step in which a runner was lost has no conclusion
        steps = (step["name"] for step in job["steps"] if step["conclusion"] not in ("success", "skipped"))
        at = next((f" at step `{name}`" for name in steps), "")
        return _no_result(f"job `{job['name']}`", job["conclusion"], job["html_url"], at)
    return _no_result("the run", "success", run_address())


def _no_result(job: str, status: str, log: str, at: str = "") -> str:
    return f"No result: {job} {_ENDINGS.get(status, 'ended without writing one')}{at}; see its log: {log}"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (urllib.error.URLError, OSError) as error:
        sys.exit(f"the reply was not finished: the API of the server failed: {error}")
