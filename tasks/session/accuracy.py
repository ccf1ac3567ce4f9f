"""The errors of a runner's outputs against eager PyTorch."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.errors import FarmError
from tasks.bundle import Accuracy

# Outputs are compared in blocks: memory does not depend on their size.
_BLOCK_ELEMENTS = 1 << 18


class OutputMismatchError(FarmError):
    """An output is missing, has another size than the reference or is not finite; the text is one sentence."""


def compare_outputs(references: Sequence[dict[str, Any]], export_folder: Path, collected: Path) -> list[Accuracy]:
    """Compare `output-N.bin` in `collected` with the eager reference of each output in `export_folder`.

    `references` are export.json's outputs (file, dtype, shape). The absolute error of an element is |got - want|, the
    relative error |got - want| / |want| if want is not 0; the largest of each output is returned. An element that is
    finite on one side only, or infinite with different signs, is counted as a mismatch.
    Raises OutputMismatchError if an output is missing, has another size, or is NaN or infinite where the reference is
    finite.
    """
    return [_compare_one(number, entry, export_folder, collected) for number, entry in enumerate(references)]


def _compare_one(number: int, entry: dict[str, Any], export_folder: Path, collected: Path) -> Accuracy:
    reference, path = export_folder / entry["file"], collected / f"output-{number}.bin"
    if not path.is_file():
        raise OutputMismatchError(f"output {number} is missing; eager PyTorch returns one of shape {entry['shape']}")
    size_bytes, wanted_bytes = path.stat().st_size, reference.stat().st_size
    if size_bytes != wanted_bytes:
        raise OutputMismatchError(
            f"output {number} has {size_bytes} bytes; eager PyTorch returns {wanted_bytes} (shape {entry['shape']})"
        )
    largest = _Largest()
    for got, want in zip(_blocks(path, entry["dtype"]), _blocks(reference, entry["dtype"]), strict=True):
        largest.add(got, want)
    if largest.lost:
        raise OutputMismatchError(
            f"output {number} is NaN or infinite in {largest.lost} of {largest.elements} elements where eager PyTorch "
            f"is finite; check the precision of the export and the runner"
        )
    return Accuracy(
        output=number,
        max_abs_error=largest.absolute,
        max_rel_error=largest.relative,
        nonfinite_mismatches=largest.mismatches,
    )


def _blocks(path: Path, dtype: str) -> Iterator[NDArray[np.float64]]:
    with path.open("rb") as stream:
        while len(block := np.fromfile(stream, dtype=dtype, count=_BLOCK_ELEMENTS)):
            yield block.astype(np.float64)


class _Largest:
    """The largest errors of the blocks so far, and how many elements are not finite on both sides."""

    def __init__(self) -> None:
        self.elements = 0
        self.absolute: float | None = None
        self.relative: float | None = None
        self.mismatches = 0
        self.lost = 0
        """Elements that are finite in the reference alone."""

    def add(self, got: NDArray[np.float64], want: NDArray[np.float64]) -> None:
        """Add a block of elements."""
        got_finite, want_finite = np.isfinite(got), np.isfinite(want)
        both_finite = got_finite & want_finite
        same = both_finite | (np.isnan(got) & np.isnan(want)) | (got == want)
        difference = np.abs(got[both_finite] - want[both_finite])
        scale = np.abs(want[both_finite])
        self.elements += len(got)
        self.mismatches += int((~same).sum())
        self.lost += int((want_finite & ~got_finite).sum())
        self.absolute = _larger(self.absolute, difference)
        self.relative = _larger(self.relative, difference[scale > 0] / scale[scale > 0])


def _larger(before: float | None, values: NDArray[np.float64]) -> float | None:
    if not values.size:
        return before
    return max(float(values.max()), 0.0 if before is None else before)
