"""The page of a cell: where its time goes, and its sessions."""

from collections.abc import Sequence

from tasks.pages.accuracy import accuracy
from tasks.pages.latency import latency
from tasks.pages.operators import categories, modules, operators, portable
from tasks.pages.page import Page, Points, Section
from tasks.pages.report import short_sections
from tasks.pages.roofline import roofline
from tasks.pages.sme2 import sme2
from tasks.results.addresses import device_page, model_page, night_page
from tasks.results.cells import emulation_tags
from tasks.results.provenance import CellFactsRow, describe_origin, limit_to_cells
from tasks.results.reader import Answers, Reader
from tasks.results.sessions import read_cell_sessions
from tasks.results.table import first_rows, grouped
from tasks.results.text import CodeLink, Link, counted, series_conditions

_MAX_SESSIONS, _IN_SQL = 200, "etfarm sql lists them in session_latency"
_SECTIONS = (latency, categories, modules, operators, roofline, portable, sme2, accuracy)


class Cells:
    """Facts and sessions of some cells for their pages, read at once; `facts` are by cell."""

    def __init__(self, reader: Reader, cells: Sequence[str]) -> None:
        facts = reader.rows(CellFactsRow, {"cells": cells}) if cells else []
        self.facts = {row.cell: row for row in facts}
        self._sessions = grouped(read_cell_sessions(reader, cells), lambda session: session.cell)

    def page(self, row: CellFactsRow, answers: Answers) -> Page:
        """Return the page of a cell; `answers` are about its sweep."""
        sessions = self._sessions.get(row.cell, [])
        sections = [
            *short_sections(limit_to_cells(answers, [row]), _SECTIONS),
            Section("sessions", "Sessions", [first_rows(sessions, _MAX_SESSIONS, _IN_SQL)]),
            Section("origin", "Where it comes from", [Points(describe_origin(row))]),
        ]
        subtitle = (
            CodeLink(row.model, model_page(row.model)),
            f" · {' · '.join([row.precision, *series_conditions(row)])} · ",
            Link(row.device, device_page(row.device)),
            *emulation_tags(row.without_times),
            " · ",
            Link(str(row.night), night_page(row.night)) if row.night else "no night",
        )
        answer = f"{counted(len(sessions), 'session').capitalize()} under the same conditions."
        return Page(f"{row.model} {row.precision} on {row.device}", sections, subtitle, answer)
