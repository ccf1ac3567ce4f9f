"""The errors of a runner's outputs against eager PyTorch."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from devices.errors import FarmError
from tasks.bundle import Accuracy


class OutputMismatchError(FarmError):
    """An output is missing or its size differs from the reference; the text is one sentence."""


def compare_outputs(references: Sequence[dict[str, Any]], export_folder: Path, collected: Path) -> list[Accuracy]:
    """Compare `output-N.bin` in `collected` with the eager reference of each output in `export_folder`.

    `references` are export.json's outputs (file, dtype, shape). The absolute error of an element is |got - want|, the
    relative error |got - want| / |want| if want is not 0; the largest of each output is returned. An element that is
    finite on one side only, or infinite with different signs, is counted as a mismatch.
    Raises OutputMismatchError if an output is missing or has another size.
    """
    return [_compare_one(number, entry, export_folder, collected) for number, entry in enumerate(references)]


def _compare_one(number: int, entry: dict[str, Any], export_folder: Path, collected: Path) -> Accuracy:
    want = np.fromfile(export_folder / entry["file"], dtype=entry["dtype"])
    path = collected / f"output-{number}.bin"
    if not path.is_file():
        raise OutputMismatchError(f"output {number} is missing; eager PyTorch returns one of shape {entry['shape']}")
    if path.stat().st_size != want.nbytes:
        size_bytes = path.stat().st_size
        raise OutputMismatchError(
            f"output {number} has {size_bytes} bytes; eager PyTorch returns {want.nbytes} (shape {entry['shape']})"
        )
    got = np.fromfile(path, dtype=entry["dtype"]).astype(np.float64)
    want = want.astype(np.float64)
    both_finite = np.isfinite(got) & np.isfinite(want)
    same = both_finite | (np.isnan(got) & np.isnan(want)) | (got == want)
    difference = np.abs(got[both_finite] - want[both_finite])
    scale = np.abs(want[both_finite])
    relative = difference[scale > 0] / scale[scale > 0]
    return Accuracy(
        output=number,
        max_abs_error=float(difference.max()) if difference.size else None,
        max_rel_error=float(relative.max()) if relative.size else None,
        nonfinite_mismatches=int((~same).sum()),
    )
