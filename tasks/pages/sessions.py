"""The report's sections on sessions: those without a result, and where the figures come from."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from tasks.bundle.remedy import remedy
from tasks.pages.page import Block, Fold, Heading, Log, Paragraph, Points, Section
from tasks.results.cells import tags_of
from tasks.results.devices import ONLY_OF_FARM_DEVICES, ConditionRow, DeviceRow, waits_in_words
from tasks.results.provenance import ONLY_OF_ALL_SWEEPS, ModelRow, RunnerRow
from tasks.results.reader import Answers
from tasks.results.sessions import MOST_REASONS, FailureRow, SessionRow, bundles_in_words, by_outcome
from tasks.results.table import table_of
from tasks.results.text import Code, Text, counted, joined, sentence, with_code

_MOST_SESSIONS = 50
_MOST_LOGS = 3
_MOST_BUNDLES = 10


def failures(answers: Answers) -> Section:
    """Return failed and invalid sessions by reason and device, apart from those that a later attempt replaced."""
    without_result, superseded = by_outcome(answers)
    blocks: list[Block] = list(_not_loaded(answers.not_loaded))
    if without_result:
        verb = "has" if len(without_result) == 1 else "have"
        count = counted(len(without_result), "session").capitalize()
        blocks.append(Paragraph(f"{count} {verb} no result:", tone="bad"))
        blocks += _folds(without_result, is_open=True)
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


def _not_loaded(reasons: Sequence[str]) -> Iterator[Block]:
    if reasons:
        verb = "is" if len(reasons) == 1 else "are"
        yield Paragraph(f"{bundles_in_words(reasons)} could not be loaded and {verb} in no figure:", tone="bad")
        rest = len(reasons) - _MOST_BUNDLES
        more = [f"\u2026 and {rest} more; `etfarm warehouse load` names them."] if rest > 0 else []
        yield Points([*(f"{reason}." for reason in reasons[:_MOST_BUNDLES]), *more])


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
        Paragraph(joined("Next: ", with_code(remedy(first.reason_code)))),
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
    """Return the different reasons of a group as sentences; those after the first three are counted."""
    reasons = list(dict.fromkeys(sentence(row.reason or "no reason was recorded") for row in group))
    rest = len(reasons) - MOST_REASONS
    similar = [f"\u2026 and {rest} similar {'failure' if rest == 1 else 'failures'}."] if rest > 0 else []
    return [*reasons[:MOST_REASONS], *similar]


def _different_logs(group: list[FailureRow]) -> list[tuple[str, str]]:
    """Return id and log of the sessions with a log; of sessions with equal logs only the first."""
    by_text = {row.log_tail: row.session_id for row in reversed(group) if row.log_tail}
    return [(session_id, log) for log, session_id in reversed(by_text.items())]


def provenance(answers: Answers) -> Section:
    """Return the devices, conditions, runners and models of the sweep, and the sessions behind every figure."""
    tables = (
        ("Devices", table_of(answers.rows(DeviceRow), without=ONLY_OF_FARM_DEVICES)),
        ("Conditions", table_of(answers.rows(ConditionRow))),
        ("Runners", table_of(answers.rows(RunnerRow), without=ONLY_OF_ALL_SWEEPS)),
        ("Exported models", table_of(answers.rows(ModelRow))),
    )
    blocks: list[Block] = [block for title, table in tables if table.rows for block in (Heading(title), table)]
    if waited := waits_in_words(answers):
        blocks += [Heading("Waits for the limits"), Points(waited)]
    bundle = Code(f"bundles/{answers.sweep.sweep_id}/<session>")
    explained = (
        "Every figure above is computed from the successful sessions of its cell. A session's bundle is the folder ",
        bundle,
        " in the data folder; its session.json holds command, versions, hashes and conditions.",
    )
    blocks += [
        Heading("Sessions"),
        Paragraph(explained),
        *sessions(answers, {row.device: row.without_times for row in answers.rows(DeviceRow)}),
    ]
    return Section("provenance", "Where the figures come from", blocks)


def sessions(answers: Answers, without_times: Mapping[str, str | None]) -> Iterator[Block]:
    """Yield a fold for each device with all its sessions (HTML only); `without_times` is the tag of each device."""
    for device, group in groupby(answers.rows(SessionRow), key=lambda row: row.device):
        rows = list(group)
        title = (device, *tags_of(without_times.get(device)), f": {counted(len(rows), 'session')}")
        yield Fold(title, [table_of(rows)], in_markdown=False)
