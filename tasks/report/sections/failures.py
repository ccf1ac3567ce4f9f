"""The report's section on sessions that ended without a result: why, what the runner said, what to do."""

from itertools import groupby

from tasks.report.cells import variant_cell
from tasks.report.data import Answers, Row
from tasks.report.page import Block, Cell, Code, Column, Fold, Log, Paragraph, Points, Section, Table, Text
from tasks.report.text import NOTHING, code, counted, number, sentence

_MOST_SESSIONS = 50
_MOST_LOGS = 3
_AGAIN = "Start the sweep again: what failed is measured anew, what is done is kept"

# What a person does about each reason_code of tasks/check.py, tasks/measure.py and flows/device_session.py.
_NEXT_STEPS = {
    "runner_crashed": "Run the command of its session.json by hand on the device; log and signal say where it fell",
    "runner_failed": "The last line of its log says why; run the command of its session.json by hand on the device",
    "deadline_exceeded": "Raise deadline_s in the sweep file, or ask for fewer executions, if the model is merely slow",
    "no_etdump": "Register a runner that was built with the event tracer; the farm's own one is",
    "bad_etdump": "Look for a full disk or a device that restarted, then start the sweep again",
    "incomplete_etdump": "Look for a runner that ended early in its log, then start the sweep again",
    "no_stats": "Look for a full disk on the device, then start the sweep again",
    "wrong_output": "Compare the export's outputs with the model's forward; the .pte returns something else",
    "threads": "Ask for no more threads than the device has cores and its cpu_affinity allows",
    "variant": "Compare sme2_told in stats.json with the operators' names; leave the variants of this device apart",
    "thermal": "Give the device longer rests (cooldown_s, settle_s) or cooling, or raise max_temperature_c on purpose",
    "battery": "Charge the device, or lower min_battery_percent on purpose",
    "load": "End what else runs on the device, or raise max_load_1m on purpose",
    "export_failed": "Export it alone with `etfarm export MODEL` and mend what it names",
    "no_runner": "Build one with `etfarm runner build`, or register one with `etfarm runner register`",
    "device_lost": "Look at the device's cable, network and power with `etfarm devices`, then start the sweep again",
    "device_refused": "Give the farm the access that the sentence names, then start the sweep again",
    "device_busy": "Wait for whoever holds the device, then start the sweep again",
    "no_space_on_device": "Make room on the device, then start the sweep again",
}


def failures(answers: Answers) -> Section:
    """Failed and invalid sessions by reason and device, those made good by a later attempt apart."""
    rows = answers["failures"]
    standing = [row for row in rows if not row["superseded"]]
    made_good = [row for row in rows if row["superseded"]]
    blocks: list[Block] = []
    if standing:
        blocks.append(Paragraph(f"{counted(len(standing), 'session').capitalize()} without a result:", tone="bad"))
        blocks += [_fold(list(group), is_open=True) for _, group in groupby(standing, key=_reason_of)]
    else:
        blocks.append(Paragraph("Every session has a result."))
    if made_good:
        said = f"{counted(len(made_good), 'attempt').capitalize()} that a later one made good:"
        blocks.append(Paragraph(said, tone="quiet"))
        blocks += [_fold(list(group), is_open=False) for _, group in groupby(made_good, key=_reason_of)]
    if discarded := answers.sweep["discarded"]:
        blocks.append(
            Paragraph(
                f"{counted(discarded, 'session').capitalize()} more, the first on each device, "
                f"{'was' if discarded == 1 else 'were'} discarded by rule: it warms the device up and is no failure.",
                tone="quiet",
            )
        )
    return Section("failures", "Failed and invalid sessions", blocks)


def next_step(reason_code: str | None) -> str:
    """What to do about a session that ended for this reason, one sentence."""
    return f"{_NEXT_STEPS.get(reason_code or '', _AGAIN)}."


def _reason_of(row: Row) -> tuple[str, str, str]:
    return row["status"], row["reason_code"] or "", row["device"]


def _fold(group: list[Row], *, is_open: bool) -> Fold:
    first = group[0]
    title: Text = (
        Code(first["reason_code"] or "unknown reason"),
        f" on {first['device']}: {counted(len(group), 'session')} {first['status']}",
    )
    blocks: list[Block] = [Paragraph(f"Next: {next_step(first['reason_code'])}"), Points(_reasons(group))]
    blocks.append(Table(_COLUMNS, [_cells(row) for row in group[:_MOST_SESSIONS]]))
    if len(group) > _MOST_SESSIONS:
        blocks.append(Paragraph(f"{len(group) - _MOST_SESSIONS} more are in the view failed_session.", tone="quiet"))
    for row in _with_other_logs(group)[:_MOST_LOGS]:
        blocks.append(
            Fold(("Last lines of the log of ", Code(row["session_id"])), [Log(row["log_tail"])], is_open=is_open)
        )
    return Fold(title, blocks, is_open=is_open)


_COLUMNS = (
    Column("Session"),
    Column("Model"),
    Column("Precision"),
    Column("SME2"),
    Column("Threads", "", True),
    Column("Mode"),
    Column("Attempt", "", True),
)


def _cells(row: Row) -> list[Cell]:
    return [
        code(row["session_id"]),
        code(row["model"]),
        Cell(row["precision"]),
        variant_cell(row["variant"]),
        number(row["threads"], 0) if row["threads"] is not None else NOTHING,
        Cell(row["mode"]),
        number(row["attempt"], 0),
    ]


def _reasons(group: list[Row]) -> list[Text]:
    """The different sentences of a group, the first few of them."""
    said = list(dict.fromkeys(sentence(row["reason"] or "no reason was recorded") for row in group))
    rest = [f"… and {len(said) - _MOST_LOGS} more, much alike."] if len(said) > _MOST_LOGS else []
    return [*said[:_MOST_LOGS], *rest]


def _with_other_logs(group: list[Row]) -> list[Row]:
    """The sessions that left a log, each text once."""
    by_text = {row["log_tail"]: row for row in reversed(group) if row["log_tail"]}
    return list(reversed(by_text.values()))
