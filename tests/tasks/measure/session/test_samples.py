"""A program judged by samples: the worst, the median and the share below the limit, against what the entry requires."""

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tasks.bundle.accuracy import Accuracy, samples_sentence
from tasks.export.accuracy_limits import AccuracyLimits
from tasks.export.entry import AccuracyRequirement
from tasks.export.exported import SAMPLES, Case, Export
from tasks.export.outputs.difference import compare_values
from tasks.measure.session.samples import judge_samples, with_samples

LIMITS = AccuracyLimits(eager_db=20, fp32_db=10, host_db=40)
WANT = np.array([[1.0, 2.0, 3.0]], "float32")


def figures(snr_db: float, *, is_integer: bool = False) -> dict[str, Any]:
    got = WANT * np.float32(1 + 10 ** (-snr_db / 20))
    return asdict(compare_values(got, WANT)) | {"is_integer": is_integer}


def export(
    folder: Path, *snr_fp32_db: float | None, agreeing: int = 99, score: float | None = None, reference: float = 1.0
) -> Export:
    """An export with a sample for each SNR against fp32; None for outputs of another shape."""
    samples = []
    for number, snr_db in enumerate(snr_fp32_db):
        fp32 = figures(snr_db) if snr_db is not None else None
        if fp32:
            fp32["top1_agreement"] = 1.0 if number < agreeing else 0.0
        scores = {"program": score, "reference": reference if score is not None else None}
        differences = {"eager": [figures(50)], "fp32": [fp32]}
        samples.append({"name": f"{number}.png", "sha256": "0" * 64, "differences": differences, "scores": scores})
    content = {"machine": "lab (Linux x86_64)", "trial": "succeeded", "calibrating": 0, "samples": samples}
    (folder / SAMPLES).write_text(json.dumps(content))
    described = {"file": SAMPLES, "sha256": "0" * 64}
    return Export(folder, "key", "toy", "int8_static", 0, "pte", 1, {}, [], [], 1.0, Case(), samples=described)


def test_the_worst_sample_the_median_and_the_number_below_the_limit_are_stated(tmp_path: Path) -> None:
    [row] = judge_samples(export(tmp_path, 30, 9.9, 25, 10.1, 40), LIMITS, None)
    assert row.samples is not None
    assert (row.samples.worst, row.samples.below, row.samples.samples) == ("1.png", 1, 5)
    assert [row.snr_db, row.samples.median_snr_db] == pytest.approx([9.9, 25.0], abs=0.01)
    assert row.is_inaccurate
    sentence = samples_sentence(row.columns)
    assert sentence == (
        "5 samples, executed on lab (Linux x86_64) at the export: SNR median 25.0 dB, worst 9.9 dB (1.png); "
        "1 below 10 dB (20.0 %); same top class in 100.0 %"
    )


@pytest.mark.parametrize(
    ("required", "is_inaccurate"),
    [
        ({"samples_below": 0.25}, False),
        ({"samples_below": 0.2}, True),
        ({"min_snr_db": 9}, False),
        ({"min_snr_db": 31, "samples_below": 0.9}, True),
        ({"samples_below": 0.25, "top1": 0.75}, False),
        ({"samples_below": 0.25, "top1": 0.8}, True),
        ({"samples_below": 0.25, "score": 0.5}, False),
        ({"samples_below": 0.25, "score": 0.51}, True),
    ],
)
def test_an_entry_states_how_many_samples_may_be_below_the_limit_and_what_the_task_needs(
    tmp_path: Path, required: dict[str, float], is_inaccurate: bool
) -> None:
    # given four samples of which one is below 10 dB and one has another class
    exported = export(tmp_path, 30, 9.5, 25, 20, agreeing=3, score=0.5)
    [row] = judge_samples(exported, LIMITS, AccuracyRequirement(**required))
    assert row.is_inaccurate == is_inaccurate


@pytest.mark.fault
@pytest.mark.parametrize("score", [math.nan, math.inf, None])
def test_a_required_score_that_is_not_a_number_is_too_low(tmp_path: Path, score: float | None) -> None:
    [row] = judge_samples(export(tmp_path, 30, score=score), LIMITS, AccuracyRequirement(score=0.9))
    assert row.is_inaccurate
    assert "score unknown or not finite, in eager PyTorch" in samples_sentence(row.columns)
    assert "required 0.9" in samples_sentence(row.columns)


@pytest.mark.fault
def test_a_score_of_the_reference_that_is_not_a_number_is_stated_as_such(tmp_path: Path) -> None:
    exported = export(tmp_path, 30, score=0.95, reference=math.nan)
    [row] = judge_samples(exported, LIMITS, AccuracyRequirement(score=0.9))
    assert not row.is_inaccurate
    assert "score 0.95, in eager PyTorch unknown or not finite, required 0.9" in samples_sentence(row.columns)


def test_outputs_of_another_shape_are_below_and_equal_outputs_are_not(tmp_path: Path) -> None:
    [row] = judge_samples(export(tmp_path, 400, None), LIMITS, None)
    assert row.samples is not None
    assert (row.samples.worst, row.samples.below) == ("1.png", 1)
    [row] = judge_samples(export(tmp_path, 400, 400), LIMITS, None)
    assert (row.is_inaccurate, row.snr_db) == (False, None)
    assert "outputs equal eager PyTorch's" in samples_sentence(row.columns)


def test_samples_alone_judge_the_program_and_the_measured_input_the_device(tmp_path: Path) -> None:
    figure: dict[str, Any] = {"output": 0, "max_abs_error": 1.0, "max_rel_error": None, "nonfinite_mismatches": 0}
    rows = [
        Accuracy.model_validate(figure | {"reference": reference, "is_inaccurate": True, "min_snr_db": 10.0})
        for reference in ("host", "eager", "fp32")
    ]
    samples = judge_samples(export(tmp_path, 30), LIMITS, None)
    judged = {row.reference: (row.is_inaccurate, row.min_snr_db) for row in with_samples(rows, samples)}
    assert judged == {"host": (True, 10.0), "eager": (None, None), "fp32": (None, None), "samples": (False, 10.0)}
    # and without samples, or where the exporting machine could not execute them, nothing changes
    assert with_samples(rows, judge_samples(export(tmp_path), LIMITS, None)) == rows
