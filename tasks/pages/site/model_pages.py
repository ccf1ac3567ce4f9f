"""The pages of models that were measured, and what is read for them."""

from collections.abc import Collection, Sequence

from tasks.bundle.runtime import without_delegate
from tasks.judge.figures import LATENCY
from tasks.pages import explanation
from tasks.pages.page import Page, Section
from tasks.pages.sections.model_details import Details
from tasks.pages.site import model
from tasks.pages.site.shared_rows import SharedRows
from tasks.results.addresses import cell_page, slug
from tasks.results.explanation import explain_series, read_variants
from tasks.results.glances.histories import read_histories
from tasks.results.glances.incident_cards import limit_to_series, read_open_cards
from tasks.results.measurements.delegates import DelegateRow
from tasks.results.measurements.time_tree import read_time_parts
from tasks.results.provenance import CellFactsRow
from tasks.results.series import SeriesRow, worst_series_first


class ModelPages:
    """Made from the rows of one warehouse file."""

    def __init__(self, rows: SharedRows) -> None:
        self._rows = rows

    def page(self, name: str, published: Collection[str] | None) -> Page | None:
        """Return the page of the model with this name in addresses; None if there is none.

        `published` are the addresses that links may lead to; None: any.
        """
        if rows := self._rows.series_of_model.get(name):
            cells = [
                self._rows.detailed_cells[cell]
                for cell in model.choose_cells(rows)
                if cell in self._rows.detailed_cells
            ]
            cells = [cell for cell in cells if cell.sweep_id == cells[0].sweep_id]
            return model.page(
                self._rows.reader.warehouse_names.get(rows[0].model, rows[0].model),
                rows,
                limit_to_series(read_open_cards(self._rows.reader), rows),
                self._explain(worst_series_first(rows)[0], published),
                self._read_nights(rows),
                self._read_details(cells, rows) if cells else None,
            )
        if row := self._rows.unjudged.get(name):
            answers = self._rows.read_answers(row.sweep_id, {(row.model, each) for each in row.devices})
            return model.page_without_verdict(self._rows.reader.warehouse_names.get(row.model, row.model), row, answers)
        return None

    def _read_nights(self, rows: Sequence[SeriesRow]) -> model.Nights:
        """Return the times of series over the 30 nights up to the newest of them."""
        newest = max(row.night for row in rows)
        figures = [(row.series_id, row.device, LATENCY.name) for row in rows]
        histories = [*read_histories(self._rows.reader, figures, [newest]).values()]
        times_ms = {
            (each.series_id, each.device): [None if time is None else time / 1e6 for time in each.figures]
            for each in histories
        }
        return model.Nights(histories[0].nights, times_ms)

    def _read_details(self, cells: Sequence[CellFactsRow], rows: Sequence[SeriesRow]) -> Details:
        pair = [
            self._rows.detailed_cells[cell] for cell in model.choose_pair(rows) if cell in self._rows.detailed_cells
        ]
        pair = [cell for cell in pair if cell.sweep_id == cells[0].sweep_id]
        before = {cell.cell: good for cell in cells if (good := self._rows.cell_before(cell))}
        parts = read_time_parts(self._rows.reader, [*(cell.cell for cell in cells), *before.values()])
        parts_before = {cell: parts[good] for cell, good in before.items() if good in parts}
        answers = self._rows.cell_answers([*cells, *pair])
        return Details(cells, pair, answers, parts, parts_before, self._read_delegates(cells[0]))

    def _read_delegates(self, cell: CellFactsRow) -> list[DelegateRow]:
        """Return the delegates that the sweep of a cell states of its model, on all devices."""
        model = without_delegate(cell.model)
        answers = self._rows.reader.answers(self._rows.sweeps[slug(cell.sweep_id)])
        return [row for row in answers.rows(DelegateRow) if row.compared_model == model]

    def _explain(self, row: SeriesRow, published: Collection[str] | None) -> Section:
        """Explain a series; on published pages in detail only where the page of its cell is published, too."""
        in_detail = published is None or cell_page(row.cell) in published
        self._rows.read_verdicts([row.night])
        verdicts = self._rows.verdicts_on[row.night, row.series_id, row.device]
        cells = read_variants(self._rows.reader, row, self._rows.series) if in_detail else None
        answers = self._rows.cell_answers(cells) if cells else None
        return explanation.section(explain_series(self._rows.reader, verdicts, cells, answers))
