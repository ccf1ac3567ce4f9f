"""Texts made from data of views: what changed, and what distinguishes cells."""

from collections.abc import Mapping, Sequence
from typing import Any

from tasks.judge.commits import Commit
from tasks.results.text import numbered

Difference = Mapping[str, str | None]
"""{fact, before, after} of `changed`, or {fact, value} of `differs`; None where a value is unknown."""

_MAX_COMMITS = 3
_HASHED = (".pte file", "runner")  # hashes are not shown: they tell a reader only that the files differ
_WITH_COMMIT = ("commit author", "uncommitted changes")
_UNITS = {"temperature": " C"}
_LIKELY_REASONS = {
    "portable": "portable: XNNPACK did not get it",
    "switched off": "SME2 was switched off",
    "names": "names of QP8 cannot tell, a session of mode profile can",
    "kernels": "its kernels are not those of SME",
    "data types or shape": "its data types or its shape: other {operator} of this model ran on SME",
    "never": "no {operator} of this model with these data types ran on SME",
}
"""By the values of likely_reason in the view sme2_operator_coverage."""
NO_SPEEDUPS = {
    "inaccurate on": "inaccurate outputs with SME2",
    "inaccurate off": "inaccurate outputs without SME2",
    "inaccurate both": "inaccurate outputs with and without SME2",
}
"""By the values of reason in the view sme2_speedup, of pairs with times."""
_PURPOSES = {"same_night": "suspected night", "comparison": "two files"}
"""By the values of purpose in the view comparison; the others are words."""


def describe_changes(changes: Sequence[Difference] | None) -> str | None:
    """Return what changed as text, such as `.pte file, runner (ExecuTorch 1.5.1 -> 1.6.0), OS 14 -> 15`.

    The macro `_changes` lists the model source after its .pte file, and ExecuTorch after its runner. Versions, which
    come last, have any name.
    """
    if not changes:
        return None
    parts: list[str] = []
    previous = None
    for change in changes:
        fact = str(change["fact"])
        before, after = (_or_unknown(fact, change[name]) for name in ("before", "after"))
        text = f"{fact} {before} -> {after}{_UNITS.get(fact, '')}"
        if fact in _HASHED:
            parts.append(fact)
        elif (previous, fact) == (".pte file", "model source"):
            parts[-1] += " (same model source)" if before == after else ", model source"
        elif (previous, fact) == ("runner", "ExecuTorch"):
            parts[-1] += f" ({text})"
        elif fact == "commit":
            of_commit = {each["fact"]: each for each in changes}
            sides = dict.fromkeys(_commit_of_side(of_commit, side) for side in ("before", "after"))
            parts.append(f"commit {' -> '.join(sides)}")
        elif fact in _WITH_COMMIT:
            continue
        else:
            parts.append(text)
        previous = fact
    return ", ".join(parts)


def describe_commit(commit: Mapping[str, Any] | None) -> str | None:
    """Return {id, author, is_dirty} of the macro `_commit` as text: `3f0c1a2 by Ada with uncommitted changes`."""
    return _commit_text(commit["id"][:7], commit["author"], commit["is_dirty"]) if commit else None


def _commit_text(commit_id: str | None, author: str | None, is_dirty: bool | None) -> str:
    by = f" by {author}" if author else ""
    return f"{commit_id}{by}{' with uncommitted changes' if is_dirty else ''}"


def _commit_of_side(facts: Mapping[str | None, Difference], side: str) -> str:
    author, is_dirty = (facts.get(fact, {}).get(side) for fact in _WITH_COMMIT)
    return _commit_text(facts["commit"][side], author, is_dirty == "true")


def describe_flags(flags: Mapping[str, Any] | None) -> str | None:
    """Return unusual runs of a session as text, such as `slow start (3 runs), drift +4 %, two modes, 1 outlier`."""
    if not flags:
        return None
    parts = [
        f"slow start ({flags['settled_after_runs']} runs)" if flags["settled_after_runs"] else "",
        f"drift {100 * (flags['drift'] - 1):+.0f} %" if flags["drift"] is not None else "",
        "two modes" if flags["is_bimodal"] else "",
        numbered(flags["outlier_runs"], "outlier") if flags["outlier_runs"] else "",
    ]
    return ", ".join(filter(None, parts)) or None


def git_log(good: str, bad: str) -> str:
    """Return the command that lists the commits between two nights, given the commit of each."""
    return f"git log {good}..{bad}"


def describe_commits(commits: Sequence[Commit] | None, command: str, *, is_complete: bool) -> str | None:
    """Return `commit 3f0c1a2 by Ada: Quantize the head (COMMAND)`, COMMAND to list all; None without commits."""
    if not commits:
        return None
    named = [f"{each['id']} by {each['author']}: {each['subject']}" for each in commits[:_MAX_COMMITS]]
    left = len(commits) - len(named)
    more = f", and {left} more" if left else ""
    more += "" if is_complete else ", and older ones"
    return f"{'commit' if len(commits) == 1 else 'commits'} {', '.join(named)}{more} (`{command}`)"


def describe_differences(differences: Sequence[Difference] | None) -> str | None:
    """Return what distinguishes a cell as text, such as `pte 1a2b3c4d, executions 3`."""
    if not differences:
        return None
    return ", ".join(f"{each['fact']} {_or_unknown(str(each['fact']), each['value'])}" for each in differences)


def describe_likely_reason(data: Mapping[str, str] | None) -> str | None:
    """Return why an operator did not run on SME: `reason` is a value of likely_reason, `operator` a name."""
    return _LIKELY_REASONS[data["reason"]].format(operator=data["operator"]) if data else None


def describe_purpose(purpose: str) -> str:
    """Return why two contents were measured interleaved; `purpose` is that of the view comparison."""
    return _PURPOSES.get(purpose, purpose)


def _or_unknown(fact: str, value: str | None) -> str:
    """Return a value of a fact; a device without a launcher has none, every other missing value is unknown."""
    return ("none" if fact == "launcher" else "unknown") if value is None else value


def describe_taken(taken: Sequence[Mapping[str, Any]] | None) -> str | None:
    """Return {backend, operators, macs} of delegates as text: `OpenvinoBackend: 90 operators, 0.30 GMAC`."""
    if not taken:
        return None
    return "; ".join(
        f"{each['backend']}: {numbered(each['operators'], 'operator')}"
        + (f", {each['macs'] / 1e9:.3g} GMAC" if each["macs"] is not None else "")
        for each in taken
    )
