"""The report's section on layers: where the numbers inside a model part from eager PyTorch."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

from tasks.export.accuracy_limits import limits_of
from tasks.pages.report.page import Block, Fold, Paragraph, Section
from tasks.results.cells import CellNames, PairRow, by_cell
from tasks.results.reader import Answers
from tasks.results.table import NOTHING, Cell, Name, Number, Scientific, bad_unless_zero, cells_of, table_of, toned
from tasks.results.text import Code, Text

_HEADING = "Numbers by layer"
_NOTABLE_DROP_DB = 20.0
"""A loss of more SNR than this that later layers do not regain is named: rounding alone takes less."""


@dataclass(frozen=True)
class LayerRow(PairRow):
    """A layer with SME2 beside without it; what was not measured is None."""

    query = "layers"
    layer: Annotated[int, Number("Layer")]
    module: Annotated[str | None, Name("Module")]
    operator: Annotated[str, Name("Operator")]
    snr_off_db: Annotated[
        float | None,
        Number("SME2 off", "dB", "SNR against eager PyTorch in the same precision, as is SME2 on", digits=1),
    ]
    snr_on_db: Annotated[float | None, Number("SME2 on", "dB", digits=1)]
    snr_fp32_db: Annotated[
        float | None, Number("Against fp32", "dB", "SNR against the same layer of the fp32 model", digits=1)
    ]
    lost_fp32: Annotated[
        int,
        Number("Lost", "elements", "NaN or infinite, and finite in the fp32 model", tone=bad_unless_zero),
    ]
    max_abs_error_off: Annotated[float | None, Scientific("Max abs error off")]
    max_abs_error_on: Annotated[float | None, Scientific("Max abs error on")]
    drop_on_db: float | None
    drop_off_db: float | None
    nonfinite_mismatches: Annotated[
        int,
        Number(
            "Not finite",
            "elements",
            "elements that are finite in only one of device and eager PyTorch",
            tone=bad_unless_zero,
        ),
    ]
    is_equal: bool | None
    sampled_difference: Annotated[
        float | None,
        Scientific("On against off", "", "equal bits, or the largest difference of up to 64 evenly spaced elements"),
    ]

    @property
    def is_notable(self) -> bool:
        """Whether a fault shows here: elements that are not finite, or much SNR lost, to below the recipe's limit."""
        sides = ((self.snr_on_db, self.drop_on_db), (self.snr_off_db, self.drop_off_db))
        return self.nonfinite_mismatches + self.lost_fp32 > 0 or any(self._loses(*side) for side in sides)

    def _loses(self, snr_db: float | None, drop_db: float | None) -> bool:
        limit_db = limits_of(self.precision, None).eager_db
        return snr_db is not None and snr_db < limit_db and (drop_db or 0.0) > _NOTABLE_DROP_DB

    @cells_of("snr_off_db")
    def _snr_off_cell(self, cell: Cell) -> Cell:
        return _snr(cell, self.max_abs_error_off, is_bad=self._loses(self.snr_off_db, self.drop_off_db))

    @cells_of("snr_on_db")
    def _snr_on_cell(self, cell: Cell) -> Cell:
        return _snr(cell, self.max_abs_error_on, is_bad=self._loses(self.snr_on_db, self.drop_on_db))

    @cells_of("sampled_difference")
    def _difference_cell(self, cell: Cell) -> Cell:
        if self.is_equal is None:
            return NOTHING
        return Cell("equal") if self.is_equal else cell


def _snr(cell: Cell, max_abs_error: float | None, *, is_bad: bool) -> Cell:
    if max_abs_error == 0:
        return Cell("equal")
    return toned(cell, "bad") if is_bad else cell


def layers(answers: Answers) -> Section:
    """A fold for each model, device, precision and thread count that was measured in mode numerics."""
    rows = answers.rows(LayerRow)
    if not rows:
        return Section("layers", _HEADING, [Paragraph("No session in mode numerics; add it to the sweep's modes.")])
    pairs = list(by_cell(rows).values())
    names = CellNames(rows)
    blocks: list[Block] = [
        Paragraph(
            "The values that each layer returns on the device, compared with eager PyTorch in the same precision on "
            "the same inputs. They come from another program than the measured one, which returns them besides its "
            "outputs. Errors add up along the model; a fault shows where the SNR drops at once and does not come "
            "back, or where an element is finite in the fp32 model alone."
        )
    ]
    for found in pairs:
        title = (Code(found[0].model), f" \u00b7 {names.label(found[0])} \u2014 {_finding(found)}")
        blocks.append(Fold(title, [table_of(found, is_named=False)], is_open=len(blocks) == 1))
    return Section("layers", _HEADING, blocks, list(_summary(pairs)))


def _finding(rows: list[LayerRow]) -> str:
    first = next((row for row in rows if row.is_notable), None)
    return f"no sudden loss in {len(rows)} layers" if first is None else f"first fault at layer {first.layer}"


def _summary(pairs: Iterable[list[LayerRow]]) -> Iterator[Text]:
    for rows in pairs:
        first = next((row for row in rows if row.is_notable), None)
        if first is not None:
            where = first.module or first.operator
            yield (
                "Numbers of ", Code(first.model), f" {first.precision} on {first.device} part from eager PyTorch at ",
                Code(where), f" (layer {first.layer}).",
            )  # fmt: skip
