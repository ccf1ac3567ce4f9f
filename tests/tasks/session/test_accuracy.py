"""Outputs beside eager: errors are measured where they can be, counted where not, and missing outputs are reported."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tasks.session.accuracy import OutputMismatchError, compare_outputs


def case(folder: Path, want: Any, got: Any, dtype: str = "float32") -> tuple[list[dict[str, Any]], Path, Path]:
    export, collected = folder / "export", folder / "collected"
    export.mkdir()
    collected.mkdir()
    np.asarray(want, dtype=dtype).tofile(export / "output-0.bin")
    np.asarray(got, dtype=dtype).tofile(collected / "output-0.bin")
    return [{"file": "output-0.bin", "dtype": dtype, "shape": list(np.shape(want))}], export, collected


def test_the_largest_absolute_and_relative_errors_are_found(tmp_path: Path) -> None:
    (found,) = compare_outputs(*case(tmp_path, [100.0, 0.5, 0.0], [101.0, 0.75, 0.25]))
    assert found.max_abs_error == 1.0
    assert found.max_rel_error == 0.5
    assert found.nonfinite_mismatches == 0


def test_infinities_and_nans_are_matched_or_counted_never_averaged_in(tmp_path: Path) -> None:
    inf, nan = float("inf"), float("nan")
    (found,) = compare_outputs(*case(tmp_path, [inf, nan, 1.0, inf, 1.0], [inf, nan, nan, -inf, 1.0]))
    assert found.max_abs_error == 0.0
    assert found.nonfinite_mismatches == 2


def test_integers_compare_without_wrapping_around(tmp_path: Path) -> None:
    (found,) = compare_outputs(*case(tmp_path, [0, 255], [255, 0], "uint8"))
    assert found.max_abs_error == 255.0


def test_an_output_without_any_finite_pair_has_no_error(tmp_path: Path) -> None:
    (found,) = compare_outputs(*case(tmp_path, [float("nan")], [1.0]))
    assert found.max_abs_error is None
    assert found.nonfinite_mismatches == 1


def test_a_missing_or_short_output_is_reported(tmp_path: Path) -> None:
    references, export, collected = case(tmp_path, [1.0, 2.0], [1.0])
    with pytest.raises(OutputMismatchError, match="output 0 has 4 bytes; eager PyTorch returns 8"):
        compare_outputs(references, export, collected)
    (collected / "output-0.bin").unlink()
    with pytest.raises(OutputMismatchError, match="output 0 is missing"):
        compare_outputs(references, export, collected)
