"""Write the summary of a CI job from the results of `etfarm compare`, and keep one comment on a pull request.

The summary is always written. The comment is created when a series changed or a comparison failed. Later runs replace
its text, also if nothing changed. Needs nothing but Python and this checkout. Environment: GITHUB_STEP_SUMMARY (a file;
unset: standard output); ETFARM_COMMENTS (URL of the comments of the pull request, of GitHub or GitLab; unset: no
comment); ETFARM_TOKEN; ETFARM_COMMENT_ITEM (URL of one comment without its id; unset: ETFARM_COMMENTS).
"""

import itertools
import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tasks.pages.comment import comment
from tasks.results.changes import is_changed, read_pair
from tasks.results.text import series_title

MARK = "<!-- etfarm compare -->"
_TIMEOUT_S = 30
_PAGE = 100  # the largest that GitHub and GitLab return


def main(folder: Path) -> int:
    """Write summary and comment from the `*.json`, `*.note` and `*.failed` files of a folder; errors are printed."""
    texts = {
        suffix: [file.read_text(encoding="utf-8").strip() for file in sorted(folder.glob(f"*.{suffix}"))]
        for suffix in ("json", "note", "failed")
    }
    rows = [read_pair(row) for text in texts["json"] for row in json.loads(text)]
    changes = [row for row in rows if row.is_compared]
    notes = texts["note"] + [f"{row.word}: {series_title(row)}" for row in rows if not row.is_compared]
    text = comment(changes, texts["failed"], notes)
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(summary).open("a", encoding="utf-8") as stream:
            stream.write(f"{text}\n")
    else:
        sys.stdout.write(f"{text}\n")
    if not (url := os.environ.get("ETFARM_COMMENTS")):
        return 0
    try:
        _keep_comment(url, f"{MARK}\n{text}", bool(texts["failed"]) or any(map(is_changed, changes)))
    except (urllib.error.URLError, OSError, ValueError) as error:
        sys.stderr.write(f"the comment was not written: {error}; the summary of the job has the answer\n")
    return 0


def _keep_comment(url: str, body: str, has_news: bool) -> None:
    """Replace the comment that begins with MARK; create one only if there is news."""
    existing = next((each for each in _comments(url) if str(each.get("body")).startswith(MARK)), None)
    if existing:
        item = os.environ.get("ETFARM_COMMENT_ITEM", url).rstrip("/")
        method = "PUT" if "/notes" in item else "PATCH"  # GitLab's notes are replaced, GitHub's comments patched
        _call(method, f"{item}/{existing['id']}", {"body": body})
    elif has_news:
        _call("POST", url, {"body": body})


def _comments(url: str) -> Iterator[dict[str, Any]]:
    """Yield all comments, read in pages of 100. A server that ignores `page` is read once."""
    previous: list[dict[str, Any]] = []
    for page in itertools.count(1):
        comments = _call("GET", f"{url}?per_page={_PAGE}&page={page}", None)
        if comments == previous:
            return
        yield from comments
        if len(comments) < _PAGE:
            return
        previous = comments


def _call(method: str, url: str, body: dict[str, str] | None) -> Any:
    """Return the JSON of the answer, None if it is empty. Raises ValueError for a URL that would show the token."""
    if not url.startswith(("https://", "http://127.0.0.1:")):
        raise ValueError(f"{url} is not an https URL")
    token = os.environ.get("ETFARM_TOKEN", "")
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Accept": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
        return json.loads(answer.read() or b"null")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
