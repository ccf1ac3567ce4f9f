"""The report's sections on sessions: those without a result, and where the figures come from."""

from collections.abc import Iterator
from itertools import groupby

from tasks.bundle.failure_kinds import remedy
from tasks.pages.page import Block, Fold, Heading, Log, Paragraph, Points, Section
from tasks.results.cells import emulation_tags
from tasks.results.devices import ONLY_OF_FARM_DEVICES, ConditionRow, DeviceRow, waits_in_words
from tasks.results.provenance import ONLY_OF_ALL_SWEEPS, ModelRow, RunnerRow
from tasks.results.reader import Answers
from tasks.results.sessions import MAX_REASONS, FailureRow, SessionRow, count_bundles, split_failures
from tasks.results.table import build_table, first_rows, grouped
from tasks.results.text import Code, counted, joined, sentence, with_code
from tasks.results.verdicts import failed_series, read_sweep_verdicts

_MAX_SESSIONS = 50
_MAX_LOGS = 3
_MAX_BUNDLES = 10


def failures(answers: Answers) -> Section:
    """Return failed and invalid sessions by reason and device, apart from those that a later attempt replaced."""
    without_result, superseded = split_failures(answers)
    blocks: list[Block] = []
    if reasons := answers.not_loaded:
        verb = "is" if len(reasons) == 1 else "are"
        title = f"{count_bundles(reasons)} could not be loaded and {verb} in no figure:"
        rest = len(reasons) - _MAX_BUNDLES
        more = [with_code(f"\u2026 and {rest} more; `etfarm warehouse load` lists them.")] if rest > 0 else []
        points = [*(f"{reason}." for reason in reasons[:_MAX_BUNDLES]), *more]
        blocks += [Paragraph(title, tone="bad"), Points(points)]
    if contrasts := failed_series([row for row in read_sweep_verdicts(answers) if row.contrast]):
        blocks.append(Points([joined(names, ": ", with_code(f"{reason.rstrip('.')}.")) for names, reason in contrasts]))
    if without_result:
        verb = "has" if len(without_result) == 1 else "have"
        count = counted(len(without_result), "session").capitalize()
        blocks += [Paragraph(f"{count} {verb} no result:", tone="bad"), *_failure_folds(without_result, is_open=True)]
    elif not answers.not_loaded and not answers.dropped:
        blocks.append(Paragraph("Every planned session has a result."))
    if answers.dropped:
        again = f"start the sweep again with `--night {answers.sweep.night}` to measure them"
        blocks.append(Paragraph(with_code(f"Sessions: {answers.dropped}; {again}.")))
    if superseded:
        title = f"{counted(len(superseded), 'attempt').capitalize()} failed and succeeded when repeated:"
        blocks += [Paragraph(title, tone="quiet"), *_failure_folds(superseded, is_open=False)]
    if discarded := answers.sweep.discarded:
        verb = "was" if discarded == 1 else "were"
        title = f"{counted(discarded, 'additional session').capitalize()} {verb} discarded automatically"
        why = "the first session on a device warms it up and is not a failure"
        blocks.append(Paragraph(f"{title}: {why}.", tone="quiet"))
    return Section("failures", "Failed and invalid sessions", blocks)


def _failure_folds(rows: list[FailureRow], *, is_open: bool) -> Iterator[Fold]:
    """Yield a fold for each outcome, reason and device: what to do, the reasons, the sessions and the ends of logs.

    `is_open`: the first of them is unfolded.
    """
    by_reason = groupby(rows, key=lambda row: (row.status, row.reason_code, row.device))
    for number, ((status, code, device), group_rows) in enumerate(by_reason):
        group, is_unfolded = list(group_rows), is_open and number == 0
        reasons = list(dict.fromkeys(sentence(row.reason or "no reason was recorded") for row in group))
        similar = len(reasons) - MAX_REASONS
        more = [f"\u2026 and {similar} similar {'failure' if similar == 1 else 'failures'}."] if similar > 0 else []
        blocks: list[Block] = [
            Paragraph(joined("Next: ", with_code(remedy(code)))),
            Points([*reasons[:MAX_REASONS], *more]),
            Fold(
                counted(len(group), "session").capitalize(),
                [first_rows(group, _MAX_SESSIONS, "etfarm sql lists them in failed_session")],
            ),
        ]
        # Equal logs once, by the id of the first session that has it.
        log_ids = {row.log_tail: row.session_id for row in reversed(group) if row.log_tail}
        for log, session_id in list(reversed(log_ids.items()))[:_MAX_LOGS]:
            blocks.append(Fold(("Last lines of the log of ", Code(session_id)), [Log(log)], is_open=is_unfolded))
        title = (Code(code or "unknown reason"), f" on {device}: {counted(len(group), 'session')} {status}")
        yield Fold(title, blocks, is_open=is_unfolded)


def provenance(answers: Answers) -> Section:
    """Return the devices, conditions, runners and models of the sweep, and the sessions of each device (HTML only)."""
    devices = answers.rows(DeviceRow)
    tables = (
        ("Devices", build_table(devices, without=ONLY_OF_FARM_DEVICES)),
        ("Conditions", build_table(answers.rows(ConditionRow))),
        ("Runners", build_table(answers.rows(RunnerRow), without=ONLY_OF_ALL_SWEEPS)),
        ("Exported models", build_table(answers.rows(ModelRow))),
    )
    blocks: list[Block] = [block for title, table in tables if table.rows for block in (Heading(title), table)]
    if waited := waits_in_words(answers):
        blocks += [Heading("Waits for the limits"), Points(waited)]
    explained = (
        "Every figure above is computed from the successful sessions of its cell. A session's bundle is the folder ",
        Code(f"bundles/{answers.sweep.sweep_id}/<session>"),
        " in the data folder; its session.json holds command, versions, hashes and conditions.",
    )
    blocks += [Heading("Sessions"), Paragraph(explained)]
    without_times = {row.device: row.without_times for row in devices}
    for device, group in grouped(answers.rows(SessionRow), lambda row: row.device).items():
        title = (device, *emulation_tags(without_times.get(device)), f": {counted(len(group), 'session')}")
        blocks.append(Fold(title, [build_table(group)], in_markdown=False))
    return Section("provenance", "Where the figures come from", blocks)
