"""Explain a series (verdict, changes, where the time goes, next step) with the sentences of the other modules."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from devices.errors import InputError
from tasks.bundle.failure_kinds import remedy
from tasks.bundle.model_names import limit_series, unknown_series
from tasks.bundle.runtime import base_model, parse_runtime
from tasks.judge.figures import METRICS, percent_change
from tasks.judge.pairs import SERIES
from tasks.results.addresses import night_page
from tasks.results.cells import CellRow
from tasks.results.changes import Comparison, SeriesChange, answer_text, is_changed, worst_first
from tasks.results.devices import conditions_in_words, waits_in_words
from tasks.results.incident_lookup import find_accepted, find_incident
from tasks.results.incidents import read_incidents
from tasks.results.measurements.graph import graph_facts
from tasks.results.measurements.memory import read_owner_changes
from tasks.results.measurements.operators import (
    ModuleRow,
    PortableRow,
    changed_operators,
    heaviest_modules,
    portable_in_words,
    time_in_words,
)
from tasks.results.measurements.sme2 import coverage_in_words, sme2_in_words
from tasks.results.measurements.sme2_shift import shift_in_words
from tasks.results.measurements.sweep_advice import other_advice, portable_advice
from tasks.results.provenance import CellFactsRow, describe_origin, limit_to_cells
from tasks.results.reader import Answers, Reader, SweepRow
from tasks.results.series import SeriesRow, worst_series_first
from tasks.results.sessions import FailureRow, failures_in_words, read_cell_sessions
from tasks.results.text import Code, Fact, Link, Text, in_ms, joined, plain_text, sentence, series_title, with_code
from tasks.results.verdicts import VerdictRow, latency_verdicts, other_verdicts, read_verdicts

_NEXT_STEPS = {
    "insufficient data": "Measure more sessions, or wait for the next night: the verdict states what is missing.",
    "invalid environment": "Check the device with `etfarm doctor`, then run the sweep again.",
    "device slower": "Check the device, not the model.",
    "new": "Nothing: there is no earlier night to compare with.",
    "unclear": "Wait for the next night: one night of a device is no evidence.",
    "device faster": "Check the device, not the model.",
    "no change": "Nothing, as far as the time is concerned.",
}
"""Next step after a verdict; after any other, a command compares the night with the last good one."""
_WITH_CAUSE = ("regression", "suspected", "improvement", "suspected improvement")
_OF_EXPORT = ("export_failed", "model_crashed")
"""Reason codes that another export may settle."""
_FIGURES = (
    *(*SERIES, "series_id", "verdict", "ratio", "low", "high", "sessions", "noise_floor", "changed", "cause"),
    *("reason", "incident_id", "time_ms", "before_ms", "after_ms", "cell"),
)
JudgedRow = SeriesRow | VerdictRow


@dataclass(frozen=True)
class Explanation:
    """A series on a device in its newest night: verdict, facts and next step."""

    title: Text
    answer: Text
    """The verdict in a sentence."""
    facts: Sequence[Fact]
    others: Sequence[Text] = ()
    """The other series of the model, a line each."""
    figures: dict[str, Any] = field(default_factory=dict)
    """Names, figures and ids by the names of the view `verdict`; `session_ids` are the succeeded ones of the cell."""

    def data(self) -> dict[str, Any]:
        """Return the explanation as docs/json.md describes it."""
        return {
            "series": plain_text(self.title),
            "answer": plain_text(self.answer),
            **self.figures,
            "facts": {fact.title: [plain_text(each) for each in fact.sentences] for fact in self.facts},
            "others": [plain_text(line) for line in self.others],
        }


def explain(reader: Reader, name: str, only: Mapping[str, str | None]) -> Explanation:
    """Explain the worst series of a model, the others in a line each, or the series with an id.

    `name` is a series id, or a model as pages show it or as the sweep file has it. `only` gives device, precision and
    variant (None: any). Raises InputError if no judged series has this name and these values.
    """
    first, *others = worst_series_first(_find_series(reader.rows(SeriesRow), reader, name, only))
    lines = [joined(f"{series_title(row)}: {row.night}: ", _verdict_text(row)) for row in others]
    return replace(_explain_in(reader, first.night, first.series_id, first.device), others=lines)


def _explain_in(reader: Reader, night: date, series_id: str | None, device: str) -> Explanation:
    """Explain a series on a device as if a night were the newest."""
    verdicts = read_verdicts(reader, [night])
    of_series = [each for each in verdicts if (each.series_id, each.device) == (series_id, device)]
    (judged,) = latency_verdicts(of_series)
    return explain_series(reader, of_series, read_variants(reader, judged, latency_verdicts(verdicts)))


def explain_series(
    reader: Reader, verdicts: Sequence[VerdictRow], cells: Sequence[CellFactsRow] | None, answers: Answers | None = None
) -> Explanation:
    """Explain a series on a device by all its verdicts in one night, and by its `cells`.

    `cells` is the result of `read_variants`. Empty: the facts are about sessions without a result. None: only what the
    verdict and its incident state, and no other view is read. `answers` about the sweep of the cells are read if they
    are None.
    """
    (newest,) = latency_verdicts(verdicts)
    facts = _verdict_facts(reader, newest)
    sessions: list[str] = []
    failed: list[Answers] = []
    if cells:
        if others := other_verdicts(verdicts):
            facts.append(Fact("Other figures", [sentence(_other_figure(reader, judged)) for judged in others]))
        changed = changed_operators(reader, newest.series_id, newest.device, newest.night)
        facts += [Fact("Operators that changed", changed)] if changed else []
        facts += _cell_facts(reader, cells, answers)
        sessions = _read_succeeded(reader, cells[0])
    elif cells is not None:
        scope = {name: [getattr(newest, name)] for name in SERIES}
        sweeps = [sweep for sweep in reader.rows(SweepRow) if sweep.night == newest.night]
        failed = [reader.answers(sweep).limit_to(scope) for sweep in sweeps]
        facts += [Fact("Sessions without a result", words) for night in failed if (words := failures_in_words(night))]
    steps = [*_failure_remedies(reader, newest, failed), *_remedy(reader, newest, sessions)]
    figures = {name: getattr(newest, name) for name in _FIGURES}
    figures |= {"night": str(newest.night), "since": str(newest.since) if newest.since else None}
    figures |= {"model_in_sql": reader.warehouse_names.get(newest.model, newest.model)}
    figures |= {"sweep_id": cells[0].sweep_id if cells else None, "session_ids": sessions}
    return Explanation(
        title=series_title(newest),
        answer=(
            Link(str(newest.night), night_page(newest.night)),
            *with_code(f": {_verdict_text(newest)}. {sentence(newest.reason)}"),
        ),
        facts=[*facts, Fact("Next step", steps)],
        figures=figures,
    )


def _other_figure(reader: Reader, judged: VerdictRow) -> str:
    """Return a verdict on another figure; that on the peak memory names the owners that changed."""
    text = f"{judged.verdict}: {judged.reason}"
    if judged.metric != METRICS["peak memory"].name or not judged.cell_before or not judged.cell:
        return text
    [owners] = read_owner_changes(reader, [(judged.cell_before, judged.cell)])
    return f"{text}; owners: {owners}" if owners else text


def _verdict_facts(reader: Reader, newest: VerdictRow) -> list[Fact]:
    every = read_incidents(reader)
    incident = find_incident(every, newest.incident_id) if newest.incident_id else find_accepted(every, newest)
    facts = [Fact("Incident", [with_code(f"{incident.line}.")])] if incident else []
    facts += [Fact("Evidence", [sentence(newest.evidence)])] if newest.sessions else []
    facts += [Fact("Cause", [with_code(f"{newest.cause}.")])] if newest.cause and newest.verdict in _WITH_CAUSE else []
    if newest.changed or newest.since:
        facts.append(Fact("What changed", [f"{newest.changed}." if newest.changed else "Nothing else changed."]))
    if ".pte file" in (newest.changed or ""):
        onset = (incident.good_cell, incident.cell) if incident else (newest.cell_before, newest.cell)
        facts += graph_facts(reader, *onset)
    return facts


def explain_worst(reader: Reader, comparison: Comparison) -> Sequence[Fact]:
    """Return facts about the worst change of a comparison or a night; empty without a change."""
    worst = next((change for change in worst_first(comparison.changes) if is_changed(change)), None)
    if worst is None:
        return []
    if worst.night is None:
        return explain_change(reader, worst)
    return _explain_in(reader, worst.night, worst.series_id, worst.device).facts


def explain_change(reader: Reader, change: SeriesChange) -> list[Fact]:
    """Return facts about a change of a comparison and about the cell of its B; empty if that has none."""
    cell = _read_cell(reader, change.b.cell)
    if cell is None:
        return []
    facts = [Fact("Verdict", [f"{series_title(change)}: {answer_text(change)}."])]
    facts += [Fact("Cause", [with_code(f"{change.cause}.")])] if change.cause else []
    facts += [Fact("What changed", [f"{change.changed}."])] if change.changed else []
    # Sessions that were measured for a comparison alone are in no sweep, and these facts are about sweeps.
    if any(row.sweep_id == cell.sweep_id for row in reader.rows(SweepRow)):
        facts += _cell_facts(reader, [cell], None)
    trace = _trace_step(_read_succeeded(reader, cell))
    return [*facts, *([Fact("Next step", [trace])] if trace else [])]


def read_variants(reader: Reader, row: JudgedRow, every: Sequence[JudgedRow]) -> list[CellFactsRow]:
    """Return a series' cell, then those of its other variants that night, by verdicts `every`; empty if none."""
    if not (cell := _read_cell(reader, row.cell)):
        return []
    same = ("model", "device", "precision", "threads", "night")
    variants = [
        other
        for other in every
        if other.variant != row.variant and all(getattr(other, name) == getattr(row, name) for name in same)
    ]
    return [cell, *(variant_cell for other in variants if (variant_cell := _read_cell(reader, other.cell)))]


