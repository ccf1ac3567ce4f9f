"""Whether a comparison passes what --fail-on names: one word for the comment, the files and the exit code.

Needs nothing but Python, as changes.py.
"""

import re
from collections.abc import Collection, Mapping, Sequence

from tasks.judge.figures import percent_change, signed_interval
from tasks.results.addresses import cell_pair_page
from tasks.results.changes import (
    FAIL,
    FAILED,
    INACCURATE,
    INCOMPLETE,
    PASS,
    Comparison,
    Gate,
    SeriesChange,
    answer_text,
    counted_ratio,
    worst_first,
)
from tasks.results.text import numbered, series_title

_SHA_DIGITS = 7
_DIRTY = "-dirty"
_INACCURATE_SIDES = {f"{INACCURATE}: {sides}": f"inaccurate outputs of {sides}" for sides in ("A", "B", "A and B")}
_TITLES = {
    "regression": "slower in B by more than the margin",
    INACCURATE: "with inaccurate outputs",
    "different": "different",
    "unknown": "unknown or without a counterpart",
}


def build_gate(comparison: Comparison, fail_on: Collection[str], failures: Sequence[str] = ()) -> Gate:
    """Return whether a comparison passes; `failures` are sentences about what could not be compared.

    INCOMPLETE is never a success: something failed, or no series has a result that counts.
    """
    by_reason = failing_changes(comparison, fail_on).values()
    failing = list({id(change): change for changes in by_reason for change in changes}.values())  # each counts once
    missing = [*failures, *(_missing(comparison.changes) if comparison.changes or not failures else [])]
    return choose_gate(comparison, failing, fail_reasons(comparison, fail_on), missing, is_gated=bool(fail_on))


def choose_gate(
    comparison: Comparison,
    failing: Sequence[SeriesChange],
    reasons: Sequence[str],
    missing: Sequence[str],
    *,
    is_gated: bool,
) -> Gate:
    """Return FAIL for `failing` changes or `reasons`, else INCOMPLETE for what is `missing`, else PASS.

    Without `is_gated` there is no word.
    """
    if failing:
        return _gate_of(FAIL, failing, comparison, reasons)
    if reasons:
        return Gate(FAIL, reasons[0], reasons=reasons)
    if missing and (is_gated or not comparison.changes):
        more = f"; {len(missing) - 1} more" if missing[1:] else ""
        return Gate(INCOMPLETE if is_gated else "", f"{missing[0]}{more}", reasons=missing)
    return _gate_of(PASS if is_gated else "", comparison.changes, comparison, missing)


def failing_changes(comparison: Comparison, fail_on: Collection[str]) -> dict[str, list[SeriesChange]]:
    """Return the changes that fail, by the reason of `fail_on` (regression, inaccurate, different, unknown).

    A regression includes inaccurate outputs of B, as for a night; with `inaccurate`, outputs of A count, too. A cell
    without a counterpart counts as unknown.
    """
    reasons = dict.fromkeys([*fail_on, *([INACCURATE] if "regression" in fail_on else [])])
    failing: dict[str, list[SeriesChange]] = {}
    for reason in reasons:
        if reason == "regression":
            changes = [change for change in comparison.changes if change.is_regression]
        else:
            changes = [change for change in comparison.changes if change.answer == reason]
        if reason == "unknown":
            changes += [change for change in comparison.uncompared if change.word.startswith("only in")]
        if reason == INACCURATE and INACCURATE not in fail_on:
            changes = [change for change in changes if not _is_repaired(change)]
        if changes:
            failing[reason] = changes
    return failing


def fail_reasons(comparison: Comparison, fail_on: Collection[str]) -> list[str]:
    """Return a line for each reason of `fail_on` that applies: `regression: 1 of 3 slower in B by ...`."""
    alone = sum(change.word.startswith("only in") for change in comparison.uncompared)
    return [
        f"{reason}: {len(changes)} of {len(comparison.changes) + (alone if reason == 'unknown' else 0)} "
        f"{_TITLES[reason]}"
        for reason, changes in failing_changes(comparison, fail_on).items()
    ]


