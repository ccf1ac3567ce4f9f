"""Write the summary of a CI job from the results of `etfarm compare`, and keep one comment on a pull request.

The summary is always written. The comment is created when a series changed or a comparison failed. Later runs replace
its text, also if nothing changed. Needs nothing but Python and this checkout. Environment: ETFARM_FAIL_ON (regression);
GITHUB_STEP_SUMMARY (a file; unset: standard output); ETFARM_COMMENTS (URL of the comments of the pull request, of
GitHub or GitLab; unset: no comment); ETFARM_MARK (first line of the comment to replace; unset: that of this step);
ETFARM_HEAD_SHA (commit of the change); ETFARM_SITE_URL; and those of api.py.
"""

import json
import os
import sys
import urllib.error
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from deployments.ci.api import keep_comment
from tasks.pages.comment import comment
from tasks.results.changes import INCOMPLETE, UNCHANGED, Comparison, Gate, SeriesChange, is_changed
from tasks.results.gate import build_gate, repository_address
from tasks.results.pair_json import read_pair
from tasks.results.text import series_title

MARK = "<!-- etfarm compare -->"
_SAME_PROGRAM = "is the same program as before; it was not measured"  # as compare.sh ends a note


def main(folder: Path) -> int:
    """Write summary and comment from the `*.json`, `*.note` and `*.failed` files of a folder; errors are printed.

    Return the exit code of the word in the first line; 0 if no file of the change differs from the baseline.
    """
    texts = {
        suffix: [file.read_text(encoding="utf-8").strip() for file in sorted(folder.glob(f"*.{suffix}"))]
        for suffix in ("json", "note", "failed")
    }
    rows = [read_pair(row) for text in texts["json"] for row in json.loads(text)]
    comparison = _comparison(rows, texts["failed"], texts["note"])
    notes = texts["note"] + [f"{row.word}: {series_title(row)}" for row in rows if not row.is_compared]
    text = comment(comparison, texts["failed"], notes)
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(summary).open("a", encoding="utf-8") as stream:
            stream.write(f"{text}\n")
    else:
        sys.stdout.write(f"{text}\n")
    code = comparison.gate.exit_code if comparison.gate else 0
    if not (url := os.environ.get("ETFARM_COMMENTS")):
        return code
    mark = os.environ.get("ETFARM_MARK") or MARK
    has_news = bool(texts["failed"]) or any(map(is_changed, comparison.changes))
    try:
        keep_comment(url, mark, f"{mark}\n{text}", has_news=has_news)
    except (urllib.error.URLError, OSError, ValueError) as error:
        sys.stderr.write(f"the comment was not written: {error}; the summary of the job has the answer\n")
    return code


def _comparison(rows: Sequence[SeriesChange], failures: Sequence[str], notes: Sequence[str]) -> Comparison:
    """Return the changes of all pairs as one comparison, with the commit of the change, and whether it passes."""
    if head := os.environ.get("ETFARM_HEAD_SHA"):
        rows = [replace(row, b=replace(row.b, commit=head)) for row in rows]
    changes, alone = ([row for row in rows if row.is_compared is is_compared] for is_compared in (True, False))
    comparison = Comparison(a="the baseline", b="this change", changes=changes, uncompared=alone, headline="")
    if rows or failures:
        fail_on = os.environ.get("ETFARM_FAIL_ON", "").split() or ["regression"]
        gate = build_gate(comparison, fail_on, failures)
    else:
        word = UNCHANGED if any(note.endswith(_SAME_PROGRAM) for note in notes) else INCOMPLETE
        gate = Gate(word, f"nothing was measured: {'; '.join(notes) or 'there was no file'}")
    site = os.environ.get("ETFARM_SITE_URL")
    link = f"{site.rstrip('/')}/{gate.page}" if site and gate.page else None
    return replace(comparison, gate=gate, link=link, repository=repository_address(os.environ))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