def closer_command(model: str, device: str, precision: str, nights: tuple[date | None, date]) -> str:
    """Return the command that compares series of a model in a night with the last good one; without one, explains them.

    `model` is its name in the warehouse, `nights` are the last good one and the night.
    """
    before, night = nights
    words = ["compare", str(before), str(night), "--model", model] if before else ["explain", model]
    return shlex.join(["etfarm", *words, "--device", device, "--precision", precision])


def _cell_facts(reader: Reader, cells: Sequence[CellFactsRow], answers: Answers | None) -> list[Fact]:
    """Return facts about the first of some cells; the others, which differ in variant, serve to compare SME2."""
    cell = cells[0]
    answers = answers or reader.excerpt(cell.sweep_id, {(each.model, each.device) for each in cells})
    one, both = limit_to_cells(answers, cells[:1]), limit_to_cells(answers, cells)
    modules = heaviest_modules(one.rows(ModuleRow))
    device = {"device": [cell.device], "precision": [cell.precision], "variant": [cell.variant]}
    night = reader.answers(one.sweep).limit_to(device | {"model": [cell.model]})  # of all sessions on the device
    facts = [
        Fact("Where the time goes", [*time_in_words(one), *([f"Modules: {modules}."] if modules else [])]),
        Fact("Portable operators", [*portable_advice(one)] or [*portable_in_words(one.rows(PortableRow))]),
        Fact("Advice", list(other_advice(one))),
        Fact("SME2", [*sme2_in_words(both), *coverage_in_words(both), *shift_in_words(both)]),
        Fact("Sessions without a result", [*failures_in_words(night), *_failure_remedies(reader, cell, [night])]),
        Fact("Conditions of the night", [*conditions_in_words(night), *waits_in_words(night)]),
        Fact("Where it comes from", describe_origin(cell)),
    ]
    return [fact for fact in facts if fact.sentences]


