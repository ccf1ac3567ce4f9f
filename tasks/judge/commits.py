"""Commits between two nights, from the newest 20 that a sweep recorded in each."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict


class Commit(TypedDict):
    """`id` are the first digits of its hash."""

    id: str
    author: str
    subject: str


@dataclass(frozen=True)
class CommitRange:
    """Commits of the bad night that the good night did not have, the newest first."""

    good: str
    """The commit of the good night."""
    bad: str
    commits: tuple[Commit, ...]
    is_complete: bool
    """Whether the recorded commits reach back to that of the good night; False leaves commits out."""
    is_clean: bool = True
    """Whether neither night had uncommitted changes."""

    @property
    def candidates(self) -> frozenset[str] | None:
        """Ids of the commits that can be the cause; None if others can be, too."""
        return frozenset(each["id"] for each in self.commits) if self.is_complete and self.is_clean else None


def commits_between(good: Sequence[Commit], bad: Sequence[Commit], *, is_clean: bool = True) -> CommitRange | None:
    """Return the commits between two nights from those of each, the newest first; None if a night recorded none."""
    if not good or not bad:
        return None
    before = {each["id"] for each in good}
    commits = tuple(each for each in bad if each["id"] not in before)
    is_complete = good[0]["id"] in {each["id"] for each in bad}
    return CommitRange(good[0]["id"], bad[0]["id"], commits, is_complete, is_clean)


def only_candidate(ranges: Iterable[CommitRange | None]) -> str | None:
    """Return the only commit between the nights of all ranges; None otherwise. Unclear ranges exclude none."""
    candidates = [each.candidates for each in ranges if each and each.candidates is not None]
    common = frozenset.intersection(*candidates) if candidates else frozenset()
    return next(iter(common)) if len(common) == 1 else None


def commits_between_rows(good: Mapping[str, Any] | None, bad: Mapping[str, Any] | None) -> CommitRange | None:
    """Return the commits between two nights, rows of incident_nights.sql; None without one of them."""
    if good is None or bad is None:
        return None
    before, after = (json.loads(row["commits"] or "[]") for row in (good, bad))
    return commits_between(before, after, is_clean=not good["is_dirty"] and not bad["is_dirty"])
