"""Explain a series: its verdict, what changed, where the time goes, the conditions of the night, and the next step.

Every sentence is one that a page or the report has; nothing here computes a figure.
"""

import functools
import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date

from devices.errors import InputError
from devices.suggest import did_you_mean
from tasks.bundle.model_names import unknown_series
from tasks.bundle.next_step import next_step
from tasks.judge.compare.outcome import Line
from tasks.judge.metrics import LATENCY
from tasks.pages.explanation import Explanation, Fact
from tasks.pages.site.changes import compare_command
from tasks.results.addresses import night_page
from tasks.results.advice import other_advice, portable_advice
from tasks.results.cells import series_title
from tasks.results.devices import conditions_in_words, waits_in_words
from tasks.results.operators import ModuleRow, PortableRow, heaviest, portable_in_words, time_in_words
from tasks.results.provenance import CellFactsRow, limited_to, origin_of
from tasks.results.reader import Answers, Reader, SweepRow
from tasks.results.series import SeriesRow
from tasks.results.sessions import FailureRow, failures_in_words, read_cell_sessions
from tasks.results.sme2 import coverage_in_words, shift_in_words, sme2_in_words
from tasks.results.text import Code, Link, Text, in_ms, joined, sentence, with_code
from tasks.results.verdicts import Verdict, change_of, read_verdicts

_STEPS = {
    "insufficient data": "Measure more sessions, or wait for the next night: the verdict states what is missing.",
    "invalid environment": "Check the device with `etfarm doctor`, then run the sweep again.",
    "device slower": "Check the device, not the model.",
    "device faster": "Check the device, not the model.",
    "no change": "Nothing, as far as the time is concerned.",
}
"""What to do after a verdict; after any other, the night is compared with the last good one."""
_FIGURES = (
    "verdict", "ratio", "low", "high", "sessions", "noise_floor", "since", "changed",
    "cause", "reason",
)  # fmt: skip


def explain(reader: Reader, name: str, only: Mapping[str, str | None]) -> Explanation:
    """Explain a model by the name that pages show, or a series by its id: the worst series, the others in a line each.

    `only` restricts device, precision and variant. Raises InputError if a name is unknown.
    """
    every = reader.rows(SeriesRow)
    first, *others = worst_first(_chosen(every, reader, name, only))
    verdicts = read_verdicts(reader, [first.night])
    made = explain_series(reader, first, every, verdicts_on(first, verdicts), functools.partial(answers_about, reader))
    return replace(made, others=[joined(f"{series_title(row)}: {row.night}: ", _judged(row)) for row in others])


AnswersAbout = Callable[[Sequence[CellFactsRow]], Answers]
"""Gives the answers about a sweep that cover some of its cells, of one model on one device."""


def answers_about(reader: Reader, cells: Sequence[CellFactsRow]) -> Answers:
    """Return the answers about the sweep of some cells, for their models and devices; valid until the next call."""
    return reader.excerpt(cells[0].sweep_id, {(cell.model, cell.device) for cell in cells})


def explain_series(
    reader: Reader,
    row: SeriesRow,
    every: Sequence[SeriesRow],
    verdicts: Sequence[Verdict],
    about: AnswersAbout | None,
) -> Explanation:
    """Explain a series by its `verdicts` on its newest night; among `every` series are its other variants.

    Without `about`, only what the verdict states: no other view is read.
    """
    (newest,) = [each for each in verdicts if each.metric == LATENCY.name]
    others = [each for each in verdicts if each.metric != LATENCY.name]
    cell = _cell_of(reader, row) if about else None
    facts = [*_about_verdict(newest)]
    sessions: list[str] = []
    failed: list[Answers] = []
    if about and cell:
        beside = [found for each in every if _is_variant(each, row) and (found := _cell_of(reader, each))]
        facts += [*_other_figures(others), *facts_of_cell(reader, [cell, *beside], about)]
        sessions = _succeeded(reader, cell)
    elif about:
        failed = _failed_nights(reader, row)
        facts += [Fact("Sessions without a result", words) for night in failed if (words := failures_in_words(night))]
    steps = [*_steps_of(failed), *_next_step(reader, row, newest, sessions)]
    ids = {"cell": row.cell, "sweep_id": cell.sweep_id if cell else None, "session_ids": sessions}
    return Explanation(
        title=series_title(row),
        answer=(Link(str(row.night), night_page(row.night)), f": {_judged(row)}. {sentence(newest.reason)}"),
        facts=[*facts, Fact("Next step", steps)],
        figures={**_figures_of(reader, row, newest), **ids},
    )


