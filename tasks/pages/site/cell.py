"""The page of a cell: where its time goes, and its sessions."""

from collections.abc import Sequence

from tasks.bundle.model_names import case_title
from tasks.pages.page import Page, Paragraph, Points, Section, folded
from tasks.pages.report import short_sections
from tasks.pages.sections.accuracy import accuracy
from tasks.pages.sections.icicle import icicle_blocks
from tasks.pages.sections.latency import latency
from tasks.pages.sections.operators import categories, operators, portable
from tasks.pages.sections.roofline import roofline
from tasks.pages.sections.sme2 import sme2
from tasks.results.addresses import cell_pair_page, device_page, night_page
from tasks.results.cells import emulation_tags, model_link
from tasks.results.measurements.time_tree import read_time_parts
from tasks.results.provenance import CellFactsRow, describe_origin, limit_to_cells
from tasks.results.reader import Answers, Reader
from tasks.results.sessions import read_cell_sessions
from tasks.results.table import first_rows, grouped
from tasks.results.text import Link, counted, series_conditions

_MAX_SESSIONS, _IN_SQL = 200, "etfarm sql lists them in session_latency"
_SECTIONS = (latency, categories, operators, roofline, portable, sme2, accuracy)
_OPEN = ("latency", "time")


class Cells:
    """Facts and sessions of some cells for their pages, read at once; `facts` are by cell."""

    def __init__(self, reader: Reader, cells: Sequence[str]) -> None:
        self._reader = reader
        facts = reader.rows(CellFactsRow, {"cells": cells}) if cells else []
        self.facts = {row.cell: row for row in facts}
        self._sessions = grouped(read_cell_sessions(reader, cells), lambda session: session.cell)

    def page(self, row: CellFactsRow, answers: Answers, before: str | None) -> Page:
        """Return the page of a cell; `answers` are about its sweep, `before` is its cell of the last good night."""
        sessions = self._sessions.get(row.cell, [])
        sections = [
            self._tree(row, before),
            *folded(short_sections(limit_to_cells(answers, [row]), _SECTIONS), is_open=_OPEN),
            Section("sessions", "Sessions", [first_rows(sessions, _MAX_SESSIONS, _IN_SQL)]),
            Section("origin", "Where it comes from", [Points(describe_origin(row))]),
        ]
        subtitle = (
            model_link(row.model),
            f" · {' · '.join([row.precision, *series_conditions(row)])} · ",
            Link(row.device, device_page(row.device)),
            *emulation_tags(row.without_times),
            " · ",
            Link(str(row.night), night_page(row.night)) if row.night else "no night",
        )
        answer = f"{counted(len(sessions), 'session').capitalize()} under the same conditions."
        return Page(f"{case_title(row.model)} {row.precision} on {row.device}", sections, subtitle, answer)

    def _tree(self, row: CellFactsRow, before: str | None) -> Section:
        """Return the section with the time of a cell as a tree."""
        title = "Where in the model"
        parts = read_time_parts(self._reader, [row.cell, *([before] if before else [])])
        if row.cell not in parts:
            why = "no session succeeded" if row.mode == "timing" else f"mode {row.mode} is never latency"
            why = f"its device is {row.without_times}" if row.without_times else why
            return Section("tree", title, [Paragraph(f"No times to draw: {why}.", "quiet")])
        blocks = icicle_blocks(parts[row.cell], parts.get(before or ""))
        note = []
        if before in parts:
            link = Link("Both cells side by side", cell_pair_page(before, row.cell))
            note = [Paragraph((link,), "quiet")]
        return Section("tree", title, [*blocks, *note])
