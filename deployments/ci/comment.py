"""Write the summary of a CI job from the answers of `etfarm compare`, and keep one comment of a pull request.

The summary is written always. The comment is made when a series changed, then updated in place, also when nothing is
left to say. Needs nothing but Python and this checkout. Environment: GITHUB_STEP_SUMMARY (a file); ETFARM_COMMENTS
(URL of the comments of the pull request, of GitHub or of GitLab); ETFARM_TOKEN; ETFARM_COMMENT_ITEM (URL of one comment
without its id, as ETFARM_COMMENTS if unset).
"""

import json
import os
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from devices.untrusted import excerpt

MARK = "<!-- etfarm compare -->"
_MOST_ROWS = 15
"""Of each of the two tables and of the notes: at most 60 lines have text."""
_MOST_NOTES = 8
_TIMEOUT_S = 30
_MAX_CHARS = 1000
_NO_LINK = "<span></span>"
# What acts in Markdown, and what begins a name of a user, a reference or a link: those are found in the text that
# entities stand for, too, so the element that ends every such word is put behind it.
_SPECIAL = re.compile(
    r"[\\`*\[\]<|]|(?<![a-z0-9])_+|_+(?![a-z0-9])|(?P<link>[#@~!&$]|[%^](?=[\w\"])|:(?=/)|(?<![a-z0-9])(?:www(?=\.)|gh(?:sa)?(?=-)))",
    re.IGNORECASE,
)
_CODE = re.compile("&#96;(.*?)&#96;")
_FOLDERS = re.compile(r"(?<![\w.])(?:/[\w.@+ -]+)+/")
Row = dict[str, Any]


def main(folder: Path) -> int:
    """Write the summary, and the comment if one is wanted; return an exit code."""
    rows = [row for file in sorted(folder.glob("*.json")) for row in json.loads(file.read_text(encoding="utf-8"))]
    notes = [file.read_text(encoding="utf-8").strip() for file in sorted(folder.glob("*.note"))]
    failures = [file.read_text(encoding="utf-8").strip() for file in sorted(folder.glob("*.failed"))]
    text = _text(rows, failures, notes)
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(summary).open("a", encoding="utf-8") as stream:
            stream.write(f"{text}\n")
    else:
        sys.stdout.write(f"{text}\n")
    if not (url := os.environ.get("ETFARM_COMMENTS")):
        return 0
    try:
        _comment(url, f"{MARK}\n{text}", bool(failures) or any(map(_is_changed, rows)))
    except (urllib.error.URLError, OSError, ValueError) as error:
        sys.stderr.write(f"the comment was not written: {error}; the summary of the job has the answer\n")
    return 0


def _text(rows: Sequence[Row], failures: Sequence[str], notes: Sequence[str]) -> str:
    """The answer in the first line, what changed as a table, the rest folded."""
    changed = sorted(filter(_is_changed, rows), key=_rank)
    others = [row for row in rows if not _is_changed(row)]
    nothing = f"Nothing was measured: {'; '.join(notes) or 'no file changed'}"
    parts = [f"**{_plain(_headline(rows, failures) if rows or failures else nothing)}**"]
    parts += [_points(failures)] if failures else []
    parts += [_table(changed)] if changed else []
    folded = [_table(others)] if others else []
    folded += [_points(notes)] if notes and rows else []
    folded.append("A is the baseline, B this change; both were measured in turns, with 95 % intervals.")
    content = "\n\n".join(folded)
    summary = f"{len(others)} without a change, and how it was measured" if others else "How it was measured"
    return "\n\n".join([*parts, f"<details><summary>{summary}</summary>\n\n{content}\n\n</details>"])


def _headline(rows: Sequence[Row], failures: Sequence[str]) -> str:
    slower, faster = (sorted(filter(test, rows), key=_rank) for test in (_is_slower, _is_faster))
    first = f"{len(slower)} of {len(rows)} series slower" if slower else f"No series slower of {len(rows)}"
    parts = [f"{first}: {_series(slower[0])}, {slower[0]['in_words'].partition('slower ')[2]}" if slower else first]
    if faster:
        best = f"{_series(faster[0])}, {faster[0]['in_words'].partition('faster ')[2]}"
        parts.append(f"{len(faster)} faster: {best}")
    for answer, words in (("inaccurate", "inaccurate"), ("same", "not slower"), ("unknown", "cannot tell")):
        count = sum(row["answer"] == answer for row in rows)
        parts += [f"{words}: {count}"] if count else []
    parts += [f"not compared: {len(failures)}"] if failures else []
    sessions = [sum(row[f"sessions_{side}"] for row in rows) for side in "ab"]
    return "; ".join([*parts, f"sessions: {sessions[0]} of A, {sessions[1]} of B"])