def _find_series(
    rows: Sequence[SeriesRow], reader: Reader, name: str, only: Mapping[str, str | None]
) -> Sequence[SeriesRow]:
    """Return the series that a user names; raises InputError with the names to use."""
    if not rows:
        raise InputError("no series is judged yet; measure a night with `etfarm sweep`")
    model = reader.names.get(name, name)
    named = [row for row in rows if name == row.series_id or model == row.model]
    if not named and model in reader.warehouse_names:
        raise InputError(f"`{name}` has no judged series: no night measured its time on a real device")
    if not named:
        raise unknown_series(name, {row.model for row in rows})
    for option, value in only.items():
        named = limit_series(named, name, option, value)
    return named


def _read_cell(reader: Reader, cell: str | None) -> CellFactsRow | None:
    return next(iter(reader.rows(CellFactsRow, {"cells": [cell]})), None)


def _read_succeeded(reader: Reader, cell: CellFactsRow) -> list[str]:
    """Return the ids of the succeeded sessions of a cell, those that its time is made from first."""
    rows = [row for row in read_cell_sessions(reader, [cell.cell]) if row.status == "succeeded"]
    return [row.session_id for row in sorted(rows, key=lambda row: not row.is_typical)]


def _verdict_text(row: JudgedRow) -> str:
    """Return a verdict with its figures: `12.3 ms, +4.2 % against its baseline: regression since 2026-11-02`."""
    time_ms = row.night_ms if isinstance(row, SeriesRow) else row.time_ms
    if time_ms is None:
        return row.verdict
    again = f"; {row.again}" if row.again else ""
    of_what = "" if again else " against its baseline"
    change = f"{again}, {percent_change(row.ratio, row.low, row.high)}{of_what}" if row.ratio is not None else again
    return f"{in_ms(time_ms)}{change}: {row.verdict}{f' since {row.since}' if row.since else ''}"


