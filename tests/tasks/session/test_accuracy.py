"""Outputs beside eager: errors are measured where they can be, counted where not, and missing outputs are reported."""

import os
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tasks.session.accuracy import OutputMismatchError, compare_outputs

INF, NAN = float("inf"), float("nan")


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
    (found,) = compare_outputs(*case(tmp_path, [INF, NAN, NAN, INF, 1.0], [INF, NAN, 1.0, -INF, 1.0]))
    assert found.max_abs_error == 0.0
    assert found.nonfinite_mismatches == 2


@pytest.mark.fault(stage="check", done="an output is {value} where eager is finite", holds="it is a wrong output")
@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_an_output_that_is_not_finite_where_eager_is_finite_is_wrong(tmp_path: Path, value: float) -> None:
    with pytest.raises(OutputMismatchError, match="output 0 is NaN or infinite in 1 of 3 elements where eager"):
        compare_outputs(*case(tmp_path, [1.0, NAN, 2.0], [1.0, NAN, value]))


def test_the_largest_error_is_found_in_every_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.session.accuracy._BLOCK_ELEMENTS", 2)
    (found,) = compare_outputs(*case(tmp_path, [1.0, 1.0, 1.0, 4.0, 1.0], [1.0, 1.5, 1.0, 8.0, 1.25]))
    assert (found.max_abs_error, found.max_rel_error) == (4.0, 1.0)


@pytest.mark.fault(stage="check", done="an output has 64 MB", holds="comparing it needs less memory than its size")
def test_memory_does_not_depend_on_the_size_of_an_output(tmp_path: Path) -> None:
    # given an output and its reference, as sparse files of 16 million elements
    references, export, collected = case(tmp_path, [0.0], [0.0])
    for folder in (export, collected):
        os.truncate(folder / "output-0.bin", 64 << 20)
    tracemalloc.start()
    try:
        compare_outputs(references, export, collected)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 16 << 20


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
