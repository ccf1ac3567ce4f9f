"""Outputs and layers compared with eager PyTorch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from tasks.bundle.accuracy import samples_sentence
from tasks.export.accuracy_limits import recipe_limits
from tasks.results.cells import CellRow, PairRow, device_and_conditions
from tasks.results.table import NOTHING, Cell, Name, Number, Percent, Scientific, Words, bad_unless_zero, toned
from tasks.results.text import Code, Text, codes, joined, separated

_MAX_NAMED = 3
_RESULTS = {True: Cell("inaccurate", tone="bad"), False: Cell("accurate"), None: Cell("not judged", tone="quiet")}
_REFERENCES = {"eager": "same precision", "host": "same program", "samples": "worst sample"}
"""By the values of reference in the view session_accuracy; the other is a precision."""
_NOTABLE_DROP_DB = 20.0
"""A larger loss of SNR that no later layer regains counts as a fault: rounding alone takes less."""


@dataclass(frozen=True)
class AccuracyRow(CellRow):
    """The worst figures of an output against a reference, of the sessions of a content in all modes but numerics."""

    query = "accuracy"
    output: Annotated[int, Number("Output")]
    reference: Annotated[
        str,
        Words(
            "Compared with",
            meaning="the same program on the machine that exported it, or eager PyTorch in the same precision or fp32; "
            "the worst sample there, with the top-1 of all",
        ),
    ]
    snr_db: Annotated[
        float | None,
        Number("SNR", "dB", "10 log10(sum of squares of eager's output / sum of squares of the difference)", digits=1),
    ]
    """None also if all outputs equal the reference."""
    min_snr_db: Annotated[
        float | None, Number("Limit", "dB", "below it, a broken export is likelier than the cost of the recipe")
    ]
    cosine: Annotated[float | None, Number("Cosine", "", "cosine of the angle between both", digits=6)]
    top1_agreement: Annotated[
        float | None,
        Percent("Top-1", "rows that choose the same class; means something where the last dimension is classes"),
    ]
    first_difference: Annotated[
        int | None, Number("First other token", "", "number, from 0, of the first written token that differs")
    ]
    margin: Annotated[
        float | None,
        Scientific("Margin", "", "distance of its score from the other token's, relative to the RMS of all scores"),
    ]
    max_abs_error: Annotated[
        float | None, Scientific("Max abs error", "", "largest absolute difference of an element from eager PyTorch")
    ]
    max_rel_error: Annotated[
        float | None,
        Scientific(
            "Max rel error", "", "largest difference relative to eager's value, without elements where that is 0"
        ),
    ]
    nonfinite_mismatches: Annotated[
        int | None,
        Number("Not finite", "elements", "elements that are finite in only one of the two", tone=bad_unless_zero),
    ]
    sessions: Annotated[int, Number("Sessions")]
    is_inaccurate: Annotated[bool | None, Words("Result")]
    samples: int | None = None
    """This and what follows is that of the user's samples; None for other references."""
    below: int | None = None
    worst: str | None = None
    median_snr_db: float | None = None
    score: float | None = None
    reference_score: float | None = None
    min_score: float | None = None
    min_top1: float | None = None
    calibrating: int | None = None
    machine: str | None = None

    def reference_cell(self, _cell: Cell) -> Cell:
        return Cell(_REFERENCES.get(self.reference, self.reference))

    def snr_db_cell(self, cell: Cell) -> Cell:
        """Return `equal` where the outputs are the same: their SNR is infinite; bad if the output is inaccurate."""
        if self.max_abs_error == 0 and not self.nonfinite_mismatches:
            return Cell("equal")
        return toned(cell, "bad") if self.is_inaccurate else cell

    def is_inaccurate_cell(self, _cell: Cell) -> Cell:
        return _RESULTS[self.is_inaccurate]


