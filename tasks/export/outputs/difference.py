"""Compare two tensors in blocks, so that memory does not depend on their size."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.bundle.elements import is_floating, read_elements

BLOCK_ELEMENTS = 1 << 16
_MAX_CHOICE_DIMENSIONS = 3
_MAX_CHOICES = 1 << 18  # more than the tokens of a language model; a row must fit into memory
_Values = NDArray[np.float64]


@dataclass(frozen=True)
class TensorFile:
    """A tensor in a file: its elements in the order of their indices, without a header."""

    path: Path
    dtype: str
    shape: tuple[int, ...]

    def read(self) -> NDArray[Any]:
        """Return all elements at once; for small tensors."""
        with self.path.open("rb") as stream:
            return read_elements(stream, self.dtype).reshape(self.shape)


@dataclass(frozen=True)
class Difference:
    """The differences between a tensor and its reference; None where a figure has no meaning.

    Elements count in errors, SNR and cosine if they are finite on both sides.
    """

    elements: int
    lost: int
    """Elements that are finite in the reference alone."""
    nonfinite_mismatches: int
    """Elements that are finite on one side only, or infinite with different signs."""
    max_abs_error: float | None
    """None without a pair of finite elements."""
    max_rel_error: float | None
    """Relative to the reference, without the elements where that is 0."""
    snr_db: float | None
    """10 log10(sum of squares of the reference / sum of squares of the difference).

    None if the tensors are equal, which would be infinite, and if the reference is 0 everywhere.
    """
    cosine: float | None
    """Cosine similarity of both, -1 to 1; None if one is 0 everywhere."""
    top1_agreement: float | None
    """Share of rows that choose the same class, 0 to 1: see `has_choices`. Of integers, the share of equal elements."""

    @property
    def is_equal(self) -> bool:
        """Whether no element differs; False without a pair of finite elements."""
        return self.max_abs_error == 0 and self.nonfinite_mismatches == 0


def has_choices(dtype: str, shape: tuple[int, ...]) -> bool:
    """Return whether the last dimension may be a choice: of floating-point tensors such as [batch, tokens, classes].

    Tensors of 4 dimensions or more are images or feature maps, whose last dimension is a width, and no model chooses
    among more than a quarter of a million. Whether a last dimension has classes or features is unknown, so the share
    decides only where a sweep file states a limit for it.
    """
    return is_floating(dtype) and 1 <= len(shape) <= _MAX_CHOICE_DIMENSIONS and 2 <= shape[-1] <= _MAX_CHOICES


def compare_tensors(got: TensorFile, want: TensorFile) -> Difference:
    """Compare a tensor with its reference, which has as many elements; their types may differ."""
    row_elements = want.shape[-1] if has_choices(want.dtype, want.shape) else 1  # whole rows, where a row is a choice
    elements = max(BLOCK_ELEMENTS // row_elements, 1) * row_elements
    return _compare(_blocks(got, elements), _blocks(want, elements), want.dtype, want.shape)


def compare_values(got: NDArray[Any], want: NDArray[Any]) -> Difference:
    """Compare an array with its reference, as `compare_tensors` does."""
    one, other = (each.reshape(-1).astype(np.float64) for each in (got, want))
    return _compare([one] if len(one) else [], [other] if len(other) else [], str(want.dtype), want.shape)


def _compare(got: Iterable[_Values], want: Iterable[_Values], dtype: str, shape: tuple[int, ...]) -> Difference:
    """Compare the blocks of a tensor with those of its reference, which has this type and shape."""
    sums, rows, agreeing = _Sums(), 0, 0
    has_rows = has_choices(dtype, shape)
    for one, other in zip(got, want, strict=True):
        sums.add(one, other)
        if has_rows:
            agrees = _same_choice(one.reshape(-1, shape[-1]), other.reshape(-1, shape[-1]))
            rows += len(agrees)
            agreeing += int(agrees.sum())
    if not has_rows and not is_floating(dtype):
        agreeing, rows = sums.equal, sums.elements
    return sums.difference(agreeing / rows if rows else None)


def first_difference(
    got: NDArray[Any], want: NDArray[Any], choices: Sequence[NDArray[Any]]
) -> tuple[int | None, float | None]:
    """Return the position, from 0, of the first token in which two texts differ, and the margin there.

    The margin is the distance of the scores of both tokens, relative to the RMS of all scores there. `choices` are the
    likeliest tokens of `want` at each position, and the distance of each from the first. Position and margin are None
    if no token differs, the margin also without `choices` or if either token is not among them.
    """
    positions = np.flatnonzero(got.reshape(-1) != want.reshape(-1))
    if not len(positions):
        return None, None
    position = int(positions[0])
    scores = dict(zip(*(each[position].tolist() for each in choices), strict=True)) if choices else {}
    one, other = (scores.get(int(text.reshape(-1)[position]), math.nan) for text in (got, want))
    return position, abs(one - other) if math.isfinite(one - other) else None


def _blocks(tensor: TensorFile, elements: int) -> Iterator[_Values]:
    with tensor.path.open("rb") as stream:
        while len(block := read_elements(stream, tensor.dtype, elements)):
            yield block.astype(np.float64)


class _Sums:
    """The errors of the blocks so far, and the sums that the other figures are made of.

    The sums of squares are those of the reference (`signal`), of the errors (`noise`) and of the tensor (`got_signal`).
    """

    def __init__(self) -> None:
        self.elements = self.mismatches = self.lost = self.equal = 0
        self.absolute: float | None = None
        self.relative: float | None = None
        self.signal = self.noise = self.got_signal = self.product = 0.0

    def add(self, got: _Values, want: _Values) -> None:
        self.elements += len(got)
        self.equal += int((got == want).sum())
        got_finite, want_finite = np.isfinite(got), np.isfinite(want)
        both_finite = got_finite & want_finite
        if not both_finite.all():
            same = both_finite | (np.isnan(got) & np.isnan(want)) | (got == want)
            self.mismatches += int((~same).sum())
            self.lost += int((want_finite & ~got_finite).sum())
            got, want = got[both_finite], want[both_finite]
        error, scale = np.abs(got - want), np.abs(want)
        self.absolute = _running_max(self.absolute, error)
        nonzero = scale > 0
        self.relative = _running_max(self.relative, error[nonzero] / scale[nonzero])
        with np.errstate(over="ignore"):  # squares of large float64 values: the figure is then None
            self.signal += _dot(want, want)
            self.noise += _dot(error, error)
            self.got_signal += _dot(got, got)
            self.product += _dot(got, want)

    def difference(self, agreement: float | None) -> Difference:
        snr_db = 10 * (math.log10(self.signal) - math.log10(self.noise)) if self.signal > 0 and self.noise > 0 else None
        # A float64 sum of squares can be 0 or infinite where the values are not; such figures are left out.
        lengths = math.sqrt(self.signal) * math.sqrt(self.got_signal)
        cosine = self.product / lengths if lengths > 0 else None
        return Difference(
            elements=self.elements,
            lost=self.lost,
            nonfinite_mismatches=self.mismatches,
            max_abs_error=self.absolute,
            max_rel_error=self.relative,
            snr_db=snr_db if snr_db is not None and math.isfinite(snr_db) else None,
            cosine=max(-1.0, min(1.0, cosine)) if cosine is not None and math.isfinite(cosine) else None,
            top1_agreement=agreement,
        )


def _same_choice(got: _Values, want: _Values) -> NDArray[np.bool_]:
    """Return whether both sides choose the same, any of equal largest elements, for each row in which `want` chooses.

    NaN counts as smallest. A row of NaN alone chooses nothing, and so does one of equal elements beside one of others.
    """
    got, want = (np.where(np.isnan(values), -np.inf, values) for values in (got, want))
    rows, of_got, of_want = np.arange(len(got)), got.argmax(axis=1), want.argmax(axis=1)
    agrees: NDArray[np.bool_] = (want[rows, of_got] == want[rows, of_want]) | (got[rows, of_want] == got[rows, of_got])
    agrees &= got[rows, of_got] > -np.inf
    agrees &= (np.ptp(got, axis=1) != 0) | (np.ptp(want, axis=1) == 0)
    in_choosing_rows: NDArray[np.bool_] = agrees[want[rows, of_want] > -np.inf]
    return in_choosing_rows


def _dot(one: _Values, other: _Values) -> float:
    """Return the sum of the products; `@` would start a thread per core, which spin for each of many devices."""
    return float(np.einsum("i,i->", one, other))


def _running_max(before: float | None, values: _Values) -> float | None:
    if not values.size:
        return before
    return max(float(values.max()), 0.0 if before is None else before)
