"""Outputs beside eager: errors are measured where they can be, counted where not, and missing outputs are reported."""

import os
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tasks.export.accuracy_limits import AccuracyLimits, recipe_limits
from tasks.export.entry import AccuracyRequirement
from tasks.measure.session.accuracy import (
    ZERO_LIMIT,
    OutputMismatchError,
    References,
    compare_outputs,
)
from tasks.measure.session.difference import TensorFile, compare_tensors, has_choices

INF, NAN = float("inf"), float("nan")
LIMITS = AccuracyLimits(eager_db=30, fp32_db=20, host_db=40)


def case(
    folder: Path, want: Any, got: Any, dtype: str = "float32", *, fp32: Any = None, fp32_dtype: str = "float32"
) -> tuple[References, Path]:
    """Write an output, its eager reference and, if given, its fp32 reference; return what `compare_outputs` takes."""
    export, collected = folder / "export", folder / "collected"
    export.mkdir()
    collected.mkdir()
    np.asarray(got, dtype=dtype).tofile(collected / "output-0.bin")
    eager = [entry(export, "output-0.bin", want, dtype)]
    return References(export, eager, [entry(export, "fp32-0.bin", fp32, fp32_dtype)] if fp32 else [], LIMITS), collected


def entry(folder: Path, name: str, values: Any, dtype: str) -> dict[str, Any]:
    np.asarray(values, dtype=dtype).tofile(folder / name)
    return {"file": name, "dtype": dtype, "shape": list(np.shape(values))}


@pytest.mark.parametrize(
    ("want", "got", "dtype", "absolute", "relative", "mismatches"),
    [
        ([100.0, 0.5, 0.0], [101.0, 0.75, 0.25], "float32", 1.0, 0.5, 0),
        ([INF, NAN, NAN, INF, 1.0], [INF, NAN, 1.0, -INF, 1.0], "float32", 0.0, 0.0, 2),
        ([NAN], [1.0], "float32", None, None, 1),
        ([0, 255], [255, 0], "uint8", 255.0, 1.0, 0),
        ([True, False], [True, True], "bool", 1.0, 0.0, 0),
    ],
    ids=["largest errors", "infinities and NaNs", "no finite pair", "integers do not wrap around", "booleans"],
)
def test_errors_are_measured_where_both_are_finite_and_counted_where_one_is_not(
    tmp_path: Path,
    want: list[float],
    got: list[float],
    dtype: str,
    absolute: float | None,
    relative: float | None,
    mismatches: int,
) -> None:
    (found,) = compare_outputs(*case(tmp_path, want, got, dtype))
    assert (found.max_abs_error, found.max_rel_error, found.nonfinite_mismatches) == (absolute, relative, mismatches)


@pytest.mark.fault
@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_an_output_that_is_not_finite_where_eager_is_finite_is_wrong(tmp_path: Path, value: float) -> None:
    with pytest.raises(OutputMismatchError, match="output 0 is NaN or infinite in 1 of 3 elements where eager"):
        compare_outputs(*case(tmp_path, [1.0, NAN, 2.0], [1.0, NAN, value]))


@pytest.mark.fault
@pytest.mark.parametrize("shape", [[1 << 24], [1 << 12, 1 << 12]])
def test_memory_does_not_depend_on_the_size_of_an_output(tmp_path: Path, shape: list[int]) -> None:
    # given an output and its reference, as sparse files of 16 million elements
    references, collected = case(tmp_path, [0.0], [0.0])
    for folder in (references.folder, collected):
        os.truncate(folder / "output-0.bin", 64 << 20)
    references.eager[0]["shape"] = shape
    tracemalloc.start()
    try:
        compare_outputs(references, collected)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 16 << 20


def test_a_missing_or_short_output_is_reported(tmp_path: Path) -> None:
    references, collected = case(tmp_path, [1.0, 2.0], [1.0])
    with pytest.raises(OutputMismatchError, match="output 0 has 4 bytes; eager PyTorch returns 8"):
        compare_outputs(references, collected)
    (collected / "output-0.bin").unlink()
    with pytest.raises(OutputMismatchError, match="output 0 is missing"):
        compare_outputs(references, collected)


def test_an_equal_output_is_accurate_and_has_no_snr(tmp_path: Path) -> None:
    (found,) = compare_outputs(*case(tmp_path, [2.0, 2.0, 2.0], [2.0, 2.0, 2.0]))
    assert found.cosine == pytest.approx(1)
    assert (found.snr_db, found.top1_agreement, found.is_inaccurate) == (None, 1, False)