def signed_answer(change: SeriesChange) -> str:
    """Return the change with its sign: `+12.3 % (+10.1 to +14.8 %)`, or `simulated: no times`, ..."""
    if change.in_words in _INACCURATE_SIDES:
        return _INACCURATE_SIDES[change.in_words]
    if (ratio := counted_ratio(change)) is None:
        return answer_text(change)
    inconclusive = ", inconclusive" if change.word == "unknown" else ""
    if change.low is None or change.high is None:
        return f"{percent_change(ratio)}{inconclusive}"
    interval = signed_interval(change.low, change.high)
    return f"{percent_change(ratio, change.low, change.high)} ({interval} %){inconclusive}"


def side_commits(changes: Sequence[SeriesChange]) -> tuple[str | None, str | None]:
    """Return the commits of A and B; None for a side whose changes have several or none, and for equal sides."""
    a, b = ({getattr(change, side).commit for change in changes} for side in "ab")
    sides = tuple(next(iter(commits)) if len(commits) == 1 else None for commits in (a, b))
    return (sides[0], sides[1]) if sides[0] != sides[1] else (None, None)


def commit_text(commit: str) -> str:
    """Return a commit for people: `c75d810`, or `c75d810 with uncommitted changes`."""
    return commit.removesuffix(_DIRTY)[:_SHA_DIGITS] + (" with uncommitted changes" if commit.endswith(_DIRTY) else "")


def commit_link(commit: str, repository: str | None) -> str | None:
    """Return the address of a commit; None without a repository, or for what is not a complete hash."""
    digits = commit.removesuffix(_DIRTY)
    return f"{repository}/commit/{digits}" if repository and re.fullmatch("[0-9a-f]{40,64}", digits) else None


def repository_address(environment: Mapping[str, str]) -> str | None:
    """Return the address of the repository of a job of GitHub or GitLab, from its variables; None elsewhere."""
    if repository := environment.get("GITHUB_REPOSITORY"):
        return f"{environment.get('GITHUB_SERVER_URL', 'https://github.com')}/{repository}"
    return environment.get("CI_PROJECT_URL") or None


def dirty_commit(commit: str, is_dirty: bool | None) -> str:
    """Return a commit as records have it, marked if files have uncommitted changes."""
    return commit + (_DIRTY if is_dirty else "")


def _gate_of(word: str, changes: Sequence[SeriesChange], comparison: Comparison, reasons: Sequence[str]) -> Gate:
    """Return the gate that names the worst of `changes`, which decide it."""
    slowest = max(changes, key=lambda change: counted_ratio(change) or 0.0)
    worst = worst_first(changes)[0] if word == FAIL else slowest
    every = [*comparison.changes, *comparison.uncompared]
    alone = sum(not change.is_compared for change in changes)
    name = f"{worst.model} {worst.precision} on {worst.device}"
    if (
        sum((each.model, each.precision, each.device) == (worst.model, worst.precision, worst.device) for each in every)
        > 1
    ):
        name = f"{series_title(worst)}:"
    count = len(comparison.changes) + alone
    others = ""
    if count > 1:
        others = (
            f"; {len(changes)} of {numbered(count, 'series', 'series')} fail"
            if word == FAIL
            else f", worst of {count} series"
        )
    return Gate(word, f"{name} {signed_answer(worst)}{others}", _page(worst), reasons)


def _missing(changes: Sequence[SeriesChange]) -> list[str]:
    """Return sentences about series that failed and, if no series has a result that counts, why."""
    failed = [f"{series_title(change)}: {answer_text(change)}" for change in changes if change.word == FAILED]
    if not changes:
        return ["nothing was measured"]
    if failed or any(counted_ratio(each) is not None or _is_repaired(each) for each in changes):
        return failed
    return [f"no result that counts: {series_title(changes[0])}: {answer_text(changes[0])}"]


def _is_repaired(change: SeriesChange) -> bool:
    """Return whether outputs of A were inaccurate and those of B are not."""
    return change.word == INACCURATE and (change.a.accuracy, change.b.accuracy) == (INACCURATE, "accurate")


def _page(change: SeriesChange) -> str:
    return cell_pair_page(change.a.cell, change.b.cell) if change.a.cell and change.b.cell else ""
