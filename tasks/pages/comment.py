"""The comment of a pull request about several comparisons, from their JSON. Needs nothing but Python."""

import re
from collections.abc import Sequence

from devices.untrusted import excerpt
from tasks.results.changes import SeriesChange, headline_parts, is_changed, sessions_text, short_columns, worst_first

_MAX_ROWS = 15
"""Of each of the two tables. With two lists of _MAX_NOTES, the comment has fewer than 60 lines of text."""
_MAX_NOTES = 8
_MAX_CHARS = 1000
_NO_LINK = "<span></span>"
# Characters that format Markdown, and those that begin a user's name, a reference or a link. The latter are recognized
# even when written as entities, so an empty element is put behind them, which ends the word.
_SPECIAL = re.compile(
    r"[\\`*\[\]<|]|(?<![a-z0-9])_+|_+(?![a-z0-9])|(?P<link>[#@~!&$]|[%^](?=[\w\"])|:(?=/)|(?<![a-z0-9])(?:www(?=\.)|gh(?:sa)?(?=-)))",
    re.IGNORECASE,
)
_CODE = re.compile("&#96;(.*?)&#96;")
_FOLDERS = re.compile(r"(?<![\w.])(?:/[\w.@+ -]+)+/")


def comment(changes: Sequence[SeriesChange], failures: Sequence[str], notes: Sequence[str]) -> str:
    """Return the answer about all comparisons in the first line, failures, what changed as a table, the rest folded."""
    answer = f"Nothing was measured: {'; '.join(notes) or 'no file changed'}"
    if changes or failures:
        not_compared = [f"not compared: {len(failures)}"] if failures else []
        answer = "; ".join([*headline_parts(changes), *not_compared, sessions_text(changes)])
    ordered = worst_first(changes)
    changed = [change for change in ordered if is_changed(change)]
    others = [change for change in ordered if not is_changed(change)]
    parts = [f"**{_plain(answer)}**"]
    parts += [_points(failures)] if failures else []
    parts += [_table(changed)] if changed else []
    folded = [_table(others)] if others else []
    folded += [_points(notes)] if notes and changes else []
    folded.append("A is the baseline, B this change; both were measured in turns, with 95 % intervals.")
    content = "\n\n".join(folded)
    summary = f"{len(others)} without a change, and how it was measured" if others else "How it was measured"
    return "\n\n".join([*parts, f"<details><summary>{summary}</summary>\n\n{content}\n\n</details>"])


def _table(changes: Sequence[SeriesChange]) -> str:
    columns = short_columns(changes[:_MAX_ROWS])
    cells = [[_plain(cell) for cell in row] for row in zip(*columns.values(), strict=True)]
    lines = [f"| {' | '.join(row)} |" for row in [list(columns), ["---"] * len(columns), *cells]]
    more = len(changes) - _MAX_ROWS
    return "\n".join([*lines, *([f"\n{more} more in the files of the job"] if more > 0 else [])])


def _points(sentences: Sequence[str]) -> str:
    lines = [f"- {_plain(sentence)}" for sentence in sentences[:_MAX_NOTES]]
    more = len(sentences) - _MAX_NOTES
    return "\n".join([*lines, *([f"- {more} more"] if more > 0 else [])])


def _plain(text: str) -> str:
    """Return a text of files, cut and without folders of the machine, that Markdown, GitHub and GitLab leave alone."""
    return _CODE.sub(r"<code>\1</code>", _SPECIAL.sub(_inert, excerpt(_FOLDERS.sub("", text), _MAX_CHARS)))


def _inert(found: re.Match[str]) -> str:
    return "".join(f"&#{ord(each)};" for each in found[0]) + (_NO_LINK if found["link"] else "")
