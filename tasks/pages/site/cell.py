"""The page of a cell: where the time goes in what was measured alike, and its sessions."""

from collections import defaultdict
from collections.abc import Sequence

from tasks.pages.accuracy import accuracy
from tasks.pages.latency import latency
from tasks.pages.operators import categories, modules, operators, portable
from tasks.pages.page import Page, Points, Section
from tasks.pages.report import short_sections
from tasks.pages.sme2 import sme2
from tasks.results.addresses import cell_page, device_page, model_page, night_page
from tasks.results.cells import tags_of, variant_word
from tasks.results.provenance import CellFactsRow, limited_to, origin_of
from tasks.results.reader import Answers, Reader
from tasks.results.sessions import SessionFactsRow, read_cell_sessions
from tasks.results.table import first_rows
from tasks.results.text import CodeLink, Link, Text, counted

_SECTIONS = (latency, categories, modules, operators, portable, sme2, accuracy)


class Cells:
    """What the pages of some cells are made from, read at once; `facts` are theirs, by cell."""

    def __init__(self, reader: Reader, cells: Sequence[str]) -> None:
        self.facts: dict[str, CellFactsRow] = {}
        self._sessions: dict[str, list[SessionFactsRow]] = defaultdict(list)
        if cells:
            asked = {"cells": cells}
            self.facts = {row.cell: row for row in reader.rows(CellFactsRow, asked)}
            for session in read_cell_sessions(reader, cells):
                self._sessions[session.cell].append(session)

    def page(self, row: CellFactsRow, answers: Answers, footer: str) -> Page:
        """Return the page of a cell; `answers` are about its sweep."""
        sessions = self._sessions[row.cell]
        return Page(
            title=f"{row.model} {row.precision} on {row.device}",
            subtitle=_subtitle(row),
            figures=(),
            summary=(),
            sections=[
                *short_sections(limited_to(answers, [row]), _SECTIONS),
                Section(
                    "sessions", "Sessions", [first_rows(sessions, 200, "etfarm sql lists them in session_latency")]
                ),
                Section("origin", "Where it comes from", [Points(origin_of(row))]),
            ],
            footer=footer,
            address=cell_page(row.cell),
            answer=f"{counted(len(sessions), 'session').capitalize()} that were measured alike.",
        )


def _subtitle(row: CellFactsRow) -> Text:
    night = (Link(str(row.night), night_page(row.night)),) if row.night else ("no night",)
    threads = f" · {row.threads} threads" if row.threads is not None else ""
    return (
        CodeLink(row.model, model_page(row.model)),
        f" · {row.precision} · SME2 {variant_word(row.variant)}{threads} · ",
        Link(row.device, device_page(row.device)),
        *tags_of(row.without_times),
        " · ",
        *night,
    )
