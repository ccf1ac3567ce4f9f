"""The report's section on layers: where the numbers inside a model part from eager PyTorch."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tasks.analyse.report.cells import CellNames, PairRow, cell_of
from tasks.analyse.report.data import Answers
from tasks.analyse.report.page import Block, Cell, Code, Column, Fold, Paragraph, Section, Table, Text
from tasks.analyse.report.text import NOTHING, code, number, scientific

_HEADING = "Numbers by layer"
_NOTABLE_DROP_DB = 20.0
"""A layer that loses more SNR than this against the one before it is named: rounding alone takes less."""
_COLUMNS = (
    Column("Layer", "", True),
    Column("Module"),
    Column("Operator"),
    Column("SME2 off", "dB", True, "SNR against eager PyTorch in the same precision, as is SME2 on"),
    Column("SME2 on", "dB", True),
    Column("Max abs error off", "", True),
    Column("Max abs error on", "", True),
    Column("Not finite", "elements", True, "elements that are finite in only one of device and eager PyTorch"),
    Column("On against off", "", True, "equal bits, or the largest difference of up to 64 evenly spaced elements"),
)


@dataclass(frozen=True)
class LayerRow(PairRow):
    """A layer with SME2 beside without it; what was not measured is None."""

    query = "layers"
    layer: int
    module: str | None
    operator: str
    elements: int
    max_abs_error_on: float | None
    max_abs_error_off: float | None
    snr_on_db: float | None
    snr_off_db: float | None
    drop_on_db: float | None
    drop_off_db: float | None
    nonfinite_mismatches: int
    is_equal: bool | None
    sampled_difference: float | None

    @property
    def drop_db(self) -> float:
        """The larger loss of SNR against the layer before."""
        return max(self.drop_on_db or 0.0, self.drop_off_db or 0.0)

    @property
    def is_notable(self) -> bool:
        """Whether a fault shows here: elements that are not finite, or much SNR lost."""
        return self.nonfinite_mismatches > 0 or self.drop_db > _NOTABLE_DROP_DB


def layers(answers: Answers) -> Section:
    """A fold for each model, device, precision and thread count that was measured in mode numerics."""
    rows = answers.rows(LayerRow)
    if not rows:
        return Section("layers", _HEADING, [Paragraph("No session in mode numerics; add it to the sweep's modes.")])
    by_pair: defaultdict[str, list[LayerRow]] = defaultdict(list)
    for row in rows:
        by_pair[cell_of(row)].append(row)
    names = CellNames([found[0] for found in by_pair.values()])
    blocks: list[Block] = [
        Paragraph(
            "The values that each layer returns on the device, compared with eager PyTorch in the same precision on "
            "the same inputs. They come from another program than the measured one, which returns them besides its "
            "outputs. Errors add up along the model; a fault shows where the SNR drops at once."
        )
    ]
    for found in by_pair.values():
        title = (Code(found[0].model), f" \u00b7 {names.label(found[0])} \u2014 {_finding(found)}")
        blocks.append(Fold(title, [Table(_COLUMNS, [_cells(row) for row in found])], is_open=len(blocks) == 1))
    return Section("layers", _HEADING, blocks, list(_summary(by_pair.values())))


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


def _cells(row: LayerRow) -> list[Cell]:
    return [
        number(row.layer, 0),
        code(row.module),
        code(row.operator),
        _snr(row.snr_off_db, row.max_abs_error_off, row.drop_off_db),
        _snr(row.snr_on_db, row.max_abs_error_on, row.drop_on_db),
        scientific(row.max_abs_error_off),
        scientific(row.max_abs_error_on),
        number(row.nonfinite_mismatches, 0, tone="bad" if row.nonfinite_mismatches else ""),
        NOTHING if row.is_equal is None else Cell("equal") if row.is_equal else scientific(row.sampled_difference),
    ]


def _snr(snr_db: float | None, max_abs_error: float | None, drop_db: float | None) -> Cell:
    if max_abs_error == 0:
        return Cell("equal")
    return number(snr_db, 1, tone="bad" if (drop_db or 0) > _NOTABLE_DROP_DB else "")
