"""Outputs beside eager: errors are measured where they can be, counted where not, and missing outputs are reported."""

import os
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tasks.export.accuracy_limits import AccuracyLimits, max_margin, recipe_limits
from tasks.export.entry import AccuracyRequirement
from tasks.export.outputs.difference import TensorFile, compare_tensors
from tasks.measure.session.accuracy import (
    ZERO_LIMIT,
    OutputMismatchError,
    References,
    compare_outputs,
    format_inaccuracy,
    with_cause,
)

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


def errors(absolute: float | None, relative: float | None, mismatches: int) -> dict[str, Any]:
    return {"max_abs_error": absolute, "max_rel_error": relative, "nonfinite_mismatches": mismatches}


def equal(agreement: float, is_inaccurate: bool) -> dict[str, Any]:
    return {"top1_agreement": agreement, "is_inaccurate": is_inaccurate}


def zero(times: float, is_inaccurate: bool) -> tuple[Any, Any, str, dict[str, Any]]:
    figures = {"snr_db": None, "cosine": None, "is_inaccurate": is_inaccurate}
    return [0, 0], [times * ZERO_LIMIT, 0], "float32", figures


def chosen(want: Any, got: Any, agreement: float | None) -> tuple[Any, Any, str, dict[str, Any]]:
    return want, got, "float32", {"top1_agreement": agreement}


EAGER = [INF, NAN, NAN, INF, 1.0]
# What eager PyTorch returns, what the device returned, and figures of the comparison.
FIGURES: dict[str, tuple[Any, Any, str, dict[str, Any]]] = {
    "errors": ([100.0, 0.5, 0.0], [101.0, 0.75, 0.25], "float32", errors(1.0, 0.5, 0)),
    "errors where both are finite": (EAGER, [INF, NAN, 1.0, -INF, 1.0], "float32", errors(0.0, 0.0, 2)),
    "no finite element": ([NAN], [1.0], "float32", errors(None, None, 1)),
    "bytes": ([0, 255], [255, 0], "uint8", errors(255.0, 1.0, 0)),
    "booleans": ([True, False], [True, True], "bool", errors(1.0, 0.0, 0)),
    "integers of which few are far": ([7, 1, 900, 4], [7, 1, 3, 4], "int32", equal(0.75, True)),
    "integers that are all near": ([200, 201, 202, 203], [201, 202, 203, 204], "int32", equal(0.0, False)),
    "integers of which most are equal": ([7] * 10, [7] * 9 + [0], "int32", equal(0.9, False)),
    "booleans of which half are equal": ([True, False] * 2, [True, True, False, False], "bool", equal(0.5, True)),
    "zero in eager and on the device": zero(0.0, False),
    "zero in eager, within the limit": zero(0.99, False),
    "zero in eager, beyond it": zero(1.01, True),
    "no choice among NaN": chosen([[NAN] * 3, [3, 2, 1]], [[NAN] * 3, [3, 2, 1]], 1.0),
    "a choice where eager has NaN": chosen([[NAN] * 3, [3, 2, 1]], [[1, 2, 3], [1, 2, 3]], 0.0),
    "NaN alone": chosen([[NAN] * 3] * 2, [[NAN] * 3] * 2, None),
    "a choice beside NaN": chosen([[1, NAN, 3]], [[1, NAN, 3]], 1.0),
    "no choice among equal values": chosen([[1, 2, 3], [2, 2, 2]], [[9, 9, 9], [9, 9, 9]], 0.5),  # saturated
    "one of two that are equal": chosen([[1, 2, 3]], [[1, 3, 3]], 1.0),
}


@pytest.mark.parametrize("name", FIGURES)
def test_each_output_has_its_figures(tmp_path: Path, name: str) -> None:
    want, got, dtype, figures = FIGURES[name]
    (row,) = compare_outputs(*case(tmp_path, want, got, dtype))
    assert {key: getattr(row, key) for key in figures} == figures