def _is_slower(row: Row) -> bool:
    return bool(row["answer"] == "different" and row["ratio"] > 1)


def _is_faster(row: Row) -> bool:
    return bool(row["answer"] == "different" and row["ratio"] < 1)


def _is_changed(row: Row) -> bool:
    """Whether a series is worth a comment."""
    return row["answer"] in ("different", "inaccurate") or row["pte_bytes_a"] != row["pte_bytes_b"]


def _rank(row: Row) -> tuple[bool, bool, float]:
    """Slower ones first, then inaccurate ones, each by the size of the change."""
    return not _is_slower(row), row["answer"] != "inaccurate", -abs((row["ratio"] or 1) - 1)


def _series(row: Row) -> str:
    threads = f"{row['threads']} thread{'' if row['threads'] == 1 else 's'}"
    precision = "" if row["precision"] == "as_is" else f" {row['precision']}"
    return f"{row['model']}{precision} on {row['device']}, {row['variant']}, {threads}"


def _table(rows: Sequence[Row]) -> str:
    """A table of some series; columns without a value are left out."""
    shown = rows[:_MOST_ROWS]
    columns = {
        "Series": [_series(row) for row in shown],
        "A": [_time(row["time_a_ms"]) for row in shown],
        "B": [_time(row["time_b_ms"]) for row in shown],
        "B against A": [row["in_words"] or row["answer"] or "no times" for row in shown],
        "Cause": [row["cause"] or "" for row in shown],
        "Size of .pte": [_change(row["pte_bytes_a"], row["pte_bytes_b"], 0) for row in shown],
        "Peak memory": [_change(row["peak_memory_bytes_a"], row["peak_memory_bytes_b"], 0.05) for row in shown],
    }
    used = {title: values for title, values in columns.items() if any(values)}
    cells = [[_plain(cell) for cell in row] for row in zip(*used.values(), strict=True)]
    lines = [f"| {' | '.join(row)} |" for row in [list(used), ["---"] * len(used), *cells]]
    more = len(rows) - len(shown)
    return "\n".join([*lines, *([f"\n{more} more in the files of the job"] if more else [])])


def _points(sentences: Sequence[str]) -> str:
    shown = [f"- {_plain(sentence)}" for sentence in sentences[:_MOST_NOTES]]
    more = len(sentences) - len(shown)
    return "\n".join([*shown, *([f"- {more} more"] if more else [])])


def _time(time_ms: float | None) -> str:
    if time_ms is None:
        return ""
    return f"{1000 * time_ms:.3g} \u00b5s" if time_ms < 1 else f"{time_ms:.4g} ms"


def _change(a: float | None, b: float | None, least: float) -> str:
    """`1.20 -> 1.40 MB (+16.7 %)`; empty if it did not change by more than `least`, a fraction."""
    if not a or b is None or abs(b / a - 1) <= least:
        return ""
    return f"{a / 1e6:.2f} -> {b / 1e6:.2f} MB ({100 * (b / a - 1):+.1f} %)"


def _plain(text: str) -> str:
    """A text of files, without folders of the machine, as text that nothing in Markdown, GitHub or GitLab acts on."""
    return _CODE.sub(r"<code>\1</code>", _SPECIAL.sub(_inert, excerpt(_FOLDERS.sub("", text), _MAX_CHARS)))


def _inert(found: re.Match[str]) -> str:
    return "".join(f"&#{ord(each)};" for each in found[0]) + (_NO_LINK if found["link"] else "")


def _comment(url: str, body: str, is_wanted: bool) -> None:
    """Update the comment with the mark; make one only if it is wanted."""
    kept = next((each for each in _pages(url) if str(each.get("body")).startswith(MARK)), None)
    if kept:
        item = os.environ.get("ETFARM_COMMENT_ITEM", url).rstrip("/")
        method = "PUT" if "/notes" in item else "PATCH"  # GitLab's notes are replaced, GitHub's comments patched
        _call(method, f"{item}/{kept['id']}", {"body": body})
    elif is_wanted:
        _call("POST", url, {"body": body})


def _pages(url: str) -> list[Row]:
    """Return all comments; a page of 100 at a time."""
    found: list[Row] = []
    for page in range(1, 31):
        part = _call("GET", f"{url}?per_page=100&page={page}", None)
        found += part
        if len(part) < 100:
            break
    return found


def _call(method: str, url: str, body: dict[str, str] | None) -> Any:
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
