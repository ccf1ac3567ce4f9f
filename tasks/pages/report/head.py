"""The head of the report: title, the numbers of sessions, and how the sweep ended in a sentence or two."""

from collections import Counter

from tasks.pages.report.page import Figure
from tasks.pages.report.sections.verdicts import regressions
from tasks.results.devices import DeviceRow
from tasks.results.failures import failures_sentence
from tasks.results.reader import Answers
from tasks.results.sweeps import SweepRow
from tasks.results.text import Text, counted, duration, listed
from tasks.results.verdicts import Verdict, is_compared

_DISCARDED = "discarded automatically"


def subtitle(sweep: SweepRow) -> str:
    """Night and times of the sweep."""
    night = f"night of {sweep.night:%Y-%m-%d}" if sweep.night else "night not known"
    if not sweep.started_at or not sweep.ended_at:
        return f"{sweep.name}, {night}"
    took = duration((sweep.ended_at - sweep.started_at).total_seconds())
    return f"{sweep.name}, {night}, started {sweep.started_at:%Y-%m-%d %H:%M} UTC, took {took}"


def figures(answers: Answers) -> list[Figure]:
    """How many series got slower, if there are earlier nights, and how the sessions ended, in numbers."""
    sweep, slower = answers.sweep, len(regressions(answers))
    compared = Figure(f"{slower:,}", "regression" if slower == 1 else "regressions", "bad" if slower else "quiet")
    return [
        *([compared] if is_compared(answers.rows(Verdict)) else []),
        Figure(f"{sweep.succeeded:,}", "sessions succeeded"),
        Figure(f"{sweep.failed:,}", "failed", "bad" if sweep.failed else "quiet"),
        Figure(f"{sweep.invalid:,}", "invalid", "bad" if sweep.invalid else "quiet"),
        Figure(f"{sweep.discarded:,}", _DISCARDED, "quiet"),
        Figure(f"{sweep.devices:,}", "device" if sweep.devices == 1 else "devices"),
        Figure(f"{sweep.models:,}", "model" if sweep.models == 1 else "models"),
    ]


def summary(answers: Answers) -> list[Text]:
    """How many sessions ended how, and which have no result; the sections add their sentences."""
    return [_counts(answers), *failures_sentence(answers)]


def _counts(answers: Answers) -> str:
    sweep = answers.sweep
    sessions = sweep.succeeded + sweep.failed + sweep.invalid + sweep.discarded
    kinds = Counter({row.device: row.without_times for row in answers.rows(DeviceRow) if row.without_times}.values())
    of_them = ", ".join(f"{counted(kinds[kind], 'of them', 'of them')} {kind}" for kind in sorted(kinds))
    ended = [f"{sweep.succeeded:,} succeeded"]
    ended += [f"{sweep.failed:,} failed"] if sweep.failed else []
    ended += [f"{sweep.invalid:,} {_was(sweep.invalid)} invalid"] if sweep.invalid else []
    ended += [f"{sweep.discarded:,} {_was(sweep.discarded)} {_DISCARDED}"] if sweep.discarded else []
    return (
        f"{counted(sessions, 'session').capitalize()} of {counted(sweep.models, 'model')} ran on "
        f"{counted(sweep.devices, 'device')}{f' ({of_them})' if of_them else ''}: {listed(ended)}."
    )


def _was(count: int) -> str:
    return "was" if count == 1 else "were"
