"""The geometric mean of a comparison: each series with a time that counts, once."""

import pytest

from tasks.results.changes import SeriesChange, geometric_mean, mean_of_changes


@pytest.mark.parametrize(
    ("ratios", "sentence"),
    [
        ([2.0, 0.5], "Geometric mean of B / A over 2 series: 0.0 %."),
        ([1.2, 1.0, None], "Geometric mean of B / A over 2 series: +9.5 %. Left out: 1 without a ratio that counts."),
        ([1.2, None], None),
    ],
)
def test_the_mean_of_ratios_is_that_of_their_logarithms(ratios: list[float | None], sentence: str | None) -> None:
    mean = geometric_mean(ratios)
    assert (mean and str(mean)) == sentence


def test_times_of_inaccurate_outputs_are_left_out_and_inconclusive_ones_count() -> None:
    words = {"slower": 1.5, "unknown": 1.0, "inaccurate": 0.1, "emulated": None}
    changes = [
        SeriesChange(model="toy", device="mac", precision="fp32", variant="sme2_on", threads=1, word=word, ratio=ratio)
        for word, ratio in words.items()
    ]
    mean = mean_of_changes(changes)
    assert mean is not None
    assert (round(mean.ratio, 6), mean.series, mean.left_out) == (round(1.5**0.5, 6), 2, 2)