@pytest.mark.parametrize(("times", "is_inaccurate"), [(0.0, False), (0.99, False), (1.01, True)])
def test_an_output_that_is_zero_in_eager_is_judged_by_its_absolute_error(
    tmp_path: Path, times: float, is_inaccurate: bool
) -> None:
    (found,) = compare_outputs(*case(tmp_path, [0.0, 0.0], [times * ZERO_LIMIT, 0.0]))
    assert (found.snr_db, found.cosine, found.is_inaccurate) == (None, None, is_inaccurate)


@pytest.mark.parametrize(
    ("want", "got", "dtype", "agreement", "is_inaccurate"),
    [
        ([7, 1, 900, 4], [7, 1, 3, 4], "int32", 0.75, True),
        ([200, 201, 202, 203], [201, 202, 203, 204], "int32", 0.0, False),
        ([7] * 10, [7] * 9 + [0], "int32", 0.9, False),
        ([True, False, True, False], [True, True, False, False], "bool", 0.5, True),
    ],
    ids=["indices", "values off by one", "one of ten", "booleans"],
)
def test_integers_are_accurate_if_most_are_equal_or_all_are_near(
    tmp_path: Path, want: list[int], got: list[int], dtype: str, agreement: float, is_inaccurate: bool
) -> None:
    (found,) = compare_outputs(*case(tmp_path, want, got, dtype))
    assert (found.top1_agreement, found.is_inaccurate) == (agreement, is_inaccurate)


@pytest.mark.parametrize("block", [1, 3, 4, 8, 1000])
@pytest.mark.parametrize("shape", [(24,), (6, 4), (2, 3, 4), (1, 2, 3, 4)])
def test_the_figures_of_an_output_do_not_depend_on_its_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, shape: tuple[int, ...]
) -> None:
    monkeypatch.setattr("tasks.measure.session.difference.BLOCK_ELEMENTS", block)
    # given outputs of few different values, so that rows have several largest elements, some zeros and a NaN in both
    chance = np.random.default_rng(len(shape))
    want = chance.integers(-2, 4, shape).astype(np.float32)
    got = want + chance.choice([0, 0, 0, 0.25, -0.5], shape).astype(np.float32)
    want.reshape(-1)[5] = got.reshape(-1)[5] = NAN
    # when they are compared
    (found,) = compare_outputs(*case(tmp_path, want, got))
    # then every figure is what its definition gives for all elements at once
    one, other = (np.delete(values.reshape(-1), 5).astype(float) for values in (got, want))
    error = np.abs(one - other)
    assert found.max_abs_error == error.max()
    assert found.max_rel_error == (error[other != 0] / np.abs(other[other != 0])).max()
    assert found.snr_db == pytest.approx(10 * np.log10((other**2).sum() / (error**2).sum()))
    assert found.cosine == pytest.approx(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))
    rows = [np.where(np.isnan(values), -INF, values).reshape(-1, shape[-1]) for values in (got, want)]
    chosen = [
        set(np.flatnonzero(mine == mine.max())) & set(np.flatnonzero(eager == eager.max()))
        for mine, eager in zip(*rows, strict=True)
    ]
    share = np.mean([bool(same) for same in chosen])
    assert found.top1_agreement == (None if len(shape) > 3 else pytest.approx(share))


@pytest.mark.parametrize(("got", "is_inaccurate"), [(10.99, False), (11.0, False), (11.01, True)])
def test_an_output_is_inaccurate_below_its_limit(tmp_path: Path, got: float, is_inaccurate: bool) -> None:
    references, collected = case(tmp_path, [10.0], [got], "float64")
    limits = AccuracyLimits(eager_db=20, fp32_db=90, host_db=90)
    (found,) = compare_outputs(replace(references, limits=limits), collected)
    assert found.is_inaccurate == is_inaccurate


def test_every_output_is_compared_with_its_own_references(tmp_path: Path) -> None:
    # given two outputs, of which the second has no reference in fp32
    references, collected = case(tmp_path, [1.0, 2.0], [1.0, 2.0], fp32=[1.0, 2.5])
    np.array([5.0], np.float32).tofile(collected / "output-1.bin")
    eager = [*references.eager, entry(references.folder, "output-1.bin", [7.0], "float32")]
    found = compare_outputs(replace(references, eager=eager), collected)
    assert [
        (each.output, each.reference, each.max_abs_error, each.min_snr_db, each.is_inaccurate) for each in found
    ] == [(0, "eager", 0.0, 30, False), (0, "fp32", 0.5, 20, True), (1, "eager", 2.0, 30, True)]