def _figures_of(reader: Reader, row: SeriesRow, newest: Verdict) -> dict[str, object]:
    """Return the names of a series and the figures of a verdict on it, for programs."""
    names = {name: getattr(row, name) for name in ("model", "device", "precision", "variant", "threads", "series_id")}
    names["model_in_sql"] = reader.models.get(row.model, row.model)
    figures = {name: _plain(getattr(newest, name)) for name in _FIGURES}
    return {**names, "night": str(row.night), **figures, "time_ms": row.time_ms}


def explain_verdict(reader: Reader, judged: Verdict, verdicts: Sequence[Verdict]) -> Sequence[Fact]:
    """Return what `explain_series` knows about the series of a verdict as of its night, of which `verdicts` are all."""
    series = {(row.series_id, row.device): row for row in reader.rows(SeriesRow)}
    latency = [each for each in verdicts if each.metric == LATENCY.name]
    every = {(each.series_id, each.device): _as_of(series[each.series_id, each.device], each) for each in latency}
    row = every[judged.series_id, judged.device]
    about = functools.partial(answers_about, reader)
    return explain_series(reader, row, list(every.values()), verdicts_on(row, verdicts), about).facts


def _as_of(row: SeriesRow, judged: Verdict) -> SeriesRow:
    """Return a series with the verdict on one of its nights."""
    names = ("night", "cell", "verdict", "ratio", "noise_floor", "since")
    time_ms = None if judged.value is None else judged.value / 1e6
    return replace(row, time_ms=time_ms, **{name: getattr(judged, name) for name in names})


