"""Verdicts on nights with their figures and their reasons in words."""

import math
from typing import TYPE_CHECKING

from tasks.judge.verdicts.night import NightVerdict, Verdict, sessions_for_verdict
from tasks.judge.verdicts.shift import Point, Shift
from tasks.judge.verdicts.step import Step, is_same_content

if TYPE_CHECKING:
    from tasks.judge.comparison import SideComparison  # slow to import, and a page needs only the rules


def nights_text(step: Step) -> str:
    """Return how many nights a step has, and how many of them confirm one another."""
    count, since = len(step.points), step.points[0].night
    nights = f"{count} night{'' if count == 1 else 's'}"
    if not step.is_confirmed:
        return f"{nights} so far, since {since}"
    if step.alert_nights >= count:
        return f"{nights} since {since} have it and confirm one another"
    confirming = f", and {step.alert_nights} of them confirm one another" if step.alert_nights > 1 else ""
    return f"{nights} since {since} have it{confirming}"


def unconfirmed_text(current: Point, shift: Shift, *, is_open_to_nights: bool = True) -> str:
    """Return what would confirm a shift; further nights may if `is_open_to_nights` and no state explains it."""
    waits, good = is_open_to_nights and (shift.excludes_none or not shift.may_be_other_state), shift.last_good.night
    if missing := missing_file(current, shift):
        step = "wait for the next nights" if waits else "further nights alone do not confirm it: accept it or repair it"
        return f"not confirmed yet; it {not_stored_text(missing)}; {step}"
    compare = f"not confirmed yet: compare it with {good} on the same device"
    return f"{compare} or wait for the next nights" if waits else f"{compare}; further nights alone do not confirm it"


def missing_file(current: Point, shift: Shift) -> str | None:
    """Return `.pte file of NIGHT` or `runner of NIGHT` if the last good one is not stored; None for equal content."""
    good = shift.last_good.night
    return (
        None if is_same_content(current, shift) or good not in current.missing else f"{current.missing[good]} of {good}"
    )


def not_stored_text(missing: str) -> str:
    """Return why a night cannot be compared with the last good one; `missing` is that of a verdict."""
    return f"cannot be compared the same night: the {missing} is no longer stored"


def build_verdict(
    verdict: Verdict,
    current: Point,
    shift: Shift,
    since: str | None,
    why: str,
    decided_by: "SideComparison | None" = None,
) -> NightVerdict:
    """Return the verdict on a night that was compared; figures are those of `decided_by`, if there is one."""
    metric = shift.metric
    is_shifted = since is not None or shift.is_suspect
    good = (shift.last_good if is_shifted else shift.baseline[-1]).night
    if is_shifted and is_same_content(current, shift):
        why = f"neither model nor runner changed since {good}; {why}"
    has_interval = current.sessions >= sessions_for_verdict(metric)
    if decided_by is None or verdict == "no change":
        change = metric.change_text(shift.center, shift.distance, shift.bounds if has_interval else None)
        why = f"{change} against {_baseline_text(shift, good)}; {why}"
    before, ratio = metric.figure(shift.center), metric.ratio(shift.center, shift.distance)
    low, high = None, None  # with too few sessions
    if decided_by is not None and decided_by.ratio:  # free of what moves a device from night to night
        before = metric.figure(current.position - math.log(decided_by.ratio))
        ratio, low, high = decided_by.ratio, decided_by.low, decided_by.high
    elif has_interval:
        low, high = (metric.ratio(shift.center, bound) for bound in shift.bounds)
    return NightVerdict(
        night=current.night,
        verdict=verdict,
        baseline_value=before,
        ratio=ratio,
        low=low,
        high=high,
        z=shift.distance / shift.scatter if shift.scatter else None,
        noise_floor=metric.ratio_change(shift.center, shift.floor),
        baseline_nights=len(shift.baseline),
        baseline_from=shift.baseline[0].night,
        baseline_to=good,
        since=since,
        reason=why,
        missing=missing_file(current, shift) if verdict.startswith("suspected") else None,
    )


def _baseline_text(shift: Shift, good: str) -> str:
    """Return what a night was compared with; `good` is the last good night."""
    nights, metric = len(shift.baseline), shift.metric
    text = f"the median of {nights} nights" if nights > 1 else f"{good}, the only night to compare with"
    if shift.other_state == shift.distance:
        return f"{text}, at a level of earlier nights of the device"
    if shift.other_state is not None:
        other = metric.change_text(shift.center, shift.other_state)
        return f"{text} in the last of two states of the device (the other: {other})"
    return text