@dataclass(frozen=True)
class NotComparedRow(CellRow):
    """A content whose outputs were not compared in any mode but numerics; `cell` is the id of the content."""

    query = "not_compared"
    sessions: Annotated[int, Number("Sessions")]


def accuracy_in_words(rows: Sequence[AccuracyRow]) -> Iterator[Text]:
    """Yield the inaccurate cells, the largest error against eager PyTorch, and models with NaN on one side only."""
    inaccurate = {row.cell: row for row in rows if row.is_inaccurate}
    if inaccurate:
        named = [(Code(row.model), f" {row.precision} {device_and_conditions(row)}") for row in inaccurate.values()]
        yield joined("Inaccurate outputs: ", separated(named, most=_MAX_NAMED), ".")
    by_sentence = {samples_sentence(vars(row)): row for row in rows if row.samples}
    for sentence, row in by_sentence.items():
        yield (Code(row.model), f" {row.precision}: {sentence}.")
    of_eager = [row for row in rows if row.reference not in ("host", "samples")]
    errors = [(row.max_abs_error, row) for row in of_eager if row.max_abs_error is not None]
    if errors:
        error, worst = max(errors, key=lambda entry: entry[0])
        yield (
            f"Largest absolute output error against eager PyTorch: {error:.1e} (",
            Code(worst.model),
            f" {worst.precision} on {worst.device}).",
        )
    if mismatched := sorted({row.model for row in rows if row.nonfinite_mismatches}):
        yield joined("Outputs that are finite in only one of runner and eager PyTorch: ", codes(mismatched), ".")


@dataclass(frozen=True)
class LayerRow(PairRow):
    """A layer with SME2 off and on, in mode numerics; figures of a side that was not measured are None, counts 0."""

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
        int, Number("Lost", "elements", "NaN or infinite, and finite in the fp32 model", tone=bad_unless_zero)
    ]
    max_abs_error_off: Annotated[float | None, Scientific("Max abs error off")]
    max_abs_error_on: Annotated[float | None, Scientific("Max abs error on")]
    drop_on_db: float | None
    """SNR of the layer before minus the best SNR from this layer on: what is lost and not regained later."""
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
    """Whether all bits are equal with SME2 on and off."""
    sampled_difference: Annotated[
        float | None,
        Scientific("On against off", "", "equal bits, or the largest difference of up to 64 evenly spaced elements"),
    ]

    @property
    def is_notable(self) -> bool:
        """Whether the layer has a fault: new NaN or infinite elements, or SNR lost to below the limit of the recipe."""
        sides = ((self.snr_on_db, self.drop_on_db), (self.snr_off_db, self.drop_off_db))
        return self.nonfinite_mismatches + self.lost_fp32 > 0 or any(self._loses(*side) for side in sides)

    def _loses(self, snr_db: float | None, drop_db: float | None) -> bool:
        """Return whether the SNR of a side is below the limit of the recipe, and the layer lost over 20 dB for good."""
        limit_db = recipe_limits(self.precision, None).eager_db
        return snr_db is not None and snr_db < limit_db and (drop_db or 0.0) > _NOTABLE_DROP_DB

    def snr_off_db_cell(self, cell: Cell) -> Cell:
        return _snr(cell, self.max_abs_error_off, is_bad=self._loses(self.snr_off_db, self.drop_off_db))

    def snr_on_db_cell(self, cell: Cell) -> Cell:
        return _snr(cell, self.max_abs_error_on, is_bad=self._loses(self.snr_on_db, self.drop_on_db))

    def sampled_difference_cell(self, cell: Cell) -> Cell:
        if self.is_equal is None:
            return NOTHING
        return Cell("equal") if self.is_equal else cell


def _snr(cell: Cell, max_abs_error: float | None, *, is_bad: bool) -> Cell:
    """Return the cell of an SNR: `equal` where the outputs are the same, whose SNR is infinite."""
    if max_abs_error == 0:
        return Cell("equal")
    return toned(cell, "bad") if is_bad else cell