def verdicts_on(row: SeriesRow, verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return the verdicts on the latency and on other figures of a series."""
    return [each for each in verdicts if (each.series_id, each.device) == (row.series_id, row.device)]


def facts_of_cell(reader: Reader, cells: Sequence[CellFactsRow], about: AnswersAbout) -> list[Fact]:
    """Return what is known about the first of some cells, which differ only in their variant."""
    cell, answers = cells[0], about(cells)
    one, pair = limited_to(answers, cells[:1]), limited_to(answers, cells)
    modules = heaviest(one.rows(ModuleRow))
    alike = {"device": [cell.device], "precision": [cell.precision], "variant": [cell.variant]}
    night = reader.answers(one.sweep).limited(alike | {"model": [cell.model]})  # of all sessions on the device
    facts = [
        Fact("Where the time goes", [*time_in_words(one), *([f"Modules: {modules}."] if modules else [])]),
        Fact("Portable operators", list(portable_advice(one)) or list(portable_in_words(one.rows(PortableRow)))),
        Fact("Advice", list(other_advice(one))),
        Fact("SME2", [*sme2_in_words(pair), *coverage_in_words(pair), *shift_in_words(pair)]),
        Fact("Sessions without a result", [*failures_in_words(night), *_steps_of([night])]),
        Fact("Conditions of the night", [*conditions_in_words(night), *waits_in_words(night)]),
        Fact("Where it comes from", origin_of(cell)),
    ]
    return [fact for fact in facts if fact.sentences]


def _failed_nights(reader: Reader, row: SeriesRow) -> list[Answers]:
    """Return the answers about a series without a session that counts, in each sweep of its newest night."""
    scope = {name: [getattr(row, name)] for name in ("model", "device", "precision", "variant", "threads")}
    sweeps = [sweep for sweep in reader.rows(SweepRow) if sweep.night == row.night]
    return [reader.answers(sweep).limited(scope) for sweep in sweeps]


def explain_line(reader: Reader, line: Line) -> list[Fact]:
    """Return what is known about one line of a comparison, and about the cell of its B; nothing without a cell."""
    cell = next(iter(reader.rows(CellFactsRow, {"cells": [line.b.cell]})), None)
    if cell is None:
        return []
    facts = [Fact("Verdict", [f"{line.series}: {line.answer}."])]
    facts += [Fact("Cause", [with_code(f"{line.cause}.")])] if line.cause else []
    facts += [Fact("What changed", [f"{line.differs}."])] if line.differs else []
    # Sessions that were measured for a comparison alone are in no sweep, and sections of a report are about sweeps.
    if any(row.sweep_id == cell.sweep_id for row in reader.rows(SweepRow)):
        facts += facts_of_cell(reader, [cell], lambda cells: answers_about(reader, cells))
    trace = _trace_of(_succeeded(reader, cell))
    return [*facts, *([Fact("Next step", [trace])] if trace else [])]


def worst_first(rows: Sequence[SeriesRow]) -> list[SeriesRow]:
    """Return series by their newest verdict: the newest night first, in it the worst verdict by its change.

    Of those with one verdict, a series that has no time in the night comes last: there is nothing to explain.
    """

    def place(row: SeriesRow) -> tuple[int, int, bool, float]:
        return -row.night.toordinal(), row.place, row.time_ms is None, -abs(math.log(row.ratio or 1.0))

    return sorted(rows, key=place)


def _chosen(
    rows: Sequence[SeriesRow], reader: Reader, name: str, only: Mapping[str, str | None]
) -> Sequence[SeriesRow]:
    """Return the series that a user names; raises InputError with what would be right."""
    if not rows:
        raise InputError("no series is judged yet; measure a night with `etfarm sweep`")
    shown = reader.names.get(name, name)
    found = [row for row in rows if name == row.series_id or shown == row.model]
    if not found and shown in reader.models:
        raise InputError(f"`{name}` has no judged series: no night measured its time on a real device")
    if not found:
        raise unknown_series(name, {row.model for row in rows})
    for field, value in only.items():
        known = {getattr(row, field) for row in found}
        if value is not None and value not in known:
            near = did_you_mean(value, known) or f"; use one of {', '.join(sorted(known))}"
            raise InputError(f"--{field}: `{name}` has no series with {field} `{value}`{near}")
        found = [row for row in found if value in (None, getattr(row, field))]
    if not found:
        raise InputError(f"`{name}` has no series with all of these; leave one of the options out")
    return found


def _is_variant(one: SeriesRow, other: SeriesRow) -> bool:
    """Whether two series were measured alike, but for SME2."""
    same = ("model", "device", "precision", "threads", "night")
    return one.variant != other.variant and all(getattr(one, name) == getattr(other, name) for name in same)


def _cell_of(reader: Reader, row: SeriesRow) -> CellFactsRow | None:
    return next(iter(reader.rows(CellFactsRow, {"cells": [row.cell]})), None)


def _succeeded(reader: Reader, cell: CellFactsRow) -> list[str]:
    """Return the sessions of a cell that succeeded, those that its time is made from first."""
    rows = [row for row in read_cell_sessions(reader, [cell.cell]) if row.status == "succeeded"]
    return [row.session_id for row in sorted(rows, key=lambda row: not row.is_typical)]


def _judged(row: SeriesRow) -> str:
    """The newest verdict with its figures: `12.3 ms, +4.2 % against its baseline: regression since 2026-11-02`."""
    if row.time_ms is None:
        return row.verdict
    change = f", {change_of(row.ratio)} % against its baseline" if row.ratio is not None else ""
    return f"{in_ms(row.time_ms)}{change}: {row.verdict}{f' since {row.since}' if row.since else ''}"


def _about_verdict(night: Verdict) -> Iterator[Fact]:
    """What the verdict is made from, and what it states about the change."""
    if night.sessions:
        yield Fact("Evidence", [sentence(night.evidence)])
    if night.cause:
        yield Fact("Cause", [with_code(f"{night.cause}.")])
    if night.changed or night.since:
        yield Fact("What changed", [f"{night.changed}." if night.changed else "Nothing else changed."])


def _other_figures(found: Sequence[Verdict]) -> Iterator[Fact]:
    """The other figures of the series that changed."""
    if found:
        yield Fact("Other figures", [sentence(f"{each.verdict}: {each.reason}") for each in found])


def _steps_of(nights: Sequence[Answers]) -> Iterator[Text]:
    """What to do about sessions without a result, a sentence for each reason."""
    rows = [row for night in nights for row in night.rows(FailureRow) if not row.superseded]
    for code in dict.fromkeys(row.reason_code for row in rows):
        yield with_code(next_step(code))


def _next_step(reader: Reader, row: SeriesRow, night: Verdict, sessions: Sequence[str]) -> Iterator[Text]:
    """What to do after the verdict, each with its command."""
    if not night.sessions:
        asked = ["etfarm", "sql", "newest-failures", "--model", row.model, "--device", row.device]
        yield ("Sessions that failed: ", Code(shlex.join(asked)))
    elif step := _STEPS.get(night.verdict):
        yield with_code(step)
    if night.verdict.startswith("device"):
        yield ("Its state now: ", Code(shlex.join(["etfarm", "devices", "probe", row.device])))
    elif night.verdict == "inaccurate":
        query = f"FROM cell_accuracy WHERE cell = '{row.cell}'"
        yield ("Its outputs: ", Code(shlex.join(["etfarm", "sql", query])))
    elif night.sessions and night.verdict not in _STEPS:
        yield ("Look closer: ", Code(compare_command(reader, row, night.night, night.baseline_to)))
    if trace := _trace_of(sessions):
        yield trace


def _trace_of(sessions: Sequence[str]) -> Text:
    return ("Trace of a session: ", Code(f"etfarm trace {sessions[0]} -o trace.json")) if sessions else ""


def _plain(value: object) -> object:
    return str(value) if isinstance(value, date) else value
