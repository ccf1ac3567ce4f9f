"""How far the outputs of a recipe may be from eager PyTorch before a cell is inaccurate.

The limits are to find a broken export (a wrong layout, a missing scale, a wrong kernel), not to judge a recipe: they
lie below what the recipe costs on the models of the zoo, and above the SNR of unrelated values, which is 0 dB or less.
How much accuracy a task can lose is for its own data set to decide.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class AccuracyLimits:
    """The least signal-to-noise ratio of an output, in dB."""

    eager_db: float
    """Against eager PyTorch in the same precision, quantized where the recipe quantizes."""
    fp32_db: float
    """Against eager PyTorch in fp32."""


# Beside each: the least SNR of toy_cnn, bert_tiny, resnet18, mobilenet_v2 and mobilevit_xs with seeded weights, on
# x86-64. A limit is not in the text that keys an export, so that changing it exports nothing again.
_LIMITS = {
    "fp32": AccuracyLimits(eager_db=60, fp32_db=60),  # 123
    "fp16": AccuracyLimits(eager_db=30, fp32_db=30),  # 47 and 48
    "int8_static": AccuracyLimits(eager_db=15, fp32_db=5),  # 32 and 30, without mobilevit_xs
    "int8_dynamic": AccuracyLimits(eager_db=20, fp32_db=10),  # 58 and 41, without mobilevit_xs
}
_OTHERS = _LIMITS["int8_static"]


def limits_of(precision: str) -> AccuracyLimits:
    """Return the limits of a recipe; those of int8_static for one that is not listed, such as a user's own."""
    return _LIMITS.get(precision.partition(" except ")[0], _OTHERS)
