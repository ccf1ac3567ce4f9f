"""The report's section on layers: where the numbers inside a model part from eager PyTorch."""

from collections.abc import Iterable, Iterator

from tasks.pages.report.page import Block, Fold, Paragraph, Section
from tasks.results.accuracy import LayerRow
from tasks.results.cells import CellNames, by_cell
from tasks.results.reader import Answers
from tasks.results.table import table_of
from tasks.results.text import Code, Text

_HEADING = "Numbers by layer"


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