@pytest.mark.fault
@pytest.mark.parametrize(
    ("got", "sentence"),
    [
        ([1.0, NAN, NAN], "output 0 is NaN or infinite in 1 of 3 elements where eager"),
        ([1.0, NAN, -INF], "output 0 is NaN or infinite in 1 of 3 elements where eager"),
        ([1.0, NAN], "output 0 has 8 bytes; eager PyTorch returns 12"),
        (None, "output 0 is missing"),
    ],
)
def test_an_output_that_lost_elements_is_wrong(tmp_path: Path, got: list[float] | None, sentence: str) -> None:
    references, collected = case(tmp_path, [1.0, NAN, 2.0], got or [])
    if got is None:
        (collected / "output-0.bin").unlink()
    with pytest.raises(OutputMismatchError, match=sentence):
        compare_outputs(references, collected)
    # and an overflow that eager has too is inaccurate beside fp32
    (tmp_path / "half").mkdir()
    eager, fp32 = compare_outputs(*case(tmp_path / "half", [1.0, INF], [1.0, INF], "float16", fp32=[1.0, 7e4]))
    assert (eager.is_inaccurate, fp32.is_inaccurate, fp32.nonfinite_mismatches) == (False, True, 1)


@pytest.mark.parametrize(
    ("want", "fp32", "got", "is_inaccurate"),
    [
        ([NAN, 2.0], None, [NAN, 2.0], False),
        ([NAN, 2.0], None, [0.0, 2.0], True),
        ([INF, 2.0], None, [-INF, 2.0], True),
        ([INF, 2.0], [7e4, 2.0], [7e4, 2.0], False),  # the recipe overflows, and the device does not
        ([9.0, 2.0], [INF, 2.0], [9.0, 2.0], False),  # the recipe limits values
        ([NAN, 2.0], [NAN, 2.0], [0.0, 2.0], True),
    ],
)
def test_an_output_that_is_finite_where_the_model_is_not_is_inaccurate(
    tmp_path: Path, want: list[float], fp32: list[float] | None, got: list[float], is_inaccurate: bool
) -> None:
    rows = compare_outputs(*case(tmp_path, want, got, fp32=fp32))
    assert any(row.is_inaccurate for row in rows) == is_inaccurate
    if is_inaccurate:
        assert "NaN or infinite in 1 elements of one side only, limit 0" in str(format_inaccuracy([rows]))


def test_only_inaccurate_outputs_have_what_the_export_found_as_their_cause(tmp_path: Path) -> None:
    rows = compare_outputs(*case(tmp_path, [1.0, 2.0], [1.0, 9.0], fp32=[1.0, 9.0]))
    assert [row.cause for row in with_cause(rows, ["random", "wrong"])] == ["random; wrong", None]
    assert with_cause(rows, []) == rows


@pytest.mark.fault
def test_memory_does_not_depend_on_the_size_of_an_output(tmp_path: Path) -> None:
    # given an output and its reference, as sparse files of 16 million elements
    references, collected = case(tmp_path, [0.0], [0.0])
    for folder in (references.folder, collected):
        os.truncate(folder / "output-0.bin", 64 << 20)
    references.eager[0]["shape"] = [1 << 12, 1 << 12]
    tracemalloc.start()
    try:
        compare_outputs(references, collected)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 16 << 20


@pytest.mark.parametrize("block", [1, 3, 1000])
@pytest.mark.parametrize("shape", [(24,), (6, 4), (1, 2, 3, 4)])
def test_the_figures_of_an_output_do_not_depend_on_its_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, shape: tuple[int, ...]
) -> None:
    monkeypatch.setattr("tasks.export.outputs.difference.BLOCK_ELEMENTS", block)
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
def test_an_entry_decides_what_is_accurate(tmp_path: Path, wanted: dict[str, float], is_inaccurate: bool) -> None:
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
def test_other_recipes_have_their_coarsest_limits(precision: str, types: frozenset[str] | None, fp32_db: float) -> None:
    assert recipe_limits(precision, types).fp32_db == fp32_db


def test_int8_on_openvino_may_be_as_far_from_the_host_as_from_eager_since_processors_round_differently() -> None:
    cases = [("int8_static", "openvino+xnnpack"), ("int8_static", None), ("fp32", "openvino")]
    assert [recipe_limits(precision, None, delegate).host_db for precision, delegate in cases] == [15, 35, 100]


def test_values_whose_squares_overflow_have_errors_and_no_snr(tmp_path: Path) -> None:
    np.array([1e200, 2e200]).tofile(tmp_path / "want")
    np.array([1e200, 3e200]).tofile(tmp_path / "got")
    found = compare_tensors(*(TensorFile(tmp_path / name, "float64", (2,)) for name in ("got", "want")))
    assert found.max_abs_error == pytest.approx(1e200)
    assert (found.snr_db, found.cosine) == (None, None)


