"""The sentence about inaccurate outputs: each figure beyond its limit, and no other."""

from typing import Any

import pytest

from tasks.judge.verdicts.night import describe_inaccuracy

NAMES = ("snr_db", "snr_fp32_db", "snr_host_db", "judged_top1", "score")
FIGURES: dict[str, Any] = dict.fromkeys([*NAMES, *(f"min_{name}" for name in NAMES), "min_top1", "cause"])
FIGURES |= dict.fromkeys(["nonfinite_mismatches", "samples", "samples_below", "worst_sample", "first_difference"])
FIGURES |= {"sessions": 8, "inaccurate_sessions": 3}


@pytest.mark.parametrize(
    ("figures", "reasons"),
    [
        ({"snr_db": 2.5, "min_snr_db": 10.0}, "(SNR 2.5 dB against same precision, limit 10 dB)"),
        (
            {"snr_host_db": 2.5, "min_snr_host_db": 10.0, "snr_fp32_db": 1.5, "min_snr_fp32_db": 20.0},
            "(SNR 2.5 dB against same program on the host, limit 10 dB, SNR 1.5 dB against fp32, limit 20 dB)",
        ),
        ({"snr_db": 10.0, "min_snr_db": 10.0, "first_difference": 0}, "(token 0 differs)"),
        ({"snr_db": 2.5, "first_difference": 2}, "(token 2 differs)"),
        ({"judged_top1": 0.125, "min_top1": 0.99}, "(top-1 12.5 %, limit 99.0 %)"),
        (
            {"nonfinite_mismatches": 3, "cause": "exp of NaN is 0"},
            "(NaN or infinite on one side only, elements: 3); exp of NaN is 0",
        ),
        ({"score": 0.5, "min_score": 0.75}, "(score 0.5 of the samples, limit 0.75)"),
        ({"score": None, "min_score": 0.75}, "(unknown score of the samples, limit 0.75)"),
        (
            {"samples": 4, "samples_below": 1, "worst_sample": "b.png", "score": 0.75, "min_score": 0.75},
            "(1 of 4 samples are below their limit, the worst is b.png)",
        ),
    ],
)
def test_each_figure_beyond_its_limit_is_named(figures: dict[str, Any], reasons: str) -> None:
    outputs = "outputs of 3 of 8 sessions are too far from their references"
    assert describe_inaccuracy(FIGURES | figures) == f"{outputs} {reasons}"