def _failure_remedies(reader: Reader, series: CellRow | CellFactsRow, nights: Sequence[Answers]) -> Iterator[Text]:
    """Yield what to do about sessions of a series without a result, a sentence for each reason code."""
    case = reader.warehouse_names.get(series.model, series.model)
    rows = [row for night in nights for row in night.rows(FailureRow) if not row.superseded]
    for code in dict.fromkeys(row.reason_code for row in rows):
        again = f" {_export_again(case, series.precision)}" if code in _OF_EXPORT else ""
        yield with_code(f"{remedy(code)}{again}".rstrip())


def _export_again(case: str, precision: str) -> str:
    """Return the command that repeats an export as a sentence.

    Empty for a model that the warehouse does not locate, and for another version of ExecuTorch than the command's.
    """
    from tasks.export.entry import is_factory_name  # slow to import, and few series failed

    # A model from a file is named relative to its sweep file, which the warehouse does not record.
    model = base_model(case)
    runtime = parse_runtime(case)
    words = ["etfarm", "model", "export", model, "--precision", precision]
    words += ["--delegate", runtime.delegate] if runtime.delegate else []
    command = shlex.join(words)
    is_repeated = is_factory_name(model) and not runtime.export
    return f"`{command}` repeats the export." if is_repeated else ""


def _remedy(reader: Reader, night: VerdictRow, sessions: Sequence[str]) -> Iterator[Text]:
    if not night.sessions:
        command = ["etfarm", "sql", "newest-failures", "--model", night.model, "--device", night.device]
        yield ("Sessions that failed: ", Code(shlex.join(command)))
    elif step := _NEXT_STEPS.get(night.verdict):
        yield with_code(step)
    if night.verdict.startswith("device"):
        yield ("Its state now: ", Code(shlex.join(["etfarm", "devices", "probe", night.device])))
    elif night.verdict == "inaccurate":
        query = f"FROM cell_accuracy WHERE cell = '{night.cell}'"
        yield ("Its outputs: ", Code(shlex.join(["etfarm", "sql", query])))
    elif night.missing and night.incident_id:
        yield ("If it is meant: ", Code(f"etfarm decisions accept {night.incident_id} --reason TEXT"))
    if night.sessions and night.baseline_to and night.verdict in _WITH_CAUSE:
        model, nights = reader.warehouse_names.get(night.model, night.model), (night.baseline_to, night.night)
        yield ("Look closer: ", Code(closer_command(model, night.device, night.precision, nights)))
    if trace := _trace_step(sessions):
        yield trace


def _trace_step(sessions: Sequence[str]) -> Text:
    return ("Trace of a session: ", Code(f"etfarm trace {sessions[0]} -o trace.json")) if sessions else ""
