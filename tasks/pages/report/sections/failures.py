"""The report's section on sessions without a result: why they ended, what their logs show, what to do."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from tasks.bundle.next_step import next_step
from tasks.pages.report.page import Block, Fold, Log, Paragraph, Points, Section
from tasks.results.cells import AttemptRow
from tasks.results.reader import Answers
from tasks.results.table import table_of
from tasks.results.text import Code, Text, counted, joined, sentence, separated, with_code

_MOST_SESSIONS = 50
_MOST_LOGS = 3
_MOST_BUNDLES = 10
_MOST_REASONS = 3
_MOST_REASONS_NAMED = 3


@dataclass(frozen=True)
class FailureRow(AttemptRow):
    """A session that failed or is invalid; `superseded` if a later attempt succeeded."""

    query = "failures"
    device: str
    status: str
    reason_code: str | None
    reason: str | None
    log_tail: str | None
    superseded: bool


def failures(answers: Answers) -> Section:
    """Failed and invalid sessions by reason and device, apart from those that a later attempt replaced."""
    standing, superseded = _by_outcome(answers)
    blocks: list[Block] = list(_not_loaded(answers.not_loaded))
    if standing:
        verb = "has" if len(standing) == 1 else "have"
        count = counted(len(standing), "session").capitalize()
        blocks.append(Paragraph(f"{count} {verb} no result:", tone="bad"))
        blocks += _folds(standing, is_open=True)
    elif not answers.not_loaded and not answers.dropped:
        blocks.append(Paragraph("Every planned session has a result."))
    if answers.dropped:
        again = f"start the sweep again with `--night {answers.sweep.night}` to measure them"
        blocks.append(Paragraph(with_code(f"Sessions: {answers.dropped}; {again}.")))
    if superseded:
        count = counted(len(superseded), "attempt").capitalize()
        blocks.append(Paragraph(f"{count} failed and succeeded when repeated:", tone="quiet"))
        blocks += _folds(superseded, is_open=False)
    if answers.sweep.discarded:
        blocks.append(Paragraph(_discarded(answers.sweep.discarded), tone="quiet"))
    return Section("failures", "Failed and invalid sessions", blocks)


def failures_sentence(answers: Answers) -> Iterator[Text]:
    """Which sessions have no result, in one sentence for the summary; nothing if all have one."""
    standing, _ = _by_outcome(answers)
    kinds = sorted({(row.reason_code or "unknown reason", row.device) for row in standing})
    if kinds:
        named: list[Text] = [(f"{device} (", Code(reason_code), ")") for reason_code, device in kinds]
        count = counted(len(standing), "session")
        yield joined(f"No result for {count}: ", separated(named, most=_MOST_REASONS_NAMED), ".")
    if answers.not_loaded:
        yield f"{_bundles(answers.not_loaded)} could not be loaded."


def failures_in_words(answers: Answers) -> list[Text]:
    """Which sessions have no result, and the reasons that were recorded; empty if all have one."""
    standing, _ = _by_outcome(answers)
    # A reason often starts with the name of the device, which keeps its spelling.
    reasons = dict.fromkeys(row.reason.rstrip(".") for row in standing if row.reason)
    named: list[Text] = list(reasons)
    recorded = [joined("Reason: ", separated(named, "; ", most=_MOST_REASONS), ".")] if named else []
    return [*failures_sentence(answers), *recorded]


def _by_outcome(answers: Answers) -> tuple[list[FailureRow], list[FailureRow]]:
    """Sessions without a result, and attempts that a later one replaced."""
    rows = answers.rows(FailureRow)
    return [row for row in rows if not row.superseded], [row for row in rows if row.superseded]


def _not_loaded(reasons: Sequence[str]) -> Iterator[Block]:
    if reasons:
        verb = "is" if len(reasons) == 1 else "are"
        yield Paragraph(f"{_bundles(reasons)} could not be loaded and {verb} in no figure:", tone="bad")
        rest = len(reasons) - _MOST_BUNDLES
        more = [f"\u2026 and {rest} more; `etfarm warehouse load` names them."] if rest > 0 else []
        yield Points([*(f"{reason}." for reason in reasons[:_MOST_BUNDLES]), *more])


def _bundles(reasons: Sequence[str]) -> str:
    return counted(len(reasons), "bundle").capitalize()


def _discarded(count: int) -> str:
    if count == 1:
        return (
            "One additional session, the first on its device, was discarded automatically: it warms up the device and "
            "is not a failure."
        )
    return (
        f"{counted(count, 'additional session').capitalize()}, the first on each device, were discarded automatically: "
        "they warm up the device and are not failures."
    )


def _folds(rows: list[FailureRow], *, is_open: bool) -> Iterator[Fold]:
    for _, group in groupby(rows, key=lambda row: (row.status, row.reason_code, row.device)):
        yield _fold(list(group), is_open=is_open)


def _fold(group: list[FailureRow], *, is_open: bool) -> Fold:
    first = group[0]
    title: Text = (
        Code(first.reason_code or "unknown reason"),
        f" on {first.device}: {counted(len(group), 'session')} {first.status}",
    )
    blocks: list[Block] = [
        Paragraph(joined("Next: ", with_code(next_step(first.reason_code)))),
        Points(_reasons(group)),
        table_of(group[:_MOST_SESSIONS]),
    ]
    if len(group) > _MOST_SESSIONS:
        rest = f"{len(group) - _MOST_SESSIONS} more are in the view failed_session."
        blocks.append(Paragraph(rest, tone="quiet"))
    for session_id, log in _different_logs(group)[:_MOST_LOGS]:
        blocks.append(Fold(("Last lines of the log of ", Code(session_id)), [Log(log)], is_open=is_open))
    return Fold(title, blocks, is_open=is_open)


def _reasons(group: list[FailureRow]) -> list[Text]:
    """The different reasons of a group as sentences; the first few, the rest counted."""
    reasons = list(dict.fromkeys(sentence(row.reason or "no reason was recorded") for row in group))
    rest = len(reasons) - _MOST_REASONS
    similar = [f"\u2026 and {rest} similar {'failure' if rest == 1 else 'failures'}."] if rest > 0 else []
    return [*reasons[:_MOST_REASONS], *similar]


def _different_logs(group: list[FailureRow]) -> list[tuple[str, str]]:
    """The sessions with a log and their logs, each text once."""
    by_text = {row.log_tail: row.session_id for row in reversed(group) if row.log_tail}
    return [(session_id, log) for log, session_id in reversed(by_text.items())]
