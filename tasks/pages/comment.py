"""The comment of a pull request about several comparisons, from their JSON. Needs nothing but Python."""

import re
from collections.abc import Callable, Sequence

from devices.untrusted import excerpt
from tasks.results.changes import (
    Comparison,
    SeriesChange,
    change_columns,
    headline_parts,
    is_changed,
    sessions_text,
    worst_first,
)
from tasks.results.gate import commit_link, commit_text, side_commits

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


def comment(comparison: Comparison, failures: Sequence[str], notes: Sequence[str]) -> str:
    """Return the answer about all comparisons in the first line, failures, what changed as a table, the rest folded."""
    changes = comparison.changes
    not_compared = [f"not compared: {len(failures)}"] if failures else []
    counts = "; ".join([*headline_parts(changes), *not_compared, sessions_text(changes)]) if changes else ""
    ordered = worst_first(changes)
    changed = [change for change in ordered if is_changed(change)]
    others = [change for change in ordered if not is_changed(change)]
    tables = [change_table(rows, _MAX_ROWS, "see the files of the job", _plain) for rows in (changed, others)]
    how = "A is the baseline, B this change; both were measured interleaved, with 95 % intervals."
    parts = [
        first_line(comparison, _plain),
        _plain(counts),
        bullets(failures, _MAX_NOTES, "failures", _plain),
        tables[0],
        folded_rest(len(others), [tables[1], bullets(notes, _MAX_NOTES, "notes", _plain), how]),
    ]
    return "\n\n".join(filter(None, parts))


def first_line(comparison: Comparison, to_markdown: "ToMarkdown") -> str:
    """Return whether it passes, with the worst series, the commits of both sides, and a link to the page."""
    parts = [f"**{to_markdown(comparison.gate.line if comparison.gate else comparison.headline)}**"]
    a, b = (_commit(each, comparison.repository) for each in side_commits(comparison.changes))
    if a and b:
        parts.append(f"{b} against {a}")
    elif a or b:
        parts.append(b or f"against {a}")
    if comparison.link:
        parts.append(f"[page]({comparison.link})")
    return " \u00b7 ".join(parts)


def _commit(commit: str | None, repository: str | None) -> str:
    """Return a commit as Markdown, empty for None."""
    if not commit:
        return ""
    digits, _, dirty = commit_text(commit).partition(" ")
    link = commit_link(commit, repository)
    return " ".join(filter(None, [f"[`{digits}`]({link})" if link else f"`{digits}`", dirty]))


ToMarkdown = Callable[[str], str]
"""Returns a text as Markdown, escaped."""


def change_table(changes: Sequence[SeriesChange], max_rows: int, where: str, to_markdown: ToMarkdown) -> str:
    """Return the first changes as a table, and `where` the others are; empty without a change."""
    columns = change_columns(changes[:max_rows])
    cells = [[to_markdown(cell) for cell in row] for row in zip(*columns.values(), strict=True)]
    lines = [f"| {' | '.join(row)} |" for row in [list(columns), ["---"] * len(columns), *cells]] if changes else []
    hidden = len(changes) - max_rows
    return "\n".join([*lines, *([f"\n{hidden} more: {where}"] if hidden > 0 else [])])


def bullets(sentences: Sequence[str], max_lines: int, title: str, to_markdown: ToMarkdown) -> str:
    """Return the first sentences as a list, and how many are left out; empty without a sentence."""
    lines = [f"- {to_markdown(sentence)}" for sentence in sentences[:max_lines]]
    hidden = len(sentences) - max_lines
    return "\n".join([*lines, *([f"- {hidden} more: {title}"] if hidden > 0 else [])])


def folded_rest(unchanged: int, parts: Sequence[str]) -> str:
    """Return the end of a comment behind a title: the series without a change, and how all were measured."""
    summary = f"{unchanged} without a change, and how it was measured" if unchanged else "How it was measured"
    return folded(summary, "\n\n".join(filter(None, parts)))


def folded(summary: str, content: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{content}\n\n</details>"


def _plain(text: str) -> str:
    """Return a text of files, cut and without folders of the machine, that Markdown, GitHub and GitLab leave alone."""

    def escape(special: re.Match[str]) -> str:
        return "".join(f"&#{ord(each)};" for each in special[0]) + (_NO_LINK if special["link"] else "")

    return _CODE.sub(r"<code>\1</code>", _SPECIAL.sub(escape, excerpt(_FOLDERS.sub("", text), _MAX_CHARS)))
