"""Calls to the API of GitHub or GitLab from a CI job, with nothing but Python.

Environment: ETFARM_TOKEN; ETFARM_COMMENT_ITEM (URL of one comment without its id; unset: the URL of all comments).
"""

import itertools
import json
import os
import urllib.request
from collections.abc import Iterator
from typing import Any

_TIMEOUT_S = 30
_PAGE = 100  # the largest that GitHub and GitLab return


def keep_comment(url: str, mark: str, body: str, *, has_news: bool) -> None:
    """Replace the comment that begins with `mark`; create one only if there is news."""
    if existing := find_comment(url, mark):
        item = os.environ.get("ETFARM_COMMENT_ITEM", url).rstrip("/")
        method = "PUT" if "/notes" in item else "PATCH"  # GitLab's notes are replaced, GitHub's comments patched
        call(method, f"{item}/{existing['id']}", {"body": body})
    elif has_news:
        call("POST", url, {"body": body})


def find_comment(url: str, mark: str) -> dict[str, Any] | None:
    """Return the comment of a job that begins with `mark`, never one of somebody else, who could edit it later.

    On GitHub a job is no person, and on GitLab it is the user of the token.
    """
    own = call("GET", f"{url.partition('/projects/')[0]}/user")["username"] if url.endswith("/notes") else None
    for comment in comments(url):
        is_person = (comment.get("user") or {}).get("type") == "User"
        is_own = comment["author"]["username"] == own if own else not is_person
        if str(comment.get("body")).startswith(mark) and is_own:
            return comment
    return None


def comments(url: str) -> Iterator[dict[str, Any]]:
    """Yield all comments, read in pages of 100. A server that ignores `page` is read once."""
    previous: list[dict[str, Any]] = []
    for page in itertools.count(1):
        answer = call("GET", f"{url}?per_page={_PAGE}&page={page}")
        if answer == previous:
            return
        yield from answer
        if len(answer) < _PAGE:
            return
        previous = answer


def call(method: str, url: str, body: dict[str, str] | None = None) -> Any:
    """Return the JSON of the answer, None if it is empty. Raises ValueError for a URL that would show the token."""
    if not url.startswith(("https://", "http://127.0.0.1:")):
        raise ValueError(f"{url} is not an https URL")
    token = os.environ.get("ETFARM_TOKEN", "")
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Accept": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
        return json.loads(answer.read() or b"null")