def test_written_tokens_are_compared_one_by_one_and_fp32_writes_its_own_text(tmp_path: Path) -> None:
    # given a device whose third token of twelve differs from the same model in eager, and whose first from fp32
    eager, fp32, got = [5] * 12, [1] * 12, [5, 5, 6, *[5] * 9]
    references, collected = case(tmp_path, eager, got, "int64", fp32=fp32, fp32_dtype="int64")
    of_eager, of_fp32 = compare_outputs(replace(references, are_tokens=True), collected)
    # then it is inaccurate by that token alone; how much is equal to fp32 is shown and not judged, ...
    assert (of_eager.is_inaccurate, of_eager.first_difference, of_eager.snr_db) == (True, 2, None)
    assert (of_fp32.is_inaccurate, of_fp32.first_difference, of_fp32.top1_agreement) == (None, 0, 0.0)
    # ... nor is eager where it rounds activations in another way
    limits = replace(LIMITS, same_text=False)
    rounded, _ = compare_outputs(replace(references, are_tokens=True, limits=limits), collected)
    assert (rounded.is_inaccurate, rounded.first_difference) == (None, 2)


def tokens_instead(folder: Path, written: int, behind: list[float]) -> tuple[References, Path]:
    """A text of eager and the host whose third token, 7, a device wrote as `written`; 8 to 10 are the next likely."""
    eager = [5, 5, 7, 5]
    references, collected = case(folder, eager, [5, 5, written, 9], "int64")
    choices = [
        entry(folder / "export", "choices-0.bin", [[token, 8, 9, 10] for token in eager], "int64"),
        entry(folder / "export", "choices-1.bin", [[0.0, 1.0, 2.0, 3.0]] * 2 + [behind] * 2, "float32"),
    ]
    by_text = {"eager": choices, "host": choices}
    return replace(references, are_tokens=True, host=references.eager, choices=by_text), collected


@pytest.mark.parametrize(
    ("times", "of_host", "of_eager"),
    [
        pytest.param(0.99, False, False, id="within the limit against the host"),
        pytest.param(1.01, True, False, id="beyond it, within the one against eager"),
        pytest.param(3.2, True, True, id="beyond both"),
    ],
)
def test_a_token_nearly_as_likely_is_no_error(tmp_path: Path, times: float, of_host: bool, of_eager: bool) -> None:
    # given limits of 40 dB against the host and 30 dB against eager, whose margins are as 1 to 3.16
    assert max_margin(LIMITS.host_db) == pytest.approx(2 * 0.01)
    margin = times * max_margin(LIMITS.host_db)
    host, eager = compare_outputs(*tokens_instead(tmp_path, 8, [0.0, margin, 2.0, 3.0]))
    # then the first token that differs and its margin are told, and the limit decides
    assert (host.reference, host.first_difference, eager.first_difference) == ("host", 2, 2)
    assert [host.margin, eager.margin] == pytest.approx([margin, margin])
    assert (host.is_inaccurate, eager.is_inaccurate) == (of_host, of_eager)


def test_the_margin_is_between_the_two_tokens_if_neither_is_eagers_likeliest(tmp_path: Path) -> None:
    # given a host that wrote the third likeliest token, and a device the second
    references, collected = tokens_instead(tmp_path, 8, [0.0, 0.5, 0.501, 3.0])
    references = replace(references, host=[entry(references.folder, "host.bin", [5, 5, 9, 5], "int64")])
    host, eager = compare_outputs(references, collected)
    assert [host.margin, eager.margin] == pytest.approx([0.001, 0.5], rel=1e-3)
    assert (host.is_inaccurate, eager.is_inaccurate) == (False, True)


@pytest.mark.parametrize("behind", [[0.0] * 4, [float("nan")] * 4], ids=["an unlikely token", "no scores"])
def test_a_differing_token_of_unknown_margin_is_inaccurate(tmp_path: Path, behind: list[float]) -> None:
    written = 3 if behind[0] == 0 else 8
    host, eager = compare_outputs(*tokens_instead(tmp_path, written, behind))
    assert (host.margin, host.is_inaccurate, eager.margin, eager.is_inaccurate) == (None, True, None, True)


def test_a_required_share_of_equal_tokens_applies_at_any_margin(tmp_path: Path) -> None:
    references, collected = tokens_instead(tmp_path, 8, [0.0] * 4)
    _, eager = compare_outputs(replace(references, required=AccuracyRequirement(top1=0.9)), collected)
    assert (eager.margin, eager.top1_agreement, eager.is_inaccurate) == (0.0, 0.5, True)
