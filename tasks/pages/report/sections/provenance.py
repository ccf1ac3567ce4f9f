"""The report's section on where the figures come from: devices, conditions, runners, exported models, sessions."""

from tasks.pages.report.page import Block, Heading, Paragraph, Points, Section
from tasks.pages.report.sections.provenance_sessions import sessions
from tasks.results.devices import ConditionRow, DeviceRow, waits_in_words
from tasks.results.provenance import ModelRow, RunnerRow
from tasks.results.reader import Answers
from tasks.results.table import table_of
from tasks.results.text import Code


def provenance(answers: Answers) -> Section:
    """The devices, conditions, runners and models of the sweep, and the sessions behind every figure."""
    tables = (
        ("Devices", table_of(answers.rows(DeviceRow))),
        ("Conditions", table_of(answers.rows(ConditionRow))),
        ("Runners", table_of(answers.rows(RunnerRow))),
        ("Exported models", table_of(answers.rows(ModelRow))),
    )
    blocks: list[Block] = [block for title, table in tables if table.rows for block in (Heading(title), table)]
    if waited := waits_in_words(answers):
        blocks += [Heading("Waits for the limits"), Points(waited)]
    bundle = Code(f"bundles/{answers.sweep.sweep_id}/<session>")
    explained = (
        "Every figure above is computed from the successful sessions of its cell. A session's bundle is the folder ",
        bundle,
        " in the var folder; its session.json holds command, versions, hashes and conditions.",
    )
    blocks += [
        Heading("Sessions"),
        Paragraph(explained),
        *sessions(answers, {row.device: row.without_times for row in answers.rows(DeviceRow)}),
    ]
    return Section("provenance", "Where the figures come from", blocks)