def test_a_device_that_computes_something_else_than_the_same_program_is_inaccurate(tmp_path: Path) -> None:
    # given an output that is near enough to eager, as the recipe is coarse, and 1 % from the same program on the host
    for name, got in (("as the host", 10.09), ("otherwise", 10.11)):
        (tmp_path / name).mkdir()
        references, collected = case(tmp_path / name, [10.5], [got], "float64")
        host = [entry(references.folder, "host-0.bin", [10.0], "float64")]
        limits = AccuracyLimits(eager_db=20, fp32_db=5, host_db=40)
        found = compare_outputs(replace(references, limits=limits, host=host), collected)
        judged = [(each.reference, each.min_snr_db, each.is_inaccurate) for each in found]
        assert judged == [("host", 40, name == "otherwise"), ("eager", 20, False)]


@pytest.mark.parametrize(
    ("wanted", "is_inaccurate"),
    [({"min_snr_db": 19.0}, False), ({"min_snr_db": 21.0}, True), ({"top1": 0.5}, False), ({"top1": 0.51}, True)],
)
def test_the_entry_in_the_sweep_file_decides_what_is_enough_against_fp32(
    tmp_path: Path, wanted: dict[str, float], is_inaccurate: bool
) -> None:
    # given 20 dB against fp32, the limit of the recipe, and one of two rows with the same choice
    got = [[1.0, 0.1], [0.1, 0.1001]]
    references, collected = case(tmp_path, got, got, fp32=[[1.0, 0.2015], [0.1001, 0.1]])
    eager, fp32 = compare_outputs(replace(references, required=AccuracyRequirement(**wanted)), collected)
    assert fp32.snr_db == pytest.approx(20.2, abs=0.1)
    assert (fp32.is_inaccurate, eager.is_inaccurate) == (is_inaccurate, False)
    assert (fp32.min_top1, eager.min_top1) == (wanted.get("top1"), None)


@pytest.mark.parametrize(
    ("precision", "types", "fp32_db"),
    [
        ("as_is", frozenset(), 60),
        ("as_is", frozenset({"fp16"}), 30),
        ("module:recipe", frozenset({"int8_dynamic"}), 10),
        ("module:recipe", frozenset({"int8_static", "fp16"}), 5),
        ("as_is", None, 5),
        ("fp16 except layer_norm", None, 30),
    ],
)
def test_a_program_of_no_listed_recipe_has_the_limits_of_its_coarsest_type(
    precision: str, types: frozenset[str] | None, fp32_db: float
) -> None:
    assert recipe_limits(precision, types).fp32_db == fp32_db


def test_only_small_floating_point_tensors_have_a_choice() -> None:
    chosen = [("float32", (1, 1000)), ("float16", (1, 16, 30522)), ("float32", (5,))]
    others = [("int64", (1, 16)), ("float32", (1, 1)), ("float32", ()), ("float32", (1, 3, 224, 224))]
    assert [each for each in chosen + others if has_choices(*each)] == chosen


def test_an_overflow_of_the_precision_is_inaccurate_and_not_a_wrong_output(tmp_path: Path) -> None:
    eager, fp32 = compare_outputs(*case(tmp_path, [1.0, INF], [1.0, INF], "float16", fp32=[1.0, 7e4]))
    assert (eager.is_inaccurate, fp32.is_inaccurate, fp32.nonfinite_mismatches) == (False, True, 1)


def test_a_wrong_layout_and_a_missing_scale_are_inaccurate_in_every_recipe(tmp_path: Path) -> None:
    # given an image, and what a runner returns that mixes up its layout or forgets the scale of int8
    image = np.random.default_rng(0).normal(size=(1, 3, 32, 32)).astype(np.float32)
    broken = {"layout": image.transpose(0, 2, 3, 1), "scale": np.round(image / 0.02)}
    for name, got in broken.items():
        (tmp_path / name).mkdir()
        references, collected = case(tmp_path / name, image, got)
        for precision in ("fp32", "fp16", "int8_static", "int8_dynamic", "int4_weight_only"):
            (found,) = compare_outputs(replace(references, limits=recipe_limits(precision, None)), collected)
            # then no limit lets it pass
            assert found.is_inaccurate, (name, precision)


def test_a_case_without_references_is_not_compared(tmp_path: Path) -> None:
    assert compare_outputs(References(tmp_path, [], [], LIMITS), tmp_path) == []


def test_values_whose_squares_overflow_have_errors_and_no_snr(tmp_path: Path) -> None:
    np.array([1e200, 2e200]).tofile(tmp_path / "want")
    np.array([1e200, 3e200]).tofile(tmp_path / "got")
    found = compare_tensors(*(TensorFile(tmp_path / name, "float64", (2,)) for name in ("got", "want")))
    assert found.max_abs_error == pytest.approx(1e200)
    assert (found.snr_db, found.cosine) == (None, None)
