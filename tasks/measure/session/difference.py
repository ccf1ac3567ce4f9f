"""How far the values of one tensor are from those of another, in blocks: memory does not depend on the size."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

BLOCK_ELEMENTS = 1 << 16
_MOST_CHOICE_DIMENSIONS = 3
_Values = NDArray[np.float64]


@dataclass(frozen=True)
class TensorFile:
    """A tensor in a file: its elements in the order of their indices, without a header."""

    path: Path
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Difference:
    """What tells a tensor from its reference; None where a figure has no meaning.

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
    """Cosine of the angle between both, -1 to 1; None if one is 0 everywhere."""
    top1_agreement: float | None
    """Share of rows that choose the same class, 0 to 1: see `has_choices`. Of integers, the share of equal elements."""

    @property
    def is_equal(self) -> bool:
        """Whether no element differs."""
        return self.max_abs_error == 0 and self.nonfinite_mismatches == 0


def has_choices(dtype: str, shape: tuple[int, ...]) -> bool:
    """Return whether the last dimension may be a choice: of floating-point tensors such as [batch, tokens, classes].

    Tensors of 4 dimensions or more are images or feature maps, whose last dimension is a width. That a last dimension
    is one of classes and not of features cannot be known, so this share is shown and never decides.
    """
    is_floating = np.issubdtype(np.dtype(dtype), np.floating)
    return bool(is_floating) and 1 <= len(shape) <= _MOST_CHOICE_DIMENSIONS and shape[-1] >= 2


def difference_of(got: TensorFile, want: TensorFile) -> Difference:
    """Compare a tensor with its reference, which has as many elements; their types may differ."""
    sums = _Sums()
    choices = _Choices() if has_choices(want.dtype, want.shape) else None
    row_elements = want.shape[-1] if choices else 1
    count = max(BLOCK_ELEMENTS // row_elements, 1) * row_elements if row_elements <= BLOCK_ELEMENTS else BLOCK_ELEMENTS
    for one, other in zip(_blocks(got, count), _blocks(want, count), strict=True):
        sums.add(one, other)
        if choices:
            choices.add(one, other, row_elements)
    is_integer = np.dtype(want.dtype).kind in "iub"
    agreement = choices.agreement() if choices else sums.equal_share() if is_integer else None
    return sums.difference(agreement)


def _blocks(tensor: TensorFile, elements: int) -> Iterator[_Values]:
    with tensor.path.open("rb") as stream:
        while len(block := np.fromfile(stream, dtype=tensor.dtype, count=elements)):
            yield block.astype(np.float64)


class _Sums:
    """The errors of the blocks so far, and the sums that the other figures are made of."""

    def __init__(self) -> None:
        self.elements = self.mismatches = self.lost = self.equal = 0
        self.absolute: float | None = None
        self.relative: float | None = None
        self.signal = self.noise = self.other_signal = self.product = 0.0

    def add(self, got: _Values, want: _Values) -> None:
        """Add a block of elements."""
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
        self.absolute = _larger(self.absolute, error)
        nonzero = scale > 0
        self.relative = _larger(self.relative, error[nonzero] / scale[nonzero])
        with np.errstate(over="ignore"):  # squares of large float64 values: the figure is then None
            self.signal += _product(want, want)
            self.noise += _product(error, error)
            self.other_signal += _product(got, got)
            self.product += _product(got, want)

    def equal_share(self) -> float | None:
        """Return the share of equal elements."""
        return self.equal / self.elements if self.elements else None

    def difference(self, agreement: float | None) -> Difference:
        """Return the figures of all blocks."""
        snr_db = 10 * (_log10(self.signal) - _log10(self.noise)) if self.signal > 0 and self.noise > 0 else None
        # A float64 sum of squares can be 0 or infinite where the values are not; such figures are left out.
        lengths = math.sqrt(self.signal) * math.sqrt(self.other_signal)
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


class _Choices:
    """How many rows choose alike. A row longer than a block goes through in parts."""

    def __init__(self) -> None:
        self.rows = self.agreeing = 0
        self._part = _Row()

    def add(self, got: _Values, want: _Values, row_elements: int) -> None:
        """Add a block: of complete rows, or of a part of rows that are longer than a block."""
        got, want = (np.where(np.isnan(values), -np.inf, values) for values in (got, want))
        if len(got) % row_elements == 0 and self._part.elements == 0:
            got, want = got.reshape(-1, row_elements), want.reshape(-1, row_elements)
            rows, of_got, of_want = np.arange(len(got)), got.argmax(axis=1), want.argmax(axis=1)
            # Among equal largest elements, any is the right choice.
            agrees = (want[rows, of_got] == want[rows, of_want]) | (got[rows, of_want] == got[rows, of_got])
            self.rows += len(got)
            self.agreeing += int(agrees.sum())
            return
        while len(got):
            taken = min(row_elements - self._part.elements, len(got))
            self._part.add(got[:taken], want[:taken])
            got, want = got[taken:], want[taken:]
            if self._part.elements == row_elements:
                self.rows += 1
                self.agreeing += self._part.agrees()
                self._part = _Row()

    def agreement(self) -> float | None:
        """Return the share of rows that agree; None if there are none."""
        return self.agreeing / self.rows if self.rows else None


class _Row:
    """The largest elements of the part of a row so far, each with what the other side has in its place."""

    def __init__(self) -> None:
        self.elements = 0
        self._got: tuple[float, float] | None = None
        self._want: tuple[float, float] | None = None

    def add(self, got: _Values, want: _Values) -> None:
        self.elements += len(got)
        of_got, of_want = int(got.argmax()), int(want.argmax())
        if self._got is None or got[of_got] > self._got[0]:
            self._got = float(got[of_got]), float(want[of_got])
        if self._want is None or want[of_want] > self._want[0]:
            self._want = float(want[of_want]), float(got[of_want])

    def agrees(self) -> bool:
        if self._got is None or self._want is None:
            return True  # without elements
        return self._got[1] == self._want[0] or self._want[1] == self._got[0]


def _product(one: _Values, other: _Values) -> float:
    """Return the sum of the products; `@` would start a thread per core, which spin for each of many devices."""
    return float(np.einsum("i,i->", one, other))


def _log10(value: float) -> float:
    return math.log10(value) if math.isfinite(value) else math.inf


def _larger(before: float | None, values: _Values) -> float | None:
    if not values.size:
        return before
    return max(float(values.max()), 0.0 if before is None else before)
