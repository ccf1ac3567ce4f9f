"""How far a runner's outputs are from eager PyTorch's."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from devices.errors import FarmError
from tasks.bundle import Accuracy


class OutputMismatchError(FarmError):
    """An output is missing or of another size than the reference; the text is one sentence."""


def compare_outputs(references: Sequence[dict[str, Any]], export_folder: Path, collected: Path) -> list[Accuracy]:
    """Compare `output-N.bin` in `collected` with the eager reference of each output in `export_folder`.

    `references` are export.json's outputs (file, dtype, shape). The absolute error of an element is |got - want|, the
    relative one |got - want| / |want| where want is not 0; each output's largest is returned. Elements of which only
    one side is finite (or both are, but infinite with other signs) are counted, not measured.
    Raises OutputMismatchError where an output is missing or has another size.
    """
    return [_compare_one(number, entry, export_folder, collected) for number, entry in enumerate(references)]


def _compare_one(number: int, entry: dict[str, Any], export_folder: Path, collected: Path) -> Accuracy:
    want = np.fromfile(export_folder / entry["file"], dtype=entry["dtype"])
    path = collected / f"output-{number}.bin"
    if not path.is_file():
        raise OutputMismatchError(f"the runner wrote no output {number}; eager has one of shape {entry['shape']}")
    if path.stat().st_size != want.nbytes:
        raise OutputMismatchError(
            f"output {number} has {path.stat().st_size} bytes where eager has {want.nbytes} (shape {entry['shape']})"
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
