"""What changed in the newest night of a series: cause, evidence, what to do, and its layers before and after.

It is a file of its own, which the script of the page of a series reads: most series have no change. A published site
has those of the worst series; for others the page names the command.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence

from tasks.pages.html import as_fragment
from tasks.pages.page import Block, Command, Fold, Heading, Paragraph
from tasks.pages.sections.icicle import icicle_blocks
from tasks.results.addresses import device_page
from tasks.results.explanation import explain_series
from tasks.results.incident_lookup import find_incident
from tasks.results.incidents import IncidentRow, open_incidents, read_incidents
from tasks.results.measurements.operator_changes import OperatorChangeRow, read_operator_changes, shared_in_words
from tasks.results.measurements.time_tree import read_time_parts
from tasks.results.reader import Reader
from tasks.results.series import SeriesRow, worst_series_first
from tasks.results.table import Cell, Column, Table, build_table
from tasks.results.text import Code, Fact, Text, ms_digits, plain_text, sentence, separated, with_code
from tasks.results.verdicts import QUIET, VerdictRow, latency_verdicts, other_verdicts

_MAX_PUBLISHED = 60
_MAX_OPERATORS = 12
_STEPS = "Next step"


def list_published(rows: Sequence[SeriesRow], incidents: Sequence[IncidentRow]) -> list[SeriesRow]:
    """Return the series whose change is published, the worst first: their newest verdict or an incident states one."""
    newest = max((row.night for row in rows), default=None)
    parts = {part for incident in open_incidents(incidents) for part in incident.open_parts}
    changed = [
        row for row in rows if row.night == newest and (row.verdict not in QUIET or row.series_id + row.device in parts)
    ]
    return worst_series_first(changed)[:_MAX_PUBLISHED]


class Changes:
    """The changes of some series, read at once; `verdicts` are all those on each series in its newest night."""

    def __init__(self, reader: Reader, verdicts: Iterable[Sequence[VerdictRow]]) -> None:
        self._reader = reader
        self._verdicts = {(rows[0].series_id, rows[0].device): rows for rows in verdicts if rows}
        newest = [row for rows in self._verdicts.values() for row in latency_verdicts(rows)]
        cells = {cell for row in newest for cell in (row.cell, row.cell_before) if cell}
        self._operators = read_operator_changes(reader, [(row.series_id, row.device, row.night) for row in newest])
        self._parts = read_time_parts(reader, sorted(cells))

    def __contains__(self, key: tuple[str, str]) -> bool:
        """Return whether a series id and a device are among them."""
        return key in self._verdicts

    def script(self, key: tuple[str, str], published: Collection[str] | None) -> str:
        """Return the file of a series: a call with the HTML of the reasons, and with that of the layers."""
        parts = (
            as_fragment([*blocks], device_page(key[1]), published) for blocks in (self._why(key), self._where(key))
        )
        return f"farmChange({', '.join(map(json.dumps, parts))});\n"

    def _why(self, key: tuple[str, str]) -> Iterator[Block]:
        verdicts = self._verdicts[key]
        facts = explain_series(self._reader, verdicts, None).facts
        why = [*(fact for fact in facts if fact.title != _STEPS), *self._other_figures(verdicts)]
        if why:
            yield Heading("Why")
            rows = [[Cell(fact.title), Cell(separated(fact.sentences, " "))] for fact in why]
            yield Table([Column("What"), Column("Answer", wraps=True)], rows)
        if steps := [step for fact in facts if fact.title == _STEPS for step in fact.sentences]:
            yield Heading("What to do")
        for step in steps:
            match step:
                case (str(label), Code() as command):
                    yield Command(str(command), plain_text(label).strip())
                case _:
                    yield Paragraph(step)
        for incident_id in dict.fromkeys(row.incident_id for row in verdicts if row.incident_id):
            accept = f"etfarm decisions accept {incident_id} --reason TEXT"
            if find_incident(read_incidents(self._reader), incident_id).is_open and accept not in _as_text(steps):
                yield Command(accept, f"If incident {incident_id} is meant:")

    def _other_figures(self, verdicts: Sequence[VerdictRow]) -> Iterator[Fact]:
        """Yield a fact for each figure other than the time that changed, in the words of its incident if it has one."""
        for row in other_verdicts(verdicts):
            incident = find_incident(read_incidents(self._reader), row.incident_id) if row.incident_id else None
            text = f"{incident.line}." if incident else sentence(f"{row.verdict}: {row.reason}")
            yield Fact(row.metric.capitalize(), [with_code(text)])

    def _where(self, key: tuple[str, str]) -> Iterator[Block]:
        (newest,) = latency_verdicts(self._verdicts[key])
        yield from _layers(self._operators.get(key, []))
        parts, before = self._parts.get(newest.cell), self._parts.get(newest.cell_before or "")
        if parts:
            since = f", against {newest.baseline_to}" if before else ""
            yield Heading(f"Where in the model{since}")
            yield from icicle_blocks(parts, before)


def _as_text(steps: Sequence[Text]) -> str:
    return " ".join(map(plain_text, steps))


def _layers(rows: Sequence[OperatorChangeRow]) -> Iterator[Block]:
    """Yield the operators with the largest slowdown first; those behind the first dozen are in a fold."""
    if not rows:
        return
    yield Heading("Layers before and after")
    yield from map(Paragraph, shared_in_words(rows))
    table = build_table(rows, digits=ms_digits(row.before_ms for row in rows))
    yield Table(table.columns, table.rows[:_MAX_OPERATORS])
    if more := table.rows[_MAX_OPERATORS:]:
        yield Fold(f"{len(more)} more operators", [Table(table.columns, more)])
